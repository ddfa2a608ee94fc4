/* Halves and rows of a communicator, with and without shared resources, and a shrunk one. */
#include "check.h"

enum { COUNT = 777 };

static void sum(ncclComm_t comm, float *buffer, cudaStream_t stream, const char *what)
{
    int size = 0;
    NCCL(ncclCommCount(comm, &size));
    fill(buffer, COUNT, 1);
    NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect(buffer, COUNT, (float)size, what);
}

int main(void)
{
    int rank = env_int("RANK", 0);
    int size = env_int("WORLD_SIZE", 1);
    ncclUniqueId id;
    ncclComm_t comm;
    ncclComm_t half;
    ncclComm_t none;
    cudaStream_t stream;
    float *buffer;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.splitShare = 1;
    CUDA(cudaSetDevice(env_int("LOCAL_RANK", rank)));
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRankConfig(&comm, size, id, rank, &config));
    CUDA(cudaMalloc((void **)&buffer, COUNT * sizeof(float)));
    CUDA(cudaStreamCreate(&stream));
    NCCL(ncclCommSplit(comm, rank % 2, -rank, &half, NULL));
    int half_rank = -1;
    NCCL(ncclCommUserRank(half, &half_rank));
    if (half_rank != (size - 1 - rank) / 2) {
        fprintf(stderr, "rank %d has place %d in its half\n", rank, half_rank);
        return 1;
    }
    sum(half, buffer, stream, "half");
    NCCL(ncclCommSplit(comm, rank == 0 ? 5 : NCCL_SPLIT_NOCOLOR, 0, &none, NULL));
    if ((none != NULL) != (rank == 0)) return 1;
    sum(comm, buffer, stream, "all");
    if (none) NCCL(ncclCommDestroy(none));
    NCCL(ncclCommDestroy(half));
    int last = size - 1;
    ncclComm_t rest = NULL;
    if (rank != last) {
        NCCL(ncclCommShrink(comm, &last, 1, &rest, NULL, NCCL_SHRINK_DEFAULT));
        sum(rest, buffer, stream, "rest");
        NCCL(ncclCommDestroy(rest));
    }
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaFree(buffer));
    CUDA(cudaStreamDestroy(stream));
    if (rank == 0) printf("split: ok\n");
    return 0;
}
