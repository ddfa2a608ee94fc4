/* The driver interface: nodes of graphs, added, asked and changed, one kind at a time. */
#include "../runtime/nodes.h"

#include "forward.h"

#include "device/host/host_face.h"

#include <string.h>

/* NOLINTBEGIN(readability-non-const-parameter): the parameters are as CUDA has them */

/* ---- nodes of any kind ---- */

CUresult cuGraphDestroyNode(CUgraphNode node)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphDestroyNode(node));
}

CUresult cuGraphNodeFindInClone(CUgraphNode *found, CUgraphNode original, CUgraph clone)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphNodeFindInClone(found, original, clone));
}

CUresult cuGraphNodeSetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int enabled)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphNodeSetEnabled(exec, node, enabled));
}

CUresult cuGraphNodeGetEnabled(CUgraphExec exec, CUgraphNode node, unsigned int *enabled)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphNodeGetEnabled(exec, node, enabled));
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType *type)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    enum tt_node_kind kind = TT_NODE_EMPTY;
    int rc = type ? tuttiHostNodeKind(node, &kind) : (int)CUDA_ERROR_INVALID_VALUE;
    if (!rc) *type = (CUgraphNodeType)kind;
    return tt_driver_done(rc);
}

static int node_kernel(struct tt_node *node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    *node = (struct tt_node){.kind = TT_NODE_KERNEL};
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    const struct cudaKernelNodeParams kernel = {
        .func = params->func ? (void *)params->func : (void *)params->kern,
        .gridDim = {params->gridDimX, params->gridDimY, params->gridDimZ},
        .blockDim = {params->blockDimX, params->blockDimY, params->blockDimZ},
        .sharedMemBytes = params->sharedMemBytes,
        .kernelParams = params->kernelParams,
        .extra = params->extra};
    return tt_face_node_kernel(node, &kernel);
}

static int node_set(struct tt_node *node, const CUDA_MEMSET_NODE_PARAMS *params)
{
    *node = (struct tt_node){.kind = TT_NODE_SET};
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    const struct cudaMemsetParams set = {tt_driver_ptr(params->dst), params->pitch, params->value,
                                         params->elementSize,        params->width, params->height};
    return tt_face_node_set(node, &set);
}

static int node_copy(struct tt_node *node, const CUDA_MEMCPY3D *params)
{
    struct cudaMemcpy3DParms boxes;
    *node = (struct tt_node){.kind = TT_NODE_COPY};
    int rc = tt_driver_boxes(params, &boxes);
    return rc ? rc : tt_face_node_copy(node, &boxes);
}

static int node_host(struct tt_node *node, const CUDA_HOST_NODE_PARAMS *params)
{
    *node = (struct tt_node){.kind = TT_NODE_HOST};
    if (!params || !params->fn) return CUDA_ERROR_INVALID_VALUE;
    node->host.fn = params->fn;
    node->host.arg = params->userData;
    return CUDA_SUCCESS;
}

static int node_alloc(struct tt_node *node, const CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    *node = (struct tt_node){.kind = TT_NODE_ALLOC};
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    const struct cudaMemAllocNodeParams alloc = {
        .poolProps = tt_driver_pool_props(&params->poolProps), .bytesize = params->bytesize};
    return tt_face_node_alloc(node, &alloc);
}

static int node_free(struct tt_node *node, CUdeviceptr ptr)
{
    *node = (struct tt_node){.kind = TT_NODE_FREE, .ptr = tt_driver_ptr(ptr)};
    return ptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static int node_any(struct tt_node *node, const CUgraphNodeParams *params)
{
    *node = (struct tt_node){.kind = TT_NODE_EMPTY};
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    switch (params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return node_kernel(node, &params->kernel);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return node_copy(node, &params->memcpy.copyParams);
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return node_set(node,
                        &(CUDA_MEMSET_NODE_PARAMS){params->memset.dst, params->memset.pitch,
                                                   params->memset.value, params->memset.elementSize,
                                                   params->memset.width, params->memset.height});
    case CU_GRAPH_NODE_TYPE_HOST: return node_host(node, &params->host);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        *node = (struct tt_node){.kind = TT_NODE_GRAPH,
                                 .graph = params->graph.graph,
                                 .move = params->graph.ownership ==
                                         CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EMPTY: return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        *node = (struct tt_node){.kind = TT_NODE_WAIT, .event = params->eventWait.event};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        *node = (struct tt_node){.kind = TT_NODE_RECORD, .event = params->eventRecord.event};
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return node_alloc(node, &params->alloc);
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return node_free(node, params->free.dptr);
    default: return tuttiHostUnsupported("graph nodes of this type");
    }
}

/* The ends of the functions below, as the runtime has them; rc is what making the node said. */
static CUresult add(const struct tt_node_target *to, struct tt_node *node, int rc)
{
    return tt_driver_done(tt_node_add(to, node, rc));
}

static CUresult change(CUgraphNode node, struct tt_node *what, int rc)
{
    return tt_driver_done(tt_node_change(node, what, rc));
}

static CUresult change_exec(CUgraphExec exec, CUgraphNode node, struct tt_node *what, int rc)
{
    return tt_driver_done(tt_node_exec_change(exec, node, what, rc));
}

CUresult cuGraphAddNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                        const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    (void)edges; /* ports and types say when device code may go on; here an edge is an edge */
    int rc = node_any(&what, params);
    CUresult added = add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
    if (!added && what.kind == TT_NODE_ALLOC && !tuttiHostNodeGet(*node, &what))
        params->alloc.dptr = (uintptr_t)what.ptr;
    return added;
}

CUresult cuGraphNodeSetParams(CUgraphNode node, CUgraphNodeParams *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_any(&what, params);
    return change(node, &what, rc);
}

CUresult cuGraphExecNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_any(&what, params);
    return change_exec(exec, node, &what, rc);
}

/* ---- kernels ---- */

CUresult cuGraphAddKernelNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_kernel(&what, params);
    return add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    struct cudaKernelNodeParams found;
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(kept, cudaGraphKernelNodeGetParams(node, &found));
    if (rc) return rc;
    *params = (CUDA_KERNEL_NODE_PARAMS){.func = found.func,
                                        .gridDimX = found.gridDim.x,
                                        .gridDimY = found.gridDim.y,
                                        .gridDimZ = found.gridDim.z,
                                        .blockDimX = found.blockDim.x,
                                        .blockDimY = found.blockDim.y,
                                        .blockDimZ = found.blockDim.z,
                                        .sharedMemBytes = found.sharedMemBytes,
                                        .kernelParams = found.kernelParams};
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetParams(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_kernel(&what, params);
    return change(node, &what, rc);
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_KERNEL_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_kernel(&what, params);
    return change_exec(exec, node, &what, rc);
}

_Static_assert(sizeof(CUlaunchAttributeValue) == sizeof(cudaLaunchAttributeValue),
               "values of both interfaces");

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUlaunchAttributeID attr,
                                       CUlaunchAttributeValue *value)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    cudaLaunchAttributeValue found;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(
        kept, cudaGraphKernelNodeGetAttribute(node, (cudaLaunchAttributeID)attr, &found));
    if (!rc) memcpy(value, &found, sizeof(*value));
    return rc;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUlaunchAttributeID attr,
                                       const CUlaunchAttributeValue *value)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    cudaLaunchAttributeValue given;
    if (!value) return CUDA_ERROR_INVALID_VALUE;
    memcpy(&given, value, sizeof(given));
    return tt_driver_forward(
        kept, cudaGraphKernelNodeSetAttribute(node, (cudaLaunchAttributeID)attr, &given));
}

CUresult cuGraphKernelNodeCopyAttributes(CUgraphNode to, CUgraphNode from)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tuttiHostNodeAttributesCopy(to, from));
}

/* ---- copies ---- */

CUresult cuGraphAddMemcpyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMCPY3D *params, CUcontext context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    (void)context;
    int rc = node_copy(&what, params);
    return add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    struct cudaMemcpy3DParms found;
    if (!params) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(kept, cudaGraphMemcpyNodeGetParams(node, &found));
    if (!rc) tt_driver_boxes_back(&found, params);
    return rc;
}

CUresult cuGraphMemcpyNodeSetParams(CUgraphNode node, const CUDA_MEMCPY3D *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_copy(&what, params);
    return change(node, &what, rc);
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMCPY3D *params, CUcontext context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    (void)context;
    int rc = node_copy(&what, params);
    return change_exec(exec, node, &what, rc);
}

/* ---- fills ---- */

CUresult cuGraphAddMemsetNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                              size_t count, const CUDA_MEMSET_NODE_PARAMS *params,
                              CUcontext context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    (void)context;
    int rc = node_set(&what, params);
    return add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node found;
    int rc = tt_face_node_get(node, TT_NODE_SET, params, &found);
    if (rc) return tt_driver_done(rc);
    *params =
        (CUDA_MEMSET_NODE_PARAMS){(uintptr_t)found.set.ptr, found.set.pitch, found.set.value,
                                  found.set.elem_bytes,     found.set.width, found.set.height};
    return CUDA_SUCCESS;
}

CUresult cuGraphMemsetNodeSetParams(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_set(&what, params);
    return change(node, &what, rc);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                        const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    (void)context;
    int rc = node_set(&what, params);
    return change_exec(exec, node, &what, rc);
}

/* ---- host functions ---- */

CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                            size_t count, const CUDA_HOST_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_host(&what, params);
    return add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node found;
    int rc = tt_face_node_get(node, TT_NODE_HOST, params, &found);
    if (!rc) *params = (CUDA_HOST_NODE_PARAMS){found.host.fn, found.host.arg};
    return tt_driver_done(rc);
}

CUresult cuGraphHostNodeSetParams(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_host(&what, params);
    return change(node, &what, rc);
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                      const CUDA_HOST_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_host(&what, params);
    return change_exec(exec, node, &what, rc);
}

/* ---- graphs in graphs, nothing, memory ---- */

CUresult cuGraphAddChildGraphNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                  size_t count, CUgraph child)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept,
                             cudaGraphAddChildGraphNode(node, graph, dependencies, count, child));
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph *graph)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphChildGraphNodeGetGraph(node, graph));
}

CUresult cuGraphExecChildGraphNodeSetParams(CUgraphExec exec, CUgraphNode node, CUgraph child)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphExecChildGraphNodeSetParams(exec, node, child));
}

CUresult cuGraphAddEmptyNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                             size_t count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphAddEmptyNode(node, graph, dependencies, count));
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr *ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphMemFreeNodeGetParams(node, ptr));
}

CUresult cuGraphAddMemAllocNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_alloc(&what, params);
    CUresult added = add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
    if (!added && !tuttiHostNodeGet(*node, &what)) params->dptr = (uintptr_t)what.ptr;
    return added;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node found;
    int rc = tt_face_node_get(node, TT_NODE_ALLOC, params, &found);
    if (rc) return tt_driver_done(rc);
    *params = (CUDA_MEM_ALLOC_NODE_PARAMS){
        .poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, found.device}},
        .bytesize = found.bytes,
        .dptr = (uintptr_t)found.ptr};
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemFreeNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                               size_t count, CUdeviceptr ptr)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    struct tt_node what;
    int rc = node_free(&what, ptr);
    return add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
}

/* ---- events ---- */

CUresult cuGraphAddEventRecordNode(CUgraphNode *node, CUgraph graph,
                                   const CUgraphNode *dependencies, size_t count, CUevent event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept,
                             cudaGraphAddEventRecordNode(node, graph, dependencies, count, event));
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent *event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphEventRecordNodeGetEvent(node, event));
}

CUresult cuGraphEventRecordNodeSetEvent(CUgraphNode node, CUevent event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphEventRecordNodeSetEvent(node, event));
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphExecEventRecordNodeSetEvent(exec, node, event));
}

CUresult cuGraphAddEventWaitNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *dependencies,
                                 size_t count, CUevent event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept,
                             cudaGraphAddEventWaitNode(node, graph, dependencies, count, event));
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent *event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphEventWaitNodeGetEvent(node, event));
}

CUresult cuGraphEventWaitNodeSetEvent(CUgraphNode node, CUevent event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphEventWaitNodeSetEvent(node, event));
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphExecEventWaitNodeSetEvent(exec, node, event));
}
/* NOLINTEND(readability-non-const-parameter) */
