/* One thread drives all devices: ncclCommInitAll, grouped AllReduce. */
#include "check.h"

enum { DEVICES = 4, COUNT = 1 << 20 };

int main(void)
{
    ncclComm_t comms[DEVICES];
    int devs[DEVICES] = {0, 1, 2, 3};
    float *send[DEVICES];
    float *recv[DEVICES];
    cudaStream_t streams[DEVICES];
    for (int d = 0; d < DEVICES; d++) {
        CUDA(cudaSetDevice(d));
        CUDA(cudaMalloc((void **)&send[d], COUNT * sizeof(float)));
        CUDA(cudaMalloc((void **)&recv[d], COUNT * sizeof(float)));
        CUDA(cudaStreamCreate(&streams[d]));
        fill(send[d], COUNT, (float)(d + 1));
    }
    NCCL(ncclCommInitAll(comms, DEVICES, devs));
    NCCL(ncclGroupStart());
    for (int d = 0; d < DEVICES; d++) {
        NCCL(ncclAllReduce(send[d], recv[d], COUNT, ncclFloat, ncclSum, comms[d], streams[d]));
    }
    NCCL(ncclGroupEnd());
    for (int d = 0; d < DEVICES; d++) {
        CUDA(cudaSetDevice(d));
        CUDA(cudaStreamSynchronize(streams[d]));
        expect(recv[d], COUNT, 10, "AllReduce");
        CUDA(cudaFree(send[d]));
        CUDA(cudaFree(recv[d]));
        CUDA(cudaStreamDestroy(streams[d]));
    }
    for (int d = 0; d < DEVICES; d++) {
        NCCL(ncclCommDestroy(comms[d]));
    }
    printf("single_process: ok\n");
    return 0;
}
