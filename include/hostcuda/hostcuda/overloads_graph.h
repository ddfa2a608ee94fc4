/* C++ forms of the graph calls about variables of the device: a variable stands for its address.
 * Part of cuda_runtime.h. */
#ifndef TUTTI_HOSTCUDA_OVERLOADS_GRAPH_H_
#define TUTTI_HOSTCUDA_OVERLOADS_GRAPH_H_

#include "../cuda_runtime_api.h"

#ifdef __cplusplus

template <class T>
inline cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                                  const cudaGraphNode_t *dependencies, size_t count,
                                                  const T &symbol, const void *src, size_t len,
                                                  size_t offset, enum cudaMemcpyKind kind)
{
    const void *address = static_cast<const void *>(&symbol);
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
    const void *address = static_cast<const void *>(&symbol);
    return ::cudaGraphAddMemcpyNodeFromSymbol(node, graph, dependencies, count, dst, address, len,
                                              offset, kind);
}

template <class T>
inline cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const T &symbol,
                                                        const void *src, size_t len, size_t offset,
                                                        enum cudaMemcpyKind kind)
{
    const void *address = static_cast<const void *>(&symbol);
    return ::cudaGraphMemcpyNodeSetParamsToSymbol(node, address, src, len, offset, kind);
}

template <class T>
inline cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst,
                                                          const T &symbol, size_t len,
                                                          size_t offset, enum cudaMemcpyKind kind)
{
    const void *address = static_cast<const void *>(&symbol);
    return ::cudaGraphMemcpyNodeSetParamsFromSymbol(node, dst, address, len, offset, kind);
}

template <class T>
inline cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec,
                                                            cudaGraphNode_t node, const T &symbol,
                                                            const void *src, size_t len,
                                                            size_t offset, enum cudaMemcpyKind kind)
{
    const void *address = static_cast<const void *>(&symbol);
    return ::cudaGraphExecMemcpyNodeSetParamsToSymbol(exec, node, address, src, len, offset, kind);
}

template <class T>
inline cudaError_t
cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node, void *dst,
                                           const T &symbol, size_t len, size_t offset,
                                           enum cudaMemcpyKind kind)
{
    const void *address = static_cast<const void *>(&symbol);
    return ::cudaGraphExecMemcpyNodeSetParamsFromSymbol(exec, node, dst, address, len, offset,
                                                        kind);
}

#endif

#endif
