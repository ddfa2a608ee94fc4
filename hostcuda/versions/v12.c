/* What CUDA 12 has under signatures or layouts of its own. On a stream: v12_streams.c; kept for
 * programs older than 12: v12_old.c. */
#include "../runtime/nodes.h"
#include "../shared/shared.h"
#include "props.h"

_Static_assert(sizeof(struct cudaDeviceProp) == 1032, "CUDA 12's properties");
_Static_assert(sizeof(struct cudaPointerAttributes) == 24, "CUDA 12's pointer attributes");

#pragma GCC visibility push(default)
cudaError_t cudaEventElapsedTime_v2(float *msec, cudaEvent_t start, cudaEvent_t end);
#pragma GCC visibility pop

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version) return tt_face_done(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

/* The driver behind both faces is one, and its interface is 13's. */
cudaError_t cudaDriverGetVersion(int *version)
{
    if (!version) return tt_face_done(cudaErrorInvalidValue);
    *version = 13000;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    int rc = tt_face_properties(prop, device);
    if (rc) return tt_face_done(rc);
    tt_face_attribute(device, cudaDevAttrClockRate, &prop->clockRate);
    tt_face_attribute(device, cudaDevAttrGpuOverlap, &prop->deviceOverlap);
    tt_face_attribute(device, cudaDevAttrMemoryClockRate, &prop->memoryClockRate);
    tt_face_attribute(device, cudaDevAttrSingleToDoublePrecisionPerfRatio,
                      &prop->singleToDoublePrecisionPerfRatio);
    return cudaSuccess;
}

cudaError_t cudaChooseDevice(int *device, const struct cudaDeviceProp *prop)
{
    if (!device || !prop) return tt_face_done(cudaErrorInvalidValue);
    int rc = tt_face_device(0);
    if (!rc) *device = 0; /* all are alike */
    return tt_face_done(rc);
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *ptr)
{
    struct tt_face_pointer found;
    int rc = attributes ? tt_face_pointer(ptr, &found) : (int)cudaErrorInvalidValue;
    if (rc) return tt_face_done(rc);
    attributes->type = (enum cudaMemoryType)found.type;
    attributes->device = found.device;
    attributes->devicePointer = found.device_pointer;
    attributes->hostPointer = found.host_pointer;
    return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void *ptr, size_t len, enum cudaMemoryAdvise advice, int device)
{
    return tt_face_done(tt_face_advise(ptr, len, (int)advice, device));
}

cudaError_t cudaMemAdvise_v2(const void *ptr, size_t len, enum cudaMemoryAdvise advice,
                             struct cudaMemLocation location)
{
    return tt_face_done(tt_face_advise(ptr, len, (int)advice, tt_face_location(&location)));
}

cudaError_t cudaEventElapsedTime_v2(float *msec, cudaEvent_t start, cudaEvent_t end)
{
    return cudaEventElapsedTime(msec, start, end);
}

/* ---- edges: without data, and (_v2) with data that is not looked at ---- */

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              size_t *count)
{
    return tt_face_done(tt_face_edges(graph, from, to, NULL, count));
}

cudaError_t cudaGraphGetEdges_v2(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                                 cudaGraphEdgeData *edges, size_t *count)
{
    return tt_face_done(tt_face_edges(graph, from, to, edges, count));
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                         size_t *count)
{
    return tt_face_done(tt_face_neighbours(node, TT_FACE_BEFORE, dependencies, NULL, count));
}

cudaError_t cudaGraphNodeGetDependencies_v2(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                            cudaGraphEdgeData *edges, size_t *count)
{
    return tt_face_done(tt_face_neighbours(node, TT_FACE_BEFORE, dependencies, edges, count));
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents,
                                           size_t *count)
{
    return tt_face_done(tt_face_neighbours(node, TT_FACE_AFTER, dependents, NULL, count));
}

cudaError_t cudaGraphNodeGetDependentNodes_v2(cudaGraphNode_t node, cudaGraphNode_t *dependents,
                                              cudaGraphEdgeData *edges, size_t *count)
{
    return tt_face_done(tt_face_neighbours(node, TT_FACE_AFTER, dependents, edges, count));
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, size_t count)
{
    return tt_face_done(tt_face_edges_add(graph, from, to, count));
}

cudaError_t cudaGraphAddDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                        size_t count)
{
    (void)edges;
    return tt_face_done(tt_face_edges_add(graph, from, to, count));
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, size_t count)
{
    return tt_face_done(tt_face_edges_remove(graph, from, to, count));
}

cudaError_t cudaGraphRemoveDependencies_v2(cudaGraph_t graph, const cudaGraphNode_t *from,
                                           const cudaGraphNode_t *to,
                                           const cudaGraphEdgeData *edges, size_t count)
{
    (void)edges;
    return tt_face_done(tt_face_edges_remove(graph, from, to, count));
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies, size_t count,
                             struct cudaGraphNodeParams *params)
{
    struct tt_node what;
    int rc = tt_face_node_any(&what, params);
    cudaError_t added =
        tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
    if (added == cudaSuccess && what.kind == TT_NODE_ALLOC && tuttiHostNodeGet(*node, &what) == 0)
        params->alloc.dptr = what.ptr;
    return added;
}

cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                                size_t count, struct cudaGraphNodeParams *params)
{
    (void)edges;
    return cudaGraphAddNode(node, graph, dependencies, count, params);
}

/* Source first, unlike the other version. */
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t from, cudaGraphNode_t to)
{
    return tt_face_done(tuttiHostNodeAttributesCopy(to, from));
}
