/* Nodes of graphs that copy and fill: added, asked and changed, on the graph and on what was made
 * of it. A copy to or from a variable of the device is a copy to or from its target. */
#include "nodes.h"

#include "device/host/host_kernel.h"

#include <string.h>

/* ---- copies ---- */

cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaMemcpy3DParms *params)
{
    struct tt_node what;
    int rc = tt_face_node_copy(&what, params);
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

static int plain(struct tt_node *node, void *dst, const void *src, size_t len,
                 enum cudaMemcpyKind kind)
{
    *node = (struct tt_node){.kind = TT_NODE_COPY};
    node->copy = (struct tt_copy){.dst = dst, .src = src, .width = len, .height = 1};
    if ((int)kind < 0 || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
    return len && (!dst || !src) ? cudaErrorInvalidValue : cudaSuccess;
}

cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count, void *dst,
                                     const void *src, size_t len, enum cudaMemcpyKind kind)
{
    struct tt_node what;
    int rc = plain(&what, dst, src, len, kind);
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               void *dst, const void *src, size_t len,
                                               enum cudaMemcpyKind kind)
{
    struct tt_node what;
    int rc = plain(&what, dst, src, len, kind);
    return tt_face_exec_change(exec, node, &what, rc);
}

/* CUDA's direction of a copy, from where its memory is. */
static enum cudaMemcpyKind direction(const struct tt_copy *copy)
{
    struct tt_pointer dst, src;
    tuttiHostPointer(copy->dst, &dst);
    tuttiHostPointer(copy->src, &src);
    if (dst.kind == TT_MEMORY_MANAGED || src.kind == TT_MEMORY_MANAGED) return cudaMemcpyDefault;
    if (src.kind == TT_MEMORY_DEVICE)
        return dst.kind == TT_MEMORY_DEVICE ? cudaMemcpyDeviceToDevice : cudaMemcpyDeviceToHost;
    return dst.kind == TT_MEMORY_DEVICE ? cudaMemcpyHostToDevice : cudaMemcpyHostToHost;
}

cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *params)
{
    struct tt_node found;
    int rc = tt_face_node_get(node, TT_NODE_COPY, params, &found);
    if (rc) return tt_face_done(rc);
    tt_face_boxes_back(&found.copy, params);
    params->kind = direction(&found.copy);
    return cudaSuccess;
}

cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemcpy3DParms *params)
{
    struct tt_node what;
    int rc = tt_face_node_copy(&what, params);
    return tt_face_node_change(node, &what, rc);
}

cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemcpy3DParms *params)
{
    struct tt_node what;
    int rc = tt_face_node_copy(&what, params);
    return tt_face_exec_change(exec, node, &what, rc);
}

cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *dst, const void *src,
                                           size_t len, enum cudaMemcpyKind kind)
{
    struct tt_node what;
    int rc = plain(&what, dst, src, len, kind);
    return tt_face_node_change(node, &what, rc);
}

/* ---- copies to and from variables of the device ---- */

static int symbol_part(const void *symbol, size_t offset, size_t len, char **part)
{
    size_t bytes;
    *part = NULL;
    if (!tuttiHostVariable(symbol, &bytes)) return cudaErrorInvalidSymbol;
    if (offset > bytes || len > bytes - offset) return cudaErrorInvalidValue;
    *part = (char *)(uintptr_t)symbol + offset;
    return cudaSuccess;
}

static int to_symbol(struct tt_node *node, const void *symbol, const void *src, size_t len,
                     size_t offset, enum cudaMemcpyKind kind)
{
    char *part;
    int rc = symbol_part(symbol, offset, len, &part);
    bool good = kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ||
                kind == cudaMemcpyDefault;
    int made = plain(node, part, src, len, kind);
    if (!rc && !good) rc = cudaErrorInvalidMemcpyDirection;
    return rc ? rc : made;
}

static int from_symbol(struct tt_node *node, void *dst, const void *symbol, size_t len,
                       size_t offset, enum cudaMemcpyKind kind)
{
    char *part;
    int rc = symbol_part(symbol, offset, len, &part);
    bool good = kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ||
                kind == cudaMemcpyDefault;
    int made = plain(node, dst, part, len, kind);
    if (!rc && !good) rc = cudaErrorInvalidMemcpyDirection;
    return rc ? rc : made;
}

cudaError_t cudaGraphAddMemcpyNodeToSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                           const cudaGraphNode_t *dependencies, size_t count,
                                           const void *symbol, const void *src, size_t len,
                                           size_t offset, enum cudaMemcpyKind kind)
{
    struct tt_node what;
    int rc = to_symbol(&what, symbol, src, len, offset, kind);
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

cudaError_t cudaGraphAddMemcpyNodeFromSymbol(cudaGraphNode_t *node, cudaGraph_t graph,
                                             const cudaGraphNode_t *dependencies, size_t count,
                                             void *dst, const void *symbol, size_t len,
                                             size_t offset, enum cudaMemcpyKind kind)
{
    struct tt_node what;
    int rc = from_symbol(&what, dst, symbol, len, offset, kind);
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

cudaError_t cudaGraphMemcpyNodeSetParamsToSymbol(cudaGraphNode_t node, const void *symbol,
                                                 const void *src, size_t len, size_t offset,
                                                 enum cudaMemcpyKind kind)
{
    struct tt_node what;
    int rc = to_symbol(&what, symbol, src, len, offset, kind);
    return tt_face_node_change(node, &what, rc);
}

cudaError_t cudaGraphMemcpyNodeSetParamsFromSymbol(cudaGraphNode_t node, void *dst,
                                                   const void *symbol, size_t len, size_t offset,
                                                   enum cudaMemcpyKind kind)
{
    struct tt_node what;
    int rc = from_symbol(&what, dst, symbol, len, offset, kind);
    return tt_face_node_change(node, &what, rc);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsToSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const void *symbol, const void *src,
                                                     size_t len, size_t offset,
                                                     enum cudaMemcpyKind kind)
{
    struct tt_node what;
    int rc = to_symbol(&what, symbol, src, len, offset, kind);
    return tt_face_exec_change(exec, node, &what, rc);
}

cudaError_t cudaGraphExecMemcpyNodeSetParamsFromSymbol(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                       void *dst, const void *symbol, size_t len,
                                                       size_t offset, enum cudaMemcpyKind kind)
{
    struct tt_node what;
    int rc = from_symbol(&what, dst, symbol, len, offset, kind);
    return tt_face_exec_change(exec, node, &what, rc);
}

/* ---- fills ---- */

cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaMemsetParams *params)
{
    struct tt_node what;
    int rc = tt_face_node_set(&what, params);
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaMemsetParams *params)
{
    struct tt_node what;
    int rc = tt_face_node_set(&what, params);
    return tt_face_exec_change(exec, node, &what, rc);
}

cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *params)
{
    struct tt_node found;
    int rc = tt_face_node_get(node, TT_NODE_SET, params, &found);
    if (rc) return tt_face_done(rc);
    *params = (struct cudaMemsetParams){.dst = found.set.ptr,
                                        .pitch = found.set.pitch,
                                        .value = found.set.value,
                                        .elementSize = found.set.elem_bytes,
                                        .width = found.set.width,
                                        .height = found.set.height};
    return cudaSuccess;
}

cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaMemsetParams *params)
{
    struct tt_node what;
    int rc = tt_face_node_set(&what, params);
    return tt_face_node_change(node, &what, rc);
}
