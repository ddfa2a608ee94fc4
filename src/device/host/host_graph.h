/* Stream capture and graphs of the host device, for the CUDA faces. Results are CUDA's numbers. */
#pragma once

#include "device/device.h"
#include "device/host/host_stream.h"

#pragma GCC visibility push(default)

struct CUgraph_st;
struct CUgraphExec_st;
struct CUgraphNode_st;

/* ---- capture ---- */
enum tt_capture_status { TT_CAPTURE_NONE, TT_CAPTURE_ACTIVE, TT_CAPTURE_INVALIDATED };
/* mode: 0 global, 1 thread-local, 2 relaxed. */
int tuttiHostCaptureBegin(struct CUstream_st *stream, int mode);
int tuttiHostCaptureEnd(struct CUstream_st *stream, struct CUgraph_st **graph_out);
int tuttiHostCaptureStatus(struct CUstream_st *stream, enum tt_capture_status *status, uint64_t *id,
                           struct CUgraph_st **graph);
int tuttiHostCaptureMode(int *mode); /* swaps the thread's mode with *mode */
/* 0, or 900 when a capture of this thread (or a global one) forbids an unsafe call such as
 * cudaMalloc; the capture is then invalidated. */
int tuttiHostCaptureUnsafe(void);

/* ---- graphs ---- */
int tuttiHostGraphCreate(struct CUgraph_st **graph_out);
int tuttiHostGraphDestroy(struct CUgraph_st *graph);
int tuttiHostGraphClone(struct CUgraph_st **graph_out, struct CUgraph_st *graph);

enum tt_node_kind {
    TT_NODE_KERNEL,
    TT_NODE_COPY,
    TT_NODE_SET,
    TT_NODE_HOST,
    TT_NODE_GRAPH,
    TT_NODE_EMPTY
};
struct tt_node { /* what to add; only the member of its kind is read */
    enum tt_node_kind kind;
    struct tt_copy copy;
    struct {
        void *ptr;
        unsigned value, elem_bytes;
        size_t pitch, width, height;
    } set;
    struct {
        void (*fn)(void *);
        void *arg;
    } host;
    struct tt_item *item;     /* KERNEL: released with the last graph that holds it */
    struct CUgraph_st *graph; /* GRAPH: copied */
};
int tuttiHostGraphAdd(struct CUgraph_st *graph, struct CUgraphNode_st *const *deps, size_t ndeps,
                      const struct tt_node *node, struct CUgraphNode_st **node_out);
int tuttiHostGraphAddEdge(struct CUgraph_st *graph, struct CUgraphNode_st *from,
                          struct CUgraphNode_st *to);
/* *count in: room of nodes (0 with nodes NULL), out: number there is. */
int tuttiHostGraphNodes(struct CUgraph_st *graph, struct CUgraphNode_st **nodes, size_t *count);
int tuttiHostNodeKind(struct CUgraphNode_st *node, enum tt_node_kind *kind);

int tuttiHostGraphInstantiate(struct CUgraph_st *graph,
                              struct CUgraphExec_st **exec_out); /* 1 on a cycle */
int tuttiHostGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *stream);
int tuttiHostGraphExecDestroy(struct CUgraphExec_st *exec); /* while running: at its end */

#pragma GCC visibility pop
