/* Nodes of graphs that are about events and about memory of their own. */
#include "nodes.h"

#include <string.h>

/* ---- events ---- */

cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *dependencies, size_t count,
                                        cudaEvent_t event)
{
    struct tt_node what = {.kind = TT_NODE_RECORD, .event = event};
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, 0);
}

cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                      const cudaGraphNode_t *dependencies, size_t count,
                                      cudaEvent_t event)
{
    struct tt_node what = {.kind = TT_NODE_WAIT, .event = event};
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, 0);
}

cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaEvent_t event)
{
    struct tt_node what = {.kind = TT_NODE_RECORD, .event = event};
    return tt_face_exec_change(exec, node, &what, 0);
}

cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               cudaEvent_t event)
{
    struct tt_node what = {.kind = TT_NODE_WAIT, .event = event};
    return tt_face_exec_change(exec, node, &what, 0);
}

static cudaError_t get_event(cudaGraphNode_t node, enum tt_node_kind kind, cudaEvent_t *event)
{
    struct tt_node found;
    int rc = tt_face_node_get(node, kind, event, &found);
    if (!rc) *event = found.event;
    return tt_face_done(rc);
}

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
    return get_event(node, TT_NODE_RECORD, event);
}

cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)
{
    return get_event(node, TT_NODE_WAIT, event);
}

cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    struct tt_node what = {.kind = TT_NODE_RECORD, .event = event};
    return tt_face_node_change(node, &what, 0);
}

cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)
{
    struct tt_node what = {.kind = TT_NODE_WAIT, .event = event};
    return tt_face_node_change(node, &what, 0);
}

/* ---- memory ---- */

cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                     const cudaGraphNode_t *dependencies, size_t count,
                                     struct cudaMemAllocNodeParams *params)
{
    struct tt_node what = {.kind = TT_NODE_ALLOC};
    int rc = params ? tt_face_node_alloc(&what, params) : (int)cudaErrorInvalidValue;
    cudaError_t added =
        tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
    if (added == cudaSuccess && params && tuttiHostNodeGet(*node, &what) == 0)
        params->dptr = what.ptr;
    return added;
}

cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                    const cudaGraphNode_t *dependencies, size_t count, void *ptr)
{
    struct tt_node what = {.kind = TT_NODE_FREE, .ptr = ptr};
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what,
                            ptr ? cudaSuccess : cudaErrorInvalidValue);
}

cudaError_t cudaGraphMemAllocNodeGetParams(cudaGraphNode_t node,
                                           struct cudaMemAllocNodeParams *params)
{
    struct tt_node found;
    int rc = tt_face_node_get(node, TT_NODE_ALLOC, params, &found);
    if (rc) return tt_face_done(rc);
    memset(params, 0, sizeof(*params));
    params->poolProps.allocType = cudaMemAllocationTypePinned;
    params->poolProps.location.type = cudaMemLocationTypeDevice;
    params->poolProps.location.id = found.device;
    params->bytesize = found.bytes;
    params->dptr = found.ptr;
    return cudaSuccess;
}

cudaError_t cudaGraphMemFreeNodeGetParams(cudaGraphNode_t node, void *ptr_out)
{
    struct tt_node found;
    int rc = tt_face_node_get(node, TT_NODE_FREE, ptr_out, &found);
    if (!rc) memcpy(ptr_out, &found.ptr, sizeof(found.ptr));
    return tt_face_done(rc);
}
