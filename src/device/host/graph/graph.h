/* Inside of graphs. Private to the room. A graph owns its nodes; an instantiated one is a sorted
 * copy that launches share. */
#pragma once

#include "device/host/heap/slab.h"
#include "device/host/stream/attributes.h"
#include "device/host/stream/stream.h"

struct tt_host_item_share { /* one captured item, held by every graph and exec that has its node */
    _Atomic int refs;
    struct tt_item *item;
    const void *_Atomic runner; /* the exec whose launch runs the item now; NULL: none */
    _Atomic bool instantiated;  /* of memory: an executable has it, and no other may */
};

struct tt_host_kept { /* a counted object that a graph keeps alive */
    struct tt_host_kept *next;
    struct CUuserObject_st *object;
    unsigned count;
};

struct CUgraphNode_st {
    uint32_t magic;
    struct CUgraph_st *graph; /* borrowed: its owner */
    size_t index;
    uint64_t id, origin;              /* origin: id of the node that this one is a copy of */
    struct tt_host_op op;             /* template; TT_HOST_OP_ITEM uses share in its place */
    struct tt_host_item_share *share; /* counted; NULL for other kinds */
    struct CUgraph_st *child;         /* owned copy; NULL unless a graph node */
    enum tt_node_kind kind;
    struct tt_host_attribute *attributes; /* owned */
    struct tt_node params;                /* WAIT, RECORD, ALLOC, FREE: what was asked for */
    struct CUgraphNode_st **deps;         /* owned array of borrowed nodes */
    size_t ndeps;
};

struct CUgraph_st {
    uint32_t magic;
    struct CUgraphNode_st **nodes; /* owned */
    size_t nnodes, room;
    struct tt_host_kept *kept; /* owned */
    bool capturing;            /* belongs to a capture: not the user's yet */
    bool embedded;             /* a node's: goes with it */
    bool moved;                /* and was the user's before */
};

enum { GRAPH_MAGIC = 0x67726170, NODE_MAGIC = 0x6e6f6465 };

static inline bool tt_host_graph_holds(const struct CUgraph_st *graph)
{
    return tt_host_slab_holds(&tt_host.graphs.graphs, graph, GRAPH_MAGIC);
}

static inline bool tt_host_node_holds(const struct CUgraphNode_st *node)
{
    return tt_host_slab_holds(&tt_host.graphs.nodes, node, NODE_MAGIC);
}

bool tt_host_nodes_of(const struct CUgraph_st *graph, struct CUgraphNode_st *const *nodes,
                      size_t count);
struct CUgraph_st *tt_host_graph_make(void);
void tt_host_graph_free(struct CUgraph_st *graph);
/* Take the node and its edges out of its graph. */
void tt_host_node_remove(struct CUgraphNode_st *node);
/* New node behind deps; share is counted up. NULL when out of memory. */
struct CUgraphNode_st *tt_host_graph_add(struct CUgraph_st *graph,
                                         struct CUgraphNode_st *const *deps, size_t ndeps,
                                         const struct tt_host_op *op,
                                         struct tt_host_item_share *share);
/* Make a copy of the graph, or the graph itself, the node's own. 1, 2. */
int tt_host_node_embed(struct CUgraphNode_st *node, struct CUgraph_st *graph, bool move);
/* True when the graph, or a child graph, has nodes that allocate or free memory. Its nodes cannot
 * be removed, it cannot be copied, and one executable of it may exist at a time. */
bool tt_host_graph_has_memory(const struct CUgraph_st *graph);
/* The dependency's place in the node's list; its length: it is none. */
size_t tt_host_node_find_dep(const struct CUgraphNode_st *node, const struct CUgraphNode_st *dep);
bool tt_host_node_drop_dep(struct CUgraphNode_st *node, const struct CUgraphNode_st *dep);
/* Make the operation of a new node; for events and memory with an item of its own. 1, 2, 400. */
int tt_host_op_of_node(const struct tt_node *node, struct tt_host_op *op);
/* Give back the item that tt_host_op_of_node() made; a kernel's item stays the caller's. */
void tt_host_op_unmake(const struct tt_node *node, const struct tt_host_op *op);
/* Items that stand for events and memory in graphs. NULL when out of memory. */
struct tt_item *tt_host_event_item(struct CUevent_st *event, bool wait);
struct tt_item *tt_host_event_item_again(const struct tt_item *item); /* for another executable */
/* Memory of graphs (graph_memory.c). The item owns the memory: freed when the last graph is gone.
 */
int tt_host_memory_item(void *ptr, size_t bytes, int device, struct tt_item **item_out);
/* For a free node: 1 when no graph owns ptr, or another free node names it. */
int tt_host_memory_free_item(const void *ptr, struct tt_item **item_out);
/* The item's memory was launched and not freed since, in the order of calls. */
bool tt_host_memory_claimed(struct tt_item *item);
/* A launch runs the item's allocation or free. */
void tt_host_memory_claim(struct tt_item *item);
/* The program frees memory of a graph, at once or (later) in stream order. 1 when it has done so
 * already; 801 for other memory. */
int tt_host_memory_unclaim(const void *ptr, bool later);
/* The device is reset: graphs forget their memory on it. */
void tt_host_graph_memory_reset(int device);
/* tuttiHostFree() of memory that queued work may use. */
int tt_host_memory_free_used(void *ptr);
/* Such a later free was reached. False when no graph has the memory any more. */
bool tt_host_memory_freed(const void *ptr);
struct tt_host_item_share *tt_host_share_make(struct tt_item *item);
void tt_host_share_drop(struct tt_host_item_share *share);

/* Objects that graphs keep (user_object.c). */
bool tt_host_kept_copy(const struct tt_host_kept *kept,
                       struct tt_host_kept **copy_out); /* false: no memory */
void tt_host_kept_free(struct tt_host_kept *kept);

/* Executable graphs (exec.c). */
struct tt_host_exec;
extern const struct tt_host_launch_ops tt_host_exec_ops;
void tt_host_exec_drop(struct tt_host_exec *exec);
int tt_host_exec_make(const struct CUgraph_st *graph, struct tt_host_exec **exec_out);
