/* Non-blocking communicators: poll until ready, poll after every call, finalize, destroy. */
#include "check.h"

enum { COUNT = 1000 };

static void wait_ready(ncclComm_t comm, const char *what)
{
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
        NCCL(ncclCommGetAsyncError(comm, &state));
    }
    nccl_or_die(state, what);
}

int main(void)
{
    int rank = env_int("RANK", 0);
    int size = env_int("WORLD_SIZE", 1);
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    float *buffer;
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    CUDA(cudaSetDevice(env_int("LOCAL_RANK", rank)));
    NCCL(ncclGetUniqueId(&id));
    NCCL(ncclCommInitRankConfig(&comm, size, id, rank, &config));
    wait_ready(comm, "init");
    CUDA(cudaMalloc((void **)&buffer, COUNT * sizeof(float)));
    CUDA(cudaStreamCreate(&stream));
    for (int i = 0; i < 20; i++) {
        fill(buffer, COUNT, 3);
        NCCL(ncclAllReduce(buffer, buffer, COUNT, ncclFloat, ncclSum, comm, stream));
        wait_ready(comm, "AllReduce");
        CUDA(cudaStreamSynchronize(stream));
        expect(buffer, COUNT, 3.0f * (float)size, "AllReduce");
    }
    NCCL(ncclCommFinalize(comm));
    wait_ready(comm, "finalize");
    NCCL(ncclCommDestroy(comm));
    CUDA(cudaFree(buffer));
    CUDA(cudaStreamDestroy(stream));
    if (rank == 0) printf("nonblocking: ok\n");
    return 0;
}
