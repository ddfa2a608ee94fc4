/* The few CUDA calls of these tests over libtutti-host, for builds without the runtime's face. */
#include "device/device.h"
#include "device/host/host_stream.h"

#include <cuda_runtime.h>

cudaError_t cudaSetDevice(int device)
{
    return (cudaError_t)tuttiHostSetDevice(device);
}

cudaError_t cudaMalloc(void **ptr, size_t bytes)
{
    return (cudaError_t)tuttiHostMalloc(tuttiHostGetDevice(), bytes, ptr);
}

cudaError_t cudaFree(void *ptr)
{
    return (cudaError_t)tuttiHostFree(ptr);
}

const char *cudaGetErrorString(cudaError_t error)
{
    return error ? "failed" : "no error";
}

cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return (cudaError_t)tuttiHostStreamCreate(0, 0, (struct CUstream_st **)stream);
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return (cudaError_t)tuttiHostStreamDestroy(stream);
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return (cudaError_t)tuttiHostStreamSynchronize(stream);
}
