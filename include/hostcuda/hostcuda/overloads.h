/* Typed forms of the runtime's functions for C++. Part of cuda_runtime.h. */
#ifndef TUTTI_HOSTCUDA_OVERLOADS_H_
#define TUTTI_HOSTCUDA_OVERLOADS_H_

#include "../cuda_runtime_api.h"

#ifdef __cplusplus

#include <type_traits>
#include <utility>

/* Accepts pointers to const and volatile objects, as NVIDIA's header does. */
template <class T> inline void **tuttiCudaSlot(T **ptr)
{
    return static_cast<void **>(static_cast<void *>(ptr));
}

inline const void *tuttiCudaAddress(const volatile void *ptr)
{
    return const_cast<const void *>(ptr);
}

/* ---- memory ---- */
template <class T> inline cudaError_t cudaMalloc(T **ptr, size_t len)
{
    return ::cudaMalloc(tuttiCudaSlot(ptr), len);
}

inline cudaError_t cudaMallocHost(void **ptr, size_t len, unsigned int flags)
{
    return ::cudaHostAlloc(ptr, len, flags);
}

template <class T> inline cudaError_t cudaMallocHost(T **ptr, size_t len, unsigned int flags = 0)
{
    return ::cudaHostAlloc(tuttiCudaSlot(ptr), len, flags);
}

template <class T> inline cudaError_t cudaHostAlloc(T **ptr, size_t len, unsigned int flags)
{
    return ::cudaHostAlloc(tuttiCudaSlot(ptr), len, flags);
}

template <class T>
inline cudaError_t cudaHostGetDevicePointer(T **device_ptr, void *host_ptr, unsigned int flags)
{
    return ::cudaHostGetDevicePointer(tuttiCudaSlot(device_ptr), host_ptr, flags);
}

template <class T>
inline cudaError_t cudaMallocManaged(T **ptr, size_t len, unsigned int flags = cudaMemAttachGlobal)
{
    return ::cudaMallocManaged(tuttiCudaSlot(ptr), len, flags);
}

template <class T>
inline cudaError_t cudaMallocPitch(T **ptr, size_t *pitch, size_t width, size_t height)
{
    return ::cudaMallocPitch(tuttiCudaSlot(ptr), pitch, width, height);
}

template <class T> inline cudaError_t cudaMallocAsync(T **ptr, size_t len, cudaStream_t stream)
{
    return ::cudaMallocAsync(tuttiCudaSlot(ptr), len, stream);
}

template <class T>
inline cudaError_t cudaMallocFromPoolAsync(T **ptr, size_t len, cudaMemPool_t pool,
                                           cudaStream_t stream)
{
    return ::cudaMallocFromPoolAsync(tuttiCudaSlot(ptr), len, pool, stream);
}

template <class T>
inline cudaError_t cudaMallocAsync(T **ptr, size_t len, cudaMemPool_t pool, cudaStream_t stream)
{
    return ::cudaMallocFromPoolAsync(tuttiCudaSlot(ptr), len, pool, stream);
}

template <class T>
inline cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, T *ptr, size_t len = 0,
                                            unsigned int flags = cudaMemAttachSingle)
{
    return ::cudaStreamAttachMemAsync(stream, const_cast<void *>(tuttiCudaAddress(ptr)), len,
                                      flags);
}

/* ---- symbols: the functions take the variable itself ---- */
template <class T>
inline cudaError_t cudaMemcpyToSymbol(const T &symbol, const void *src, size_t len,
                                      size_t offset = 0,
                                      enum cudaMemcpyKind kind = cudaMemcpyHostToDevice)
{
    return ::cudaMemcpyToSymbol(tuttiCudaAddress(&symbol), src, len, offset, kind);
}

template <class T>
inline cudaError_t cudaMemcpyFromSymbol(void *dst, const T &symbol, size_t len, size_t offset = 0,
                                        enum cudaMemcpyKind kind = cudaMemcpyDeviceToHost)
{
    return ::cudaMemcpyFromSymbol(dst, tuttiCudaAddress(&symbol), len, offset, kind);
}

template <class T>
inline cudaError_t cudaMemcpyToSymbolAsync(const T &symbol, const void *src, size_t len,
                                           size_t offset, enum cudaMemcpyKind kind,
                                           cudaStream_t stream = 0)
{
    const void *address = tuttiCudaAddress(&symbol);
    return ::cudaMemcpyToSymbolAsync(address, src, len, offset, kind, stream);
}

template <class T>
inline cudaError_t cudaMemcpyFromSymbolAsync(void *dst, const T &symbol, size_t len, size_t offset,
                                             enum cudaMemcpyKind kind, cudaStream_t stream = 0)
{
    const void *address = tuttiCudaAddress(&symbol);
    return ::cudaMemcpyFromSymbolAsync(dst, address, len, offset, kind, stream);
}

template <class T> inline cudaError_t cudaGetSymbolAddress(void **ptr, const T &symbol)
{
    return ::cudaGetSymbolAddress(ptr, tuttiCudaAddress(&symbol));
}

template <class T> inline cudaError_t cudaGetSymbolSize(size_t *len, const T &symbol)
{
    return ::cudaGetSymbolSize(len, tuttiCudaAddress(&symbol));
}

/* ---- events, graphs ---- */
inline cudaError_t cudaEventCreate(cudaEvent_t *event, unsigned int flags)
{
    return ::cudaEventCreateWithFlags(event, flags);
}

inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph,
                                        cudaGraphNode_t *error_node, char *log, size_t log_len)
{
    if (error_node) *error_node = nullptr;
    if (log && log_len) *log = 0;
    return ::cudaGraphInstantiate(exec, graph, 0);
}

/* ---- kernels: the functions take the kernel itself ---- */
template <class T>
inline cudaError_t cudaLaunchKernel(T *func, dim3 grid, dim3 block, void **args,
                                    size_t shared_bytes = 0, cudaStream_t stream = 0)
{
    const void *address = reinterpret_cast<const void *>(func);
    return ::cudaLaunchKernel(address, grid, block, args, shared_bytes, stream);
}

template <class T>
inline cudaError_t cudaLaunchCooperativeKernel(T *func, dim3 grid, dim3 block, void **args,
                                               size_t shared_bytes = 0, cudaStream_t stream = 0)
{
    const void *address = reinterpret_cast<const void *>(func);
    return ::cudaLaunchCooperativeKernel(address, grid, block, args, shared_bytes, stream);
}

template <class... Expected, class... Given>
inline cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*func)(Expected...),
                                      Given &&...given)
{
    return [&](Expected... values) {
        void *args[] = {const_cast<void *>(static_cast<const volatile void *>(&values))...,
                        nullptr};
        return ::cudaLaunchKernelExC(config, reinterpret_cast<const void *>(func), args);
    }(std::forward<Given>(given)...);
}

template <class T>
inline cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, T *func)
{
    return ::cudaFuncGetAttributes(attributes, reinterpret_cast<const void *>(func));
}

template <class T>
inline cudaError_t cudaFuncSetAttribute(T *func, enum cudaFuncAttribute attr, int value)
{
    return ::cudaFuncSetAttribute(reinterpret_cast<const void *>(func), attr, value);
}

template <class T> inline cudaError_t cudaFuncSetCacheConfig(T *func, enum cudaFuncCache config)
{
    return ::cudaFuncSetCacheConfig(reinterpret_cast<const void *>(func), config);
}

template <class T> inline cudaError_t cudaFuncGetName(const char **name, T *func)
{
    return ::cudaFuncGetName(name, reinterpret_cast<const void *>(func));
}

template <class T> inline cudaError_t cudaGetKernel(cudaKernel_t *kernel, T *func)
{
    return ::cudaGetKernel(kernel, reinterpret_cast<const void *>(func));
}

template <class T>
inline cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, T *func,
                                                                 int block_size,
                                                                 size_t shared_bytes)
{
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, reinterpret_cast<const void *>(func), block_size, shared_bytes,
        cudaOccupancyDefault);
}

template <class T>
inline cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, T *func, int block_size,
                                                       size_t shared_bytes, unsigned int flags)
{
    return ::cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, reinterpret_cast<const void *>(func), block_size, shared_bytes, flags);
}

#endif

#endif
