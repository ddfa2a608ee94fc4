/* Allocation in stream order. Compiled twice, for the legacy and the per-thread default stream. */
#include "../shared/face.h"

#include "device/host/host_pool.h"

static int allocate(struct CUmemPoolHandle_st *pool, void **ptr, size_t len, cudaStream_t stream)
{
    if (!ptr) return cudaErrorInvalidValue;
    *ptr = NULL;
    return len ? tuttiHostMallocAsync(pool, len, tt_face_stream(stream), ptr) : cudaSuccess;
}

cudaError_t cudaMallocAsync(void **ptr, size_t len, cudaStream_t stream)
{
    return tt_face_done(allocate(NULL, ptr, len, stream));
}

cudaError_t cudaMallocFromPoolAsync(void **ptr, size_t len, cudaMemPool_t pool, cudaStream_t stream)
{
    if (!pool) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(allocate(pool, ptr, len, stream));
}

cudaError_t cudaFreeAsync(void *ptr, cudaStream_t stream)
{
    return tt_face_done(tuttiHostFreeAsync(ptr, tt_face_stream(stream)));
}
