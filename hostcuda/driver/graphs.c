/* The driver interface: graphs as a whole, their edges, memory and counted objects. */
#include "../shared/shared.h"
#include "forward.h"

/* ---- graphs as a whole ---- */

CUresult cuGraphCreate(CUgraph *graph, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphCreate(graph, flags));
}

CUresult cuGraphDestroy(CUgraph graph)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphDestroy(graph));
}

CUresult cuGraphClone(CUgraph *clone, CUgraph graph)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphClone(clone, graph));
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphInstantiate(exec, graph, flags));
}

CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphExecDestroy(exec));
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphGetNodes(graph, nodes, count));
}

CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphGetRootNodes(graph, nodes, count));
}

CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphDebugDotPrint(graph, path, flags));
}

CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    unsigned long long found = 0;
    if (!flags) return CUDA_ERROR_INVALID_VALUE;
    CUresult rc = tt_driver_forward(kept, cudaGraphExecGetFlags(exec, &found));
    if (!rc) *flags = found;
    return rc;
}

CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *result)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    enum tt_update reason = TT_UPDATE_ERROR;
    CUgraphNode node = NULL;
    if (!result) return CUDA_ERROR_INVALID_VALUE;
    int rc = tuttiHostExecUpdate(exec, graph, &reason, &node);
    *result = (CUgraphExecUpdateResultInfo){(CUgraphExecUpdateResult)reason, node, NULL};
    return tt_driver_done(rc);
}

/* ---- edges: port and type are not looked at, an edge is an edge ---- */

_Static_assert(sizeof(CUgraphEdgeData) == sizeof(cudaGraphEdgeData), "edges of both interfaces");

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
                         size_t *count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(tt_face_edges(graph, from, to, (cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *dependencies,
                                    CUgraphEdgeData *edges, size_t *count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(
        tt_face_neighbours(node, TT_FACE_BEFORE, dependencies, (cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *dependents,
                                      CUgraphEdgeData *edges, size_t *count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    return tt_driver_done(
        tt_face_neighbours(node, TT_FACE_AFTER, dependents, (cudaGraphEdgeData *)edges, count));
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *edges, size_t count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    (void)edges;
    return tt_driver_done(tt_face_edges_add(graph, from, to, count));
}

CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    (void)edges;
    return tt_driver_done(tt_face_edges_remove(graph, from, to, count));
}

/* ---- memory of graphs, counted objects ---- */

CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(
        kept, cudaDeviceGetGraphMemAttribute(device, (enum cudaGraphMemAttributeType)attr, value));
}

CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(
        kept, cudaDeviceSetGraphMemAttribute(device, (enum cudaGraphMemAttributeType)attr, value));
}

CUresult cuDeviceGraphMemTrim(CUdevice device)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaDeviceGraphMemTrim(device));
}

CUresult cuUserObjectCreate(CUuserObject *object, void *ptr, CUhostFn destroy, unsigned int count,
                            unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaUserObjectCreate(object, ptr, destroy, count, flags));
}

CUresult cuUserObjectRetain(CUuserObject object, unsigned int count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaUserObjectRetain(object, count));
}

CUresult cuUserObjectRelease(CUuserObject object, unsigned int count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaUserObjectRelease(object, count));
}

CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                 unsigned int flags)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphRetainUserObject(graph, object, count, flags));
}

CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count)
{
    if (!tt_driver_started()) return CUDA_ERROR_NOT_INITIALIZED;
    int kept = tuttiHostErrorPeek();
    return tt_driver_forward(kept, cudaGraphReleaseUserObject(graph, object, count));
}
