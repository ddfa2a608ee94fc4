/* A process without devices: nothing crashes, and what needs one says that there is none. */
#include "conform.h"

int main(void)
{
    cudaStream_t stream = NULL;
    cudaEvent_t event = NULL;
    size_t bytes = 0;
    int count = 7, least = 7;
    void *ptr = NULL;
    setenv("TUTTI_DEVICES", "0", 1);
    unsetenv("NCCL_TOPO_FILE");
    ANSWERS(cudaErrorNoDevice, cudaGetDeviceCount(&count));
    HOLDS(count == 0);
    ANSWERS(cudaErrorNoDevice, cudaGetDevice(&count));
    ANSWERS(cudaErrorNoDevice, cudaSetDevice(0));
    ANSWERS(cudaErrorNoDevice, cudaMemGetInfo(&bytes, &bytes));
    ANSWERS(cudaErrorNoDevice, cudaDeviceGetStreamPriorityRange(&least, NULL));
    ANSWERS(cudaErrorNoDevice, cudaDeviceSynchronize());
    ANSWERS(cudaErrorNoDevice, cudaMalloc(&ptr, 8));
    ANSWERS(cudaErrorNoDevice, cudaMallocHost(&ptr, 8));
    ANSWERS(cudaErrorNoDevice, cudaStreamCreate(&stream));
    ANSWERS(cudaErrorNoDevice, cudaEventCreate(&event));
    ANSWERS(cudaErrorNoDevice, cudaFree(NULL));
    WORKS(cudaRuntimeGetVersion(&count));
    HOLDS(cudaGetLastError() == cudaSuccess);
    return finish("surface without devices");
}
