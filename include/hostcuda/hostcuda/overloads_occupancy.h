/* C++ forms of the occupancy functions, among them the block size with the highest occupancy. Part
 * of cuda_runtime.h. */
#ifndef TUTTI_HOSTCUDA_OVERLOADS_OCCUPANCY_H_
#define TUTTI_HOSTCUDA_OVERLOADS_OCCUPANCY_H_

#include "../cuda_runtime_api.h"

#ifdef __cplusplus

struct tutti_occupancy { /* of the current device and a kernel */
    const void *func;
    unsigned int flags;
    int sms, warp, largest; /* largest: threads of a block */
};

inline cudaError_t tutti_occupancy_of(const void *func, unsigned int flags, int limit,
                                      struct tutti_occupancy *out)
{
    struct cudaFuncAttributes attributes;
    int device = 0;
    *out = tutti_occupancy();
    out->func = func;
    out->flags = flags;
    cudaError_t rc = ::cudaGetDevice(&device);
    if (rc == cudaSuccess) rc = ::cudaFuncGetAttributes(&attributes, func);
    if (rc == cudaSuccess)
        rc = ::cudaDeviceGetAttribute(&out->sms, cudaDevAttrMultiProcessorCount, device);
    if (rc == cudaSuccess) rc = ::cudaDeviceGetAttribute(&out->warp, cudaDevAttrWarpSize, device);
    if (rc != cudaSuccess) return rc;
    out->largest = attributes.maxThreadsPerBlock;
    if (limit > 0 && limit < out->largest) out->largest = limit;
    return rc;
}

/* The block size, in whole warps or at the limit, with the most resident threads; of equal ones the
 * largest. shared_bytes(size) is the dynamic shared memory of a block of that size. */
template <class Bytes, class T>
inline cudaError_t
cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(int *grid_size, int *block_size, T func,
                                                        Bytes shared_bytes, int limit = 0,
                                                        unsigned int flags = 0)
{
    struct tutti_occupancy kernel;
    int most = 0;
    if (!grid_size || !block_size || !func) return cudaErrorInvalidValue;
    cudaError_t rc =
        tutti_occupancy_of(reinterpret_cast<const void *>(func), flags, limit, &kernel);
    if (rc != cudaSuccess) return rc;
    *grid_size = *block_size = 0;
    for (int size = kernel.largest; size > 0; size = (size - 1) / kernel.warp * kernel.warp) {
        int blocks = 0;
        rc = ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
            &blocks, kernel.func, size, shared_bytes(size), kernel.flags);
        if (rc != cudaSuccess) return rc;
        if (blocks * size <= most) continue;
        most = blocks * size;
        *block_size = size;
        *grid_size = blocks * kernel.sms;
    }
    return rc;
}

template <class Bytes, class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int *grid_size, int *block_size,
                                                                  T func, Bytes shared_bytes,
                                                                  int limit = 0)
{
    return cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(
        grid_size, block_size, func, shared_bytes, limit, cudaOccupancyDefault);
}

template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int *grid_size, int *block_size,
                                                               T func, size_t shared_bytes = 0,
                                                               int limit = 0,
                                                               unsigned int flags = 0)
{
    return cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(
        grid_size, block_size, func, [=](int) { return shared_bytes; }, limit, flags);
}

template <class T>
inline cudaError_t cudaOccupancyMaxPotentialBlockSize(int *grid_size, int *block_size, T func,
                                                      size_t shared_bytes = 0, int limit = 0)
{
    return cudaOccupancyMaxPotentialBlockSizeWithFlags(grid_size, block_size, func, shared_bytes,
                                                       limit, cudaOccupancyDefault);
}

#endif

#endif
