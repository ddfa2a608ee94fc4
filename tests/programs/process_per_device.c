/* One process per device, as under `tutti run`: every collective once, and a ring of sends. */
#include "check.h"

enum { COUNT = 5000 };

static void ring(ncclComm_t comm, float *send, float *recv, int rank, int size, cudaStream_t stream)
{
    fill(send, COUNT, (float)rank);
    NCCL(ncclGroupStart());
    NCCL(ncclSend(send, COUNT, ncclFloat, (rank + 1) % size, comm, stream));
    NCCL(ncclRecv(recv, COUNT, ncclFloat, (rank + size - 1) % size, comm, stream));
    NCCL(ncclGroupEnd());
    CUDA(cudaStreamSynchronize(stream));
    expect(recv, COUNT, (float)((rank + size - 1) % size), "ring");
}

static void blocks(ncclComm_t comm, float *send, float *recv, int rank, int size,
                   cudaStream_t stream)
{
    fill(send, COUNT, (float)rank);
    NCCL(ncclAllGather(send, recv, COUNT, ncclFloat, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int r = 0; r < size; r++) {
        expect(recv + (size_t)r * COUNT, COUNT, (float)r, "AllGather");
    }
    for (int r = 0; r < size; r++) {
        fill(send + (size_t)r * COUNT, COUNT, (float)(rank * 100 + r));
    }
    NCCL(ncclAlltoAll(send, recv, COUNT, ncclFloat, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int r = 0; r < size; r++) {
        expect(recv + (size_t)r * COUNT, COUNT, (float)(r * 100 + rank), "AlltoAll");
    }
    NCCL(ncclReduceScatter(send, recv, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect(recv, COUNT, (float)(size * (size - 1) / 2 * 100 + size * rank), "ReduceScatter");
    NCCL(ncclGather(send, recv, COUNT, ncclFloat, size - 1, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    for (int r = 0; rank == size - 1 && r < size; r++) {
        expect(recv + (size_t)r * COUNT, COUNT, (float)(r * 100), "Gather");
    }
    NCCL(ncclScatter(send, recv, COUNT, ncclFloat, 0, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect(recv, COUNT, (float)rank, "Scatter");
}

int main(void)
{
    int rank = env_int("RANK", 0);
    int size = env_int("WORLD_SIZE", 1);
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    float *send;
    float *recv;
    CUDA(cudaSetDevice(env_int("LOCAL_RANK", rank)));
    NCCL(ncclGetUniqueId(&id)); /* the same everywhere: NCCL_COMM_ID is set */
    NCCL(ncclCommInitRank(&comm, size, id, rank));
    CUDA(cudaMalloc((void **)&send, (size_t)size * COUNT * sizeof(float)));
    CUDA(cudaMalloc((void **)&recv, (size_t)size * COUNT * sizeof(float)));
    CUDA(cudaStreamCreate(&stream));
    fill(send, COUNT, 1);
    NCCL(ncclAllReduce(send, recv, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    expect(recv, COUNT, (float)size, "AllReduce");
    NCCL(ncclReduce(send, recv, COUNT, ncclFloat, ncclSum, size - 1, comm, stream));
    CUDA(cudaStreamSynchronize(stream));
    if (rank == size - 1) expect(recv, COUNT, (float)size, "Reduce");
    ring(comm, send, recv, rank, size, stream);
    blocks(comm, send, recv, rank, size, stream);
    CUDA(cudaFree(send));
    CUDA(cudaFree(recv));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    if (rank == 0) printf("process_per_device: ok\n");
    return 0;
}
