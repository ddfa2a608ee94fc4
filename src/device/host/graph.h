/* Inside of graphs. Private to the room. A graph owns its nodes; an instantiated one is a sorted
 * copy. */
#pragma once

#include "stream.h"

struct host_item_share { /* one captured item, held by every graph and exec that has its node */
    _Atomic int refs;
    struct tt_item *item;
};

struct CUgraphNode_st {
    uint32_t magic;
    struct CUgraph_st *graph; /* borrowed: its owner */
    size_t index;
    struct host_op op;             /* template; HOST_OP_ITEM uses share in its place */
    struct host_item_share *share; /* counted; NULL for other kinds */
    struct CUgraph_st *child;      /* owned copy; NULL unless a graph node */
    enum tt_node_kind kind;
    struct CUgraphNode_st **deps; /* owned array of borrowed nodes */
    size_t ndeps;
};

struct CUgraph_st {
    uint32_t magic;
    struct CUgraphNode_st **nodes; /* owned */
    size_t nnodes, room;
    bool capturing; /* belongs to a capture: not the user's yet */
};

bool host_graph_holds(const struct CUgraph_st *graph);
struct CUgraph_st *host_graph_make(void);
void host_graph_free(struct CUgraph_st *graph);
/* New node behind deps; share is counted up. NULL when out of memory. */
struct CUgraphNode_st *host_graph_add(struct CUgraph_st *graph, struct CUgraphNode_st *const *deps,
                                      size_t ndeps, const struct host_op *op,
                                      struct host_item_share *share);
struct host_item_share *host_share_make(struct tt_item *item);
void host_share_drop(struct host_item_share *share);
