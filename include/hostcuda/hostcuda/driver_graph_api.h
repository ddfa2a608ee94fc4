/* Graphs in the driver API. Part of cuda.h. */
#ifndef TUTTI_HOSTCUDA_DRIVER_GRAPH_API_H_
#define TUTTI_HOSTCUDA_DRIVER_GRAPH_API_H_

#include "driver_graph_types.h"
#include "driver_rename.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- graphs ---- */
CUresult cuGraphCreate(CUgraph *graph, unsigned int flags);
CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphClone(CUgraph *clone, CUgraph graph);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags);
CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphExecGetFlags(CUgraphExec exec, cuuint64_t *flags);
CUresult cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *result);
CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphGetRootNodes(CUgraph graph, CUgraphNode *nodes, size_t *count);
CUresult cuGraphDebugDotPrint(CUgraph graph, const char *path, unsigned int flags);

/* ---- edges: ports and types are ignored ---- */
CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *edges,
                         size_t *count);
CUresult cuGraphNodeGetDependencies(CUgraphNode node, CUgraphNode *dependencies,
                                    CUgraphEdgeData *edges, size_t *count);
CUresult cuGraphNodeGetDependentNodes(CUgraphNode node, CUgraphNode *dependents,
                                      CUgraphEdgeData *edges, size_t *count);
CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                const CUgraphEdgeData *edges, size_t count);
CUresult cuGraphRemoveDependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                   const CUgraphEdgeData *edges, size_t count);

/* ---- memory of graphs, user objects ---- */
CUresult cuDeviceGetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value);
CUresult cuDeviceSetGraphMemAttribute(CUdevice device, CUgraphMem_attribute attr, void *value);
CUresult cuDeviceGraphMemTrim(CUdevice device);
CUresult cuUserObjectCreate(CUuserObject *object, void *ptr, CUhostFn destroy, unsigned int count,
                            unsigned int flags);
CUresult cuUserObjectRetain(CUuserObject object, unsigned int count);
CUresult cuUserObjectRelease(CUuserObject object, unsigned int count);
CUresult cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned int count,
                                 unsigned int flags);
CUresult cuGraphReleaseUserObject(CUgraph graph, CUuserObject object, unsigned int count);

#ifdef __cplusplus
}
#endif

#endif
