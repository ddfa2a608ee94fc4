/* What CUDA 13 has under signatures or layouts of its own. On a stream: v13_streams.c. */
#include "../runtime/nodes.h"
#include "../shared/shared.h"
#include "props.h"

#include <string.h>

_Static_assert(sizeof(struct cudaDeviceProp) == 1008, "CUDA 13's properties");
_Static_assert(sizeof(struct cudaPointerAttributes) == 88, "CUDA 13's pointer attributes");

cudaError_t cudaRuntimeGetVersion(int *version)
{
    if (!version) return tt_face_done(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    if (!version) return tt_face_done(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device)
{
    int rc = tt_face_properties(prop, device);
    if (rc) return tt_face_done(rc);
    tt_face_attribute(device, cudaDevAttrNumaId, &prop->deviceNumaId);
    tt_face_attribute(device, cudaDevAttrHostNumaId, &prop->hostNumaId);
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
    memset(attributes, 0, sizeof(*attributes));
    attributes->type = (enum cudaMemoryType)found.type;
    attributes->device = found.device;
    attributes->devicePointer = found.device_pointer;
    attributes->hostPointer = found.host_pointer;
    return cudaSuccess;
}

cudaError_t cudaMemAdvise(const void *ptr, size_t len, enum cudaMemoryAdvise advice,
                          struct cudaMemLocation location)
{
    return tt_face_done(tt_face_advise(ptr, len, (int)advice, tt_face_location(&location)));
}

/* ---- edges, with their data: port and type are not looked at, an edge is an edge ---- */

cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to,
                              cudaGraphEdgeData *edges, size_t *count)
{
    return tt_face_done(tt_face_edges(graph, from, to, edges, count));
}

cudaError_t cudaGraphNodeGetDependencies(cudaGraphNode_t node, cudaGraphNode_t *dependencies,
                                         cudaGraphEdgeData *edges, size_t *count)
{
    return tt_face_done(tt_face_neighbours(node, TT_FACE_BEFORE, dependencies, edges, count));
}

cudaError_t cudaGraphNodeGetDependentNodes(cudaGraphNode_t node, cudaGraphNode_t *dependents,
                                           cudaGraphEdgeData *edges, size_t *count)
{
    return tt_face_done(tt_face_neighbours(node, TT_FACE_AFTER, dependents, edges, count));
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                     const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                     size_t count)
{
    (void)edges;
    return tt_face_done(tt_face_edges_add(graph, from, to, count));
}

cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t *from,
                                        const cudaGraphNode_t *to, const cudaGraphEdgeData *edges,
                                        size_t count)
{
    (void)edges;
    return tt_face_done(tt_face_edges_remove(graph, from, to, count));
}

cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph,
                             const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                             size_t count, struct cudaGraphNodeParams *params)
{
    struct tt_node what;
    (void)edges;
    int rc = tt_face_node_any(&what, params);
    cudaError_t added =
        tt_face_node_add(&(struct tt_node_target){node, graph, dependencies, count}, &what, rc);
    if (added == cudaSuccess && what.kind == TT_NODE_ALLOC && tuttiHostNodeGet(*node, &what) == 0)
        params->alloc.dptr = what.ptr;
    return added;
}

/* Destination first, unlike the other version. */
cudaError_t cudaGraphKernelNodeCopyAttributes(cudaGraphNode_t to, cudaGraphNode_t from)
{
    return tt_face_done(tuttiHostNodeAttributesCopy(to, from));
}
