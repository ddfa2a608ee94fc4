/* C++ forms of batched copies and of graph functions. User objects are deleted by their type;
 * functions on symbols take the variable itself. Part of cuda_runtime.h. */
#ifndef TUTTI_HOSTCUDA_OVERLOADS_GRAPH_H_
#define TUTTI_HOSTCUDA_OVERLOADS_GRAPH_H_

#include "overloads.h"

#ifdef __cplusplus

/* Make a user object of `object`, which is deleted with the last reference. */
template <class T>
inline cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, T *kept, unsigned int count,
                                        unsigned int flags)
{
    return ::cudaUserObjectCreate(
        object, kept, [](void *last) { delete static_cast<T *>(last); }, count, flags);
}

#if CUDART_VERSION >= 13000
template <class T, class U>
inline cudaError_t cudaMemcpyBatchAsync(T *const *dsts, U *const *srcs, const size_t *lens,
                                        size_t count, struct cudaMemcpyAttributes *attrs,
                                        size_t *attr_starts, size_t nattrs, cudaStream_t stream)
{
    return ::cudaMemcpyBatchAsync(static_cast<void *const *>(static_cast<const void *>(dsts)),
                                  static_cast<const void *const *>(static_cast<const void *>(srcs)),
                                  lens, count, attrs, attr_starts, nattrs, stream);
}

template <class T, class U>
inline cudaError_t cudaMemcpyBatchAsync(T *const *dsts, U *const *srcs, const size_t *lens,
                                        size_t count, struct cudaMemcpyAttributes attr,
                                        cudaStream_t stream)
{
    size_t start = 0;
    return ::cudaMemcpyBatchAsync(static_cast<void *const *>(static_cast<const void *>(dsts)),
                                  static_cast<const void *const *>(static_cast<const void *>(srcs)),
                                  lens, count, &attr, &start, 1, stream);
}
#endif

template <class T>
inline cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                                  const cudaGraphNode_t *dependencies, size_t count,
                                                  const T &symbol, const void *src, size_t len,
                                                  size_t offset, enum cudaMemcpyKind kind)
{
    const void *address = tuttiCudaAddress(&symbol);
    return ::cudaGraphAddMemcpyNodeToSymbol(node, graph, dependencies, count, address, src, len,
                                            offset, kind);
}

template <class T>
inline cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                                    const cudaGraphNode_t *dependencies,
                                                    size_t count, void *dst, const T &symbol,
                                                    size_t len, size_t offset,
                                                    enum cudaMemcpyKind kind)
{
    const void *address = tuttiCudaAddress(&symbol);
    return ::cudaGraphAddMemcpyNodeFromSymbol(node, graph, dependencies, count, dst, address, len,
                                              offset, kind);
}

template <class T>
inline cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const T &symbol,
                                                        const void *src, size_t len, size_t offset,
                                                        enum cudaMemcpyKind kind)
{
    const void *address = tuttiCudaAddress(&symbol);
    return ::cudaGraphMemcpyNodeSetParamsToSymbol(node, address, src, len, offset, kind);
}

template <class T>
inline cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst,
                                                          const T &symbol, size_t len,
                                                          size_t offset, enum cudaMemcpyKind kind)
{
    const void *address = tuttiCudaAddress(&symbol);
    return ::cudaGraphMemcpyNodeSetParamsFromSymbol(node, dst, address, len, offset, kind);
}

template <class T>
inline cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec,
                                                            cudaGraphNode_t node, const T &symbol,
                                                            const void *src, size_t len,
                                                            size_t offset, enum cudaMemcpyKind kind)
{
    const void *address = tuttiCudaAddress(&symbol);
    return ::cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, node, address, src, len, offset, kind);
}

template <class T>
inline cudaError_t
cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
                                           const T &symbol, size_t len, size_t offset,
                                           enum cudaMemcpyKind kind)
{
    const void *address = tuttiCudaAddress(&symbol);
    return ::cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, node, dst, address, len, offset,
                                                        kind);
}

#endif

#endif
