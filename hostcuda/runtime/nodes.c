/* Nodes of graphs: added, asked and changed, one kind at a time. Those that move memory are in
 * node_copies.c, events and memory in node_events.c. */
#include "nodes.h"

#include "../shared/loading.h"

#include "device/host/host_face.h"
#include "device/host/host_kernel.h"

#include <string.h>

/* ---- translation ---- */

int tt_face_node_kernel(struct tt_node *node, const struct cudaKernelNodeParams *params)
{
    *node = (struct tt_node){.kind = TT_NODE_KERNEL};
    if (!params) return cudaErrorInvalidValue;
    struct tt_launch launch = {
        .function = params->func,
        .grid = {params->gridDim.x, params->gridDim.y, params->gridDim.z},
        .block = {params->blockDim.x, params->blockDim.y, params->blockDim.z},
        .shared_bytes = params->sharedMemBytes};
    int rc = tt_face_arguments(&launch, params->kernelParams, params->extra);
    return rc ? rc : tuttiHostKernelItem(&launch, &node->item);
}

int tt_face_node_copy(struct tt_node *node, const struct cudaMemcpy3DParms *params)
{
    *node = (struct tt_node){.kind = TT_NODE_COPY};
    return params ? tt_face_boxes(params, &node->copy) : (int)cudaErrorInvalidValue;
}

int tt_face_node_set(struct tt_node *node, const struct cudaMemsetParams *params)
{
    *node = (struct tt_node){.kind = TT_NODE_SET};
    if (!params || !params->dst) return cudaErrorInvalidValue;
    unsigned elem = params->elementSize;
    if (elem != 1 && elem != 2 && elem != 4) return cudaErrorInvalidValue;
    if (params->height > 1 && params->width * elem > params->pitch) return cudaErrorInvalidValue;
    node->set = (struct tt_set){params->dst,   params->value, elem,
                                params->pitch, params->width, params->height};
    return cudaSuccess;
}

static int node_host(struct tt_node *node, cudaHostFn_t fn, void *user_data)
{
    *node = (struct tt_node){.kind = TT_NODE_HOST};
    node->host.fn = fn;
    node->host.arg = user_data;
    return fn ? cudaSuccess : cudaErrorInvalidValue;
}

static int node_event(struct tt_node *node, cudaEvent_t event, enum tt_node_kind kind)
{
    *node = (struct tt_node){.kind = kind, .event = event};
    return cudaSuccess;
}

int tt_face_node_alloc(struct tt_node *node, const struct cudaMemAllocNodeParams *params)
{
    *node = (struct tt_node){
        .kind = TT_NODE_ALLOC, .bytes = params->bytesize, .device = params->poolProps.location.id};
    bool good = params->bytesize && params->poolProps.allocType == cudaMemAllocationTypePinned &&
                params->poolProps.location.type == cudaMemLocationTypeDevice;
    return good ? tt_face_device(node->device) : (int)cudaErrorInvalidValue;
}

static void node_drop(struct tt_node *node)
{
    if (node->kind == TT_NODE_KERNEL && node->item) node->item->step(node->item, TT_ITEM_RELEASE);
    node->item = NULL;
}

int tt_face_node_any(struct tt_node *node, const struct cudaGraphNodeParams *params)
{
    struct cudaKernelNodeParams kernel;
    struct cudaMemsetParams set;
    struct cudaMemAllocNodeParams alloc;
    *node = (struct tt_node){.kind = TT_NODE_EMPTY};
    if (!params) return cudaErrorInvalidValue;
    switch (params->type) {
    case cudaGraphNodeTypeKernel:
        memcpy(&kernel, &params->kernel, sizeof(kernel));
        return tt_face_node_kernel(node, &kernel);
    case cudaGraphNodeTypeMemcpy: return tt_face_node_copy(node, &params->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        memcpy(&set, &params->memset, sizeof(set));
        return tt_face_node_set(node, &set);
    case cudaGraphNodeTypeHost: return node_host(node, params->host.fn, params->host.userData);
    case cudaGraphNodeTypeGraph:
        *node =
            (struct tt_node){.kind = TT_NODE_GRAPH,
                             .graph = params->graph.graph,
                             .move = params->graph.ownership == cudaGraphChildGraphOwnershipMove};
        return cudaSuccess;
    case cudaGraphNodeTypeEmpty: return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent: return node_event(node, params->eventWait.event, TT_NODE_WAIT);
    case cudaGraphNodeTypeEventRecord:
        return node_event(node, params->eventRecord.event, TT_NODE_RECORD);
    case cudaGraphNodeTypeMemAlloc:
        memcpy(&alloc, &params->alloc, sizeof(alloc));
        return tt_face_node_alloc(node, &alloc);
    case cudaGraphNodeTypeMemFree:
        *node = (struct tt_node){.kind = TT_NODE_FREE, .ptr = params->free.dptr};
        return node->ptr ? cudaSuccess : cudaErrorInvalidValue;
    default: return tuttiHostUnsupported("graph nodes of this type");
    }
}

int tt_node_add(const struct tt_node_target *to, struct tt_node *node, int rc)
{
    if (!rc && !to->node_out) rc = cudaErrorInvalidValue;
    if (!rc) rc = tuttiHostGraphAdd(to->graph, to->dependencies, to->count, node, to->node_out);
    if (rc) node_drop(node);
    return rc;
}

int tt_node_change(cudaGraphNode_t node, struct tt_node *what, int rc)
{
    if (!rc) rc = tuttiHostNodeSet(node, what);
    if (rc) node_drop(what);
    return rc;
}

int tt_node_exec_change(cudaGraphExec_t exec, cudaGraphNode_t node, struct tt_node *what, int rc)
{
    if (!rc) rc = tuttiHostExecNodeSet(exec, node, what);
    if (rc) node_drop(what);
    return rc;
}

int tt_face_node_get(cudaGraphNode_t node, enum tt_node_kind kind, const void *out,
                     struct tt_node *found)
{
    int rc = out ? tuttiHostNodeGet(node, found) : (int)cudaErrorInvalidValue;
    return !rc && found->kind != kind ? (int)cudaErrorInvalidValue : rc;
}

/* ---- any kind ---- */

cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, enum cudaGraphNodeType *type)
{
    enum tt_node_kind kind = TT_NODE_EMPTY;
    int rc = type ? tuttiHostNodeKind(node, &kind) : (int)cudaErrorInvalidValue;
    if (!rc) *type = (enum cudaGraphNodeType)kind;
    return tt_face_done(rc);
}

cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node)
{
    return tt_face_done(tuttiHostNodeDestroy(node));
}

cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t *found, cudaGraphNode_t original,
                                     cudaGraph_t clone)
{
    if (!found) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostNodeInClone(original, clone, found));
}

cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int enabled)
{
    return tt_face_done(tuttiHostExecNodeEnable(exec, node, enabled != 0));
}

cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node,
                                    unsigned int *enabled)
{
    bool on = false;
    int rc = enabled ? tuttiHostExecNodeEnabled(exec, node, &on) : (int)cudaErrorInvalidValue;
    if (!rc) *enabled = on;
    return tt_face_done(rc);
}

cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
    struct tt_node what;
    int rc = tt_face_node_any(&what, params);
    return tt_face_node_change(node, &what, rc);
}

cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                       struct cudaGraphNodeParams *params)
{
    struct tt_node what;
    int rc = tt_face_node_any(&what, params);
    return tt_face_exec_change(exec, node, &what, rc);
}

cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, size_t count)
{
    struct tt_node what = {.kind = TT_NODE_EMPTY};
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, 0);
}

/* ---- kernels ---- */

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                   const cudaGraphNode_t *dependencies, size_t count,
                                   const struct cudaKernelNodeParams *params)
{
    struct tt_node what;
    int rc = tt_face_node_kernel(&what, params);
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *params)
{
    struct tt_node found;
    struct tt_launch launch;
    int rc = tt_face_node_get(node, TT_NODE_KERNEL, params, &found);
    if (rc) return tt_face_done(rc);
    memset(params, 0, sizeof(*params));
    if (!tuttiHostKernelOf(found.item, &launch)) /* a library's work: no kernel of the program's */
        return tt_face_done(cudaErrorInvalidDeviceFunction);
    params->func = (void *)(uintptr_t)launch.function;
    params->gridDim = (dim3){launch.grid[0], launch.grid[1], launch.grid[2]};
    params->blockDim = (dim3){launch.block[0], launch.block[1], launch.block[2]};
    params->sharedMemBytes = (unsigned)launch.shared_bytes;
    params->kernelParams = launch.args;
    return cudaSuccess;
}

cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node,
                                         const struct cudaKernelNodeParams *params)
{
    struct tt_node what;
    int rc = tt_face_node_kernel(&what, params);
    return tt_face_node_change(node, &what, rc);
}

cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                             const struct cudaKernelNodeParams *params)
{
    struct tt_node what;
    int rc = tt_face_node_kernel(&what, params);
    return tt_face_exec_change(exec, node, &what, rc);
}

/* Attributes say how a device schedules a kernel: they are kept and change nothing. */
static bool knows_attribute(cudaLaunchAttributeID attr)
{
    return (int)attr > 0 && attr <= cudaLaunchAttributeNvlinkUtilCentricScheduling;
}

_Static_assert(sizeof(cudaLaunchAttributeValue) == TT_ATTRIBUTE_BYTES, "a value is kept whole");

cudaError_t cudaGraphKernelNodeGetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attr,
                                            cudaLaunchAttributeValue *value)
{
    if (!value || !knows_attribute(attr)) return tt_face_done(cudaErrorInvalidValue);
    cudaLaunchAttributeValue found = {0};
    int rc = tuttiHostNodeAttributeGet(node, (int)attr, &found);
    if (!rc) *value = found;
    return tt_face_done(rc);
}

cudaError_t cudaGraphKernelNodeSetAttribute(cudaGraphNode_t node, cudaLaunchAttributeID attr,
                                            const cudaLaunchAttributeValue *value)
{
    if (!value || !knows_attribute(attr)) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostNodeAttributeSet(node, (int)attr, value));
}

/* ---- host functions ---- */

cudaError_t cudaGraphAddHostNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                 const cudaGraphNode_t *dependencies, size_t count,
                                 const struct cudaHostNodeParams *params)
{
    struct tt_node what = {.kind = TT_NODE_HOST};
    int rc = params ? node_host(&what, params->fn, params->userData) : (int)cudaErrorInvalidValue;
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *params)
{
    struct tt_node found;
    int rc = tt_face_node_get(node, TT_NODE_HOST, params, &found);
    if (!rc) *params = (struct cudaHostNodeParams){found.host.fn, found.host.arg};
    return tt_face_done(rc);
}

cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node,
                                       const struct cudaHostNodeParams *params)
{
    struct tt_node what = {.kind = TT_NODE_HOST};
    int rc = params ? node_host(&what, params->fn, params->userData) : (int)cudaErrorInvalidValue;
    return tt_face_node_change(node, &what, rc);
}

cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                           const struct cudaHostNodeParams *params)
{
    struct tt_node what = {.kind = TT_NODE_HOST};
    int rc = params ? node_host(&what, params->fn, params->userData) : (int)cudaErrorInvalidValue;
    return tt_face_exec_change(exec, node, &what, rc);
}

/* ---- graphs in graphs ---- */

cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t *node, cudaGraph_t graph,
                                       const cudaGraphNode_t *dependencies, size_t count,
                                       cudaGraph_t child)
{
    struct tt_node what = {.kind = TT_NODE_GRAPH, .graph = child};
    return tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, 0);
}

cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
    struct tt_node found;
    int rc = tt_face_node_get(node, TT_NODE_GRAPH, graph, &found);
    if (!rc && !found.graph) rc = cudaErrorInvalidValue; /* a captured launch has no graph */
    if (!rc) *graph = found.graph;
    return tt_face_done(rc);
}

cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                 cudaGraph_t child)
{
    struct tt_node what = {.kind = TT_NODE_GRAPH, .graph = child};
    return tt_face_exec_change(exec, node, &what, 0);
}
