/* One process per device: the sum of all ranks' numbers, checked.
 *   tutti run -n 4 ./allreduce */
#include "check.h"

enum { COUNT = 1 << 20 };

int main(void)
{
    int rank = from_launcher("RANK", 0);
    int nranks = from_launcher("WORLD_SIZE", 1);
    ncclUniqueId id;
    ncclComm_t comm;
    cudaStream_t stream;
    float *device;
    float *host = malloc(COUNT * sizeof(float));

    CUDA(cudaSetDevice(from_launcher("LOCAL_RANK", 0)));
    NCCL(ncclGetUniqueId(&id)); /* the launcher sets NCCL_COMM_ID, so every rank gets the same */
    NCCL(ncclCommInitRank(&comm, nranks, id, rank));
    CUDA(cudaStreamCreate(&stream));
    CUDA(cudaMalloc((void **)&device, COUNT * sizeof(float)));

    for (int i = 0; i < COUNT; i++) {
        host[i] = (float)(rank + i % 10);
    }
    CUDA(cudaMemcpyAsync(device, host, COUNT * sizeof(float), cudaMemcpyHostToDevice, stream));
    NCCL(ncclAllReduce(device, device, COUNT, ncclFloat, ncclSum, comm, stream));
    CUDA(cudaMemcpyAsync(host, device, COUNT * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CUDA(cudaStreamSynchronize(stream));

    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        wrong += host[i] != (float)(nranks * (nranks - 1) / 2 + nranks * (i % 10));
    }
    printf("rank %d of %d: %d wrong of %d\n", rank, nranks, wrong, COUNT);

    CUDA(cudaFree(device));
    CUDA(cudaStreamDestroy(stream));
    NCCL(ncclCommDestroy(comm));
    free(host);
    return wrong != 0;
}
