/* Graphs as a whole: made, copied, instantiated, updated, printed; lists of nodes; counted objects.
 */
#include "../shared/face.h"

#include "device/host/host_face.h"
#include "device/host/host_graph.h"

#include <stdio.h>
#include <stdlib.h>

cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    int number = mode ? (int)*mode : -1;
    int rc = mode ? tuttiHostCaptureMode(&number) : cudaErrorInvalidValue;
    if (!rc) *mode = (enum cudaStreamCaptureMode)number;
    return tt_face_done(rc);
}

cudaError_t cudaGraphCreate(cudaGraph_t *graph, unsigned int flags)
{
    if (!graph || flags) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostGraphCreate(graph));
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    return tt_face_done(tuttiHostGraphDestroy(graph));
}

cudaError_t cudaGraphClone(cudaGraph_t *clone, cudaGraph_t graph)
{
    return tt_face_done(clone ? tuttiHostGraphClone(clone, graph) : cudaErrorInvalidValue);
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    const unsigned long long known =
        cudaGraphInstantiateFlagAutoFreeOnLaunch | cudaGraphInstantiateFlagUpload |
        cudaGraphInstantiateFlagDeviceLaunch | cudaGraphInstantiateFlagUseNodePriority;
    if (!exec || (flags & ~known)) return tt_face_done(cudaErrorInvalidValue);
    if (flags & cudaGraphInstantiateFlagDeviceLaunch)
        return tt_face_done(tuttiHostUnsupported("launch of graphs from a device"));
    unsigned kept = (unsigned)flags & ~(unsigned)cudaGraphInstantiateFlagUpload; /* done by now */
    return tt_face_done(tuttiHostGraphInstantiate(graph, kept, exec));
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags)
{
    return cudaGraphInstantiate(exec, graph, flags);
}

cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
    unsigned kept = 0;
    int rc = flags ? tuttiHostExecFlags(exec, &kept) : (int)cudaErrorInvalidValue;
    if (!rc) *flags = kept;
    return tt_face_done(rc);
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    return tt_face_done(tuttiHostGraphExecDestroy(exec));
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo *result)
{
    enum tt_update reason = TT_UPDATE_ERROR;
    struct CUgraphNode_st *node = NULL;
    if (!result) return tt_face_done(cudaErrorInvalidValue);
    int rc = tuttiHostExecUpdate(exec, graph, &reason, &node);
    result->result = (enum cudaGraphExecUpdateResult)reason;
    result->errorNode = node;
    result->errorFromNode = NULL;
    return tt_face_done(rc);
}

/* ---- lists: how many there are, or as many as there is room for and NULL behind them ---- */

static void pad(cudaGraphNode_t *nodes, size_t room, size_t found)
{
    for (size_t i = found; nodes && i < room; i++) {
        nodes[i] = NULL;
    }
}

cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    size_t room = count ? *count : 0;
    int rc = count ? tuttiHostGraphNodes(graph, nodes, count) : cudaErrorInvalidValue;
    if (!rc) pad(nodes, room, *count);
    if (!rc && nodes && *count > room) *count = room;
    return tt_face_done(rc);
}

cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count)
{
    size_t room = count ? *count : 0;
    int rc = count ? tuttiHostGraphRoots(graph, nodes, count) : cudaErrorInvalidValue;
    if (!rc) pad(nodes, room, *count);
    if (!rc && nodes && *count > room) *count = room;
    return tt_face_done(rc);
}

/* ---- a drawing ---- */

static const char *kind_name(cudaGraphNode_t node)
{
    static const char *const names[] = {"kernel", "memcpy", "memset", "host", "graph", "empty",
                                        "wait",   "record", "?",      "?",    "alloc", "free"};
    enum tt_node_kind kind = TT_NODE_EMPTY;
    if (tuttiHostNodeKind(node, &kind)) return "?";
    return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}

static size_t index_of(const cudaGraphNode_t *nodes, size_t count, cudaGraphNode_t node)
{
    size_t at = 0;
    while (at < count && nodes[at] != node) {
        at++;
    }
    return at;
}

static void draw(FILE *file, cudaGraph_t graph, cudaGraphNode_t *list, size_t nnodes)
{
    cudaGraphNode_t *nodes = list, *before = list + nnodes;
    tuttiHostGraphNodes(graph, nodes, &nnodes);
    fprintf(file, "digraph tutti {\n");
    for (size_t i = 0; i < nnodes; i++) {
        size_t count = nnodes;
        fprintf(file, "    n%zu [label=\"%zu: %s\"];\n", i, i, kind_name(nodes[i]));
        if (tuttiHostNodeBefore(nodes[i], before, &count)) continue;
        for (size_t d = 0; d < count; d++) {
            fprintf(file, "    n%zu -> n%zu;\n", index_of(nodes, nnodes, before[d]), i);
        }
    }
    fprintf(file, "}\n");
}

cudaError_t cudaGraphDebugDotPrint(cudaGraph_t graph, const char *path, unsigned int flags)
{
    size_t nnodes = 0;
    (void)flags; /* how much detail: there is one */
    if (!path) return tt_face_done(cudaErrorInvalidValue);
    int rc = tuttiHostGraphNodes(graph, NULL, &nnodes);
    if (rc) return tt_face_done(rc);
    cudaGraphNode_t *list = calloc(2 * nnodes + 1, sizeof(*list));
    if (!list) return tt_face_done(cudaErrorMemoryAllocation);
    FILE *file = fopen(path, "we");
    if (file) draw(file, graph, list, nnodes);
    if (!file || fclose(file)) rc = cudaErrorOperatingSystem;
    free(list);
    return tt_face_done(rc);
}

/* ---- memory of graphs: reserved while a graph owns it, so there is no cache of it ---- */

cudaError_t cudaDeviceGetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                           void *value)
{
    uint64_t used = 0;
    uint64_t high = 0;
    int rc = tt_face_device(device);
    bool known = (int)attr >= 0 && attr <= cudaGraphMemAttrReservedMemHigh;
    bool mark = attr == cudaGraphMemAttrUsedMemHigh || attr == cudaGraphMemAttrReservedMemHigh;
    if (!rc && (!value || !known)) rc = cudaErrorInvalidValue;
    if (!rc) rc = tuttiHostGraphMemory(device, &used, &high);
    if (!rc) *(uint64_t *)value = mark ? high : used;
    return tt_face_done(rc);
}

cudaError_t cudaDeviceSetGraphMemAttribute(int device, enum cudaGraphMemAttributeType attr,
                                           void *value)
{
    int rc = tt_face_device(device);
    bool mark = attr == cudaGraphMemAttrUsedMemHigh || attr == cudaGraphMemAttrReservedMemHigh;
    if (!rc && (!value || !mark || *(const uint64_t *)value != 0)) rc = cudaErrorInvalidValue;
    return tt_face_done(rc ? rc : tuttiHostGraphMemoryMark(device));
}

cudaError_t cudaDeviceGraphMemTrim(int device)
{
    return tt_face_done(tt_face_device(device));
}

/* ---- counted objects ---- */

cudaError_t cudaUserObjectCreate(cudaUserObject_t *object, void *ptr, cudaHostFn_t destroy,
                                 unsigned int count, unsigned int flags)
{
    bool good = object && destroy && flags == cudaUserObjectNoDestructorSync && count > 0 &&
                count <= 2147483647U;
    return tt_face_done(good ? tuttiHostUserCreate(destroy, ptr, count, object)
                             : (int)cudaErrorInvalidValue);
}

cudaError_t cudaUserObjectRetain(cudaUserObject_t object, unsigned int count)
{
    return tt_face_done(tuttiHostUserRetain(object, count));
}

cudaError_t cudaUserObjectRelease(cudaUserObject_t object, unsigned int count)
{
    return tt_face_done(tuttiHostUserRelease(object, count));
}

cudaError_t cudaGraphRetainUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                      unsigned int count, unsigned int flags)
{
    if (flags & ~(unsigned)cudaGraphUserObjectMove) return tt_face_done(cudaErrorInvalidValue);
    return tt_face_done(tuttiHostGraphRetainUser(graph, object, count, flags != 0));
}

cudaError_t cudaGraphReleaseUserObject(cudaGraph_t graph, cudaUserObject_t object,
                                       unsigned int count)
{
    return tt_face_done(tuttiHostGraphReleaseUser(graph, object, count));
}
