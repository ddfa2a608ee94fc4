/* Stream capture and graphs of the host device, for the CUDA faces. Results are CUDA's numbers;
 * dead or wrong handles of graphs, nodes and executables give 1. A graph is used by one thread at a
 * time, as CUDA demands; executables and captures may be used by any. */
#pragma once

#include "device/device.h"
#include "device/host/host_stream.h"

#pragma GCC visibility push(default)

struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;
struct CUuserObject_st;

/* ---- capture ---- */
enum tt_capture_status { TT_CAPTURE_NONE, TT_CAPTURE_ACTIVE, TT_CAPTURE_INVALIDATED };
/* mode: 0 global, 1 thread-local, 2 relaxed. 900 legacy stream, 401 already capturing. */
int tuttiHostCaptureBegin(struct CUstream_st *stream, int mode);
/* The same into the user's graph, behind deps. */
int tuttiHostCaptureBeginInto(struct CUstream_st *stream, struct CUgraph_st *graph,
                              struct CUgraphNode_st *const *deps, size_t ndeps, int mode);
/* 401 not capturing, 901 invalidated (*graph_out NULL), 903 not the origin, 904 streams not joined,
 * 908 another thread. */
int tuttiHostCaptureEnd(struct CUstream_st *stream, struct CUgraph_st **graph_out);
/* 906 for the legacy stream while a blocking stream of its device captures. */
int tuttiHostCaptureStatus(struct CUstream_st *stream, enum tt_capture_status *status, uint64_t *id,
                           struct CUgraph_st **graph);
/* What the stream's next node will depend on; valid until the next call on the stream. */
int tuttiHostCaptureTips(struct CUstream_st *stream, struct CUgraphNode_st *const **tips,
                         size_t *ntips);
/* Add to (replace false) or replace that set. 401 not capturing. */
int tuttiHostCaptureSetTips(struct CUstream_st *stream, struct CUgraphNode_st *const *nodes,
                            size_t count, bool replace);
int tuttiHostCaptureMode(int *mode); /* swaps the thread's mode with *mode */
/* 0, or 900 when a capture of this thread (or a global one) forbids an unsafe call such as
 * cudaMalloc; the capture is then invalidated. */
int tuttiHostCaptureUnsafe(void);
/* 0, or 900 when a stream of the device captures, in whatever mode: that ends in an error, since to
 * wait for the device means to wait for the stream. */
int tuttiHostCaptureOfDevice(int device);

/* ---- graphs ---- */
int tuttiHostGraphCreate(struct CUgraph_st **graph_out);
int tuttiHostGraphDestroy(struct CUgraph_st *graph);
int tuttiHostGraphClone(struct CUgraph_st **graph_out, struct CUgraph_st *graph);

/* CUDA's numbers of node types. */
enum tt_node_kind {
    TT_NODE_KERNEL = 0,
    TT_NODE_COPY = 1,
    TT_NODE_SET = 2,
    TT_NODE_HOST = 3,
    TT_NODE_GRAPH = 4,
    TT_NODE_EMPTY = 5,
    TT_NODE_WAIT = 6,
    TT_NODE_RECORD = 7,
    TT_NODE_ALLOC = 10,
    TT_NODE_FREE = 11,
};
struct tt_node { /* what to add; only the member of its kind is read */
    enum tt_node_kind kind;
    struct tt_copy copy;
    struct tt_set set;
    struct {
        void (*fn)(void *);
        void *arg;
    } host;
    struct tt_item *item;     /* KERNEL: released with the last graph that holds it */
    struct CUgraph_st *graph; /* GRAPH: copied, */
    bool move;                /* or taken: from then on the node's, under the same handle */
    struct CUevent_st *event; /* RECORD: counts from the call of each launch on; WAIT: for the
                                 record that was the latest then */
    void *ptr;                /* FREE; ALLOC: the address, an answer */
    size_t bytes;             /* ALLOC */
    int device;               /* ALLOC */
};
/* 1 also when deps are not of this graph. An item that was not taken stays the caller's. */
int tuttiHostGraphAdd(struct CUgraph_st *graph, struct CUgraphNode_st *const *deps, size_t ndeps,
                      const struct tt_node *node, struct CUgraphNode_st **node_out);
/* Edges: 1 when there already (or not there, for Remove). */
int tuttiHostGraphAddEdge(struct CUgraph_st *graph, struct CUgraphNode_st *from,
                          struct CUgraphNode_st *to);
int tuttiHostGraphRemoveEdge(struct CUgraph_st *graph, struct CUgraphNode_st *from,
                             struct CUgraphNode_st *to);

/* Lists. *count in: room of the array (ignored when the array is NULL), out: number there is. */
int tuttiHostGraphNodes(struct CUgraph_st *graph, struct CUgraphNode_st **nodes, size_t *count);
int tuttiHostGraphRoots(struct CUgraph_st *graph, struct CUgraphNode_st **nodes, size_t *count);
int tuttiHostGraphEdges(struct CUgraph_st *graph, struct CUgraphNode_st **from,
                        struct CUgraphNode_st **to, size_t *count);
int tuttiHostNodeBefore(struct CUgraphNode_st *node, struct CUgraphNode_st **nodes, size_t *count);
int tuttiHostNodeAfter(struct CUgraphNode_st *node, struct CUgraphNode_st **nodes, size_t *count);

int tuttiHostNodeKind(struct CUgraphNode_st *node, enum tt_node_kind *kind);
/* What was added. item stays the graph's; graph is the node's own copy. */
int tuttiHostNodeGet(struct CUgraphNode_st *node, struct tt_node *node_out);
/* Replace what the node does; 1 when the kind differs. */
int tuttiHostNodeSet(struct CUgraphNode_st *node, const struct tt_node *what);
int tuttiHostNodeDestroy(struct CUgraphNode_st *node);
/* The node of `clone` that was made from `node`; 1 when there is none. */
int tuttiHostNodeInClone(struct CUgraphNode_st *node, struct CUgraph_st *clone,
                         struct CUgraphNode_st **node_out);

/* ---- executable graphs ---- */
/* 1 on a cycle. flags are kept to be asked for. */
int tuttiHostGraphInstantiate(struct CUgraph_st *graph, unsigned flags,
                              struct CUgraphExec_st **exec_out);
int tuttiHostExecFlags(const struct CUgraphExec_st *exec, unsigned *flags);
/* One item in stream order; launches of one executable run one after another in the order of the
 * calls, also when it is changed in between. In capture: a child graph. 1 when mapped parts of its
 * copies and fills are gone. */
int tuttiHostGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *stream);
int tuttiHostGraphExecDestroy(struct CUgraphExec_st *exec); /* while running: at its end */
/* Replace what the executable does in place of `node` of the graph that it was made from. 1 when
 * CUDA forbids it: rows and slices, memory of another device, a child graph of another shape. */
int tuttiHostExecNodeSet(struct CUgraphExec_st *exec, struct CUgraphNode_st *node,
                         const struct tt_node *what);
/* Leave a copy, set or kernel out of later launches, or take it in again. */
int tuttiHostExecNodeEnable(struct CUgraphExec_st *exec, struct CUgraphNode_st *node, bool enabled);
int tuttiHostExecNodeEnabled(struct CUgraphExec_st *exec, struct CUgraphNode_st *node,
                             bool *enabled);
/* CUDA's numbers of update results. */
enum tt_update {
    TT_UPDATE_OK = 0,
    TT_UPDATE_ERROR = 1,
    TT_UPDATE_TOPOLOGY = 2,
    TT_UPDATE_KIND = 3,
    TT_UPDATE_PARAMETERS = 5,
};
/* Take over the parameters of a graph of the same shape. cudaErrorGraphExecUpdateFailure with
 * *reason and *node (of graph, may be NULL) when the shape differs; the executable is then
 * unchanged. */
int tuttiHostExecUpdate(struct CUgraphExec_st *exec, struct CUgraph_st *graph,
                        enum tt_update *reason, struct CUgraphNode_st **node);

/* ---- user objects ---- */
/* Counted; fn(arg) runs on a worker when the count reaches 0. 1 when count is 0. */
int tuttiHostUserCreate(void (*fn)(void *), void *arg, unsigned count,
                        struct CUuserObject_st **object_out);
int tuttiHostUserRetain(struct CUuserObject_st *object, unsigned count);
int tuttiHostUserRelease(struct CUuserObject_st *object, unsigned count);
/* The graph takes references (move: the caller's); clones and executables take their own. */
int tuttiHostGraphRetainUser(struct CUgraph_st *graph, struct CUuserObject_st *object,
                             unsigned count, bool move);
int tuttiHostGraphReleaseUser(struct CUgraph_st *graph, struct CUuserObject_st *object,
                              unsigned count);

/* ---- what is kept to be asked for ---- */
bool tuttiHostExecAlive(const struct CUgraphExec_st *exec);
/* Launch attributes of kernel nodes, by number; 1 for other nodes. Get leaves *value alone when
 * none was set. */
int tuttiHostNodeAttributeSet(struct CUgraphNode_st *node, int id, const void *value);
int tuttiHostNodeAttributeGet(struct CUgraphNode_st *node, int id, void *value);
int tuttiHostNodeAttributesCopy(struct CUgraphNode_st *to, struct CUgraphNode_st *from);
/* Bytes that graphs own on a device, and the most that they ever did since the mark was reset. */
int tuttiHostGraphMemory(int device, uint64_t *used_out, uint64_t *high_out);
int tuttiHostGraphMemoryMark(int device);

#pragma GCC visibility pop
