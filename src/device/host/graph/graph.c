/* Graphs and their nodes. Handles are checked as streams' are: objects lie in slabs, so a dead one
 * is harmless to look at. What is launched is a sorted copy, see exec.c. */
#include "graph.h"

#include "device/host/host.h"

#include <stdlib.h>

enum { MAX_GRAPHS = 1 << 20, MAX_NODES = 1 << 23, GRAPH_BYTES = 64, NODE_BYTES = 512 };

_Static_assert(sizeof(struct CUgraph_st) <= GRAPH_BYTES, "a graph fits its slot of the slab");
_Static_assert(sizeof(struct CUgraphNode_st) <= NODE_BYTES, "a node fits its slot of the slab");

/* ---- shares ---- */

struct tt_host_item_share *tt_host_share_make(struct tt_item *item)
{
    struct tt_host_item_share *share = calloc(1, sizeof(*share));
    if (!share) return NULL;
    atomic_store(&share->refs, 1);
    share->item = item;
    return share;
}

void tt_host_share_drop(struct tt_host_item_share *share)
{
    if (!share || atomic_fetch_sub(&share->refs, 1) != 1) return;
    share->item->step(share->item, TT_ITEM_RELEASE);
    free(share);
}

/* ---- graphs ---- */

bool tt_host_nodes_of(const struct CUgraph_st *graph, struct CUgraphNode_st *const *list,
                      size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!tt_host_node_holds(list[i]) || list[i]->graph != graph) return false;
    }
    return true;
}

struct CUgraph_st *tt_host_graph_make(void)
{
    struct CUgraph_st *graph = tt_host_slab_take(&tt_host.graphs.graphs, GRAPH_BYTES, MAX_GRAPHS);
    if (graph) graph->magic = GRAPH_MAGIC;
    return graph;
}

static void free_node(struct CUgraphNode_st *node)
{
    tt_host_share_drop(node->share);
    if (node->op.kind == TT_HOST_OP_GRAPH) node->op.launch.ops->drop(node->op.launch.exec);
    tt_host_graph_free(node->child);
    tt_host_attributes_free(node->attributes);
    free(node->deps);
    tt_host_slab_give(&tt_host.graphs.nodes, node);
}

void tt_host_graph_free(struct CUgraph_st *graph)
{
    if (!graph) return;
    for (size_t i = 0; i < graph->nnodes; i++) {
        free_node(graph->nodes[i]);
    }
    tt_host_kept_free(graph->kept);
    free(graph->nodes);
    tt_host_slab_give(&tt_host.graphs.graphs, graph);
}

static bool depend(struct CUgraphNode_st *node, struct CUgraphNode_st *dep)
{
    struct CUgraphNode_st **deps = realloc(node->deps, (node->ndeps + 1) * sizeof(*deps));
    if (!deps) return false;
    node->deps = deps;
    node->deps[node->ndeps++] = dep;
    return true;
}

struct CUgraphNode_st *tt_host_graph_add(struct CUgraph_st *graph,
                                         struct CUgraphNode_st *const *deps, size_t ndeps,
                                         const struct tt_host_op *op,
                                         struct tt_host_item_share *share)
{
    static const enum tt_node_kind kinds[] = {
        [TT_HOST_OP_ITEM] = TT_NODE_KERNEL, [TT_HOST_OP_COPY] = TT_NODE_COPY,
        [TT_HOST_OP_SET] = TT_NODE_SET,     [TT_HOST_OP_CALL] = TT_NODE_HOST,
        [TT_HOST_OP_GRAPH] = TT_NODE_GRAPH, [TT_HOST_OP_EMPTY] = TT_NODE_EMPTY};
    if (graph->nnodes == graph->room) {
        size_t room = graph->room ? graph->room * 2 : 16;
        struct CUgraphNode_st **list = realloc(graph->nodes, room * sizeof(*list));
        if (!list) return NULL;
        graph->nodes = list;
        graph->room = room;
    }
    struct CUgraphNode_st *node = tt_host_slab_take(&tt_host.graphs.nodes, NODE_BYTES, MAX_NODES);
    bool good = node != NULL;
    for (size_t i = 0; good && i < ndeps; i++) {
        good = depend(node, deps[i]);
    }
    if (!good) {
        if (node) free(node->deps);
        if (node) tt_host_slab_give(&tt_host.graphs.nodes, node);
        return NULL;
    }
    node->graph = graph;
    node->id = node->origin = atomic_fetch_add(&tt_host.graphs.last_node, 1) + 1;
    node->op = *op;
    tt_host_op_note_opened(&node->op);
    node->kind = kinds[op->kind];
    node->share = share;
    if (share) atomic_fetch_add(&share->refs, 1);
    if (op->kind == TT_HOST_OP_GRAPH) op->launch.ops->hold(op->launch.exec);
    node->index = graph->nnodes;
    graph->nodes[graph->nnodes++] = node;
    node->magic = NODE_MAGIC;
    return node;
}

size_t tt_host_node_find_dep(const struct CUgraphNode_st *node, const struct CUgraphNode_st *dep)
{
    size_t at = 0;
    while (at < node->ndeps && node->deps[at] != dep) {
        at++;
    }
    return at;
}

bool tt_host_node_drop_dep(struct CUgraphNode_st *node, const struct CUgraphNode_st *dep)
{
    size_t at = tt_host_node_find_dep(node, dep);
    if (at == node->ndeps) return false;
    node->ndeps--;
    memmove(node->deps + at, node->deps + at + 1, (node->ndeps - at) * sizeof(*node->deps));
    return true;
}

void tt_host_node_remove(struct CUgraphNode_st *node)
{
    struct CUgraph_st *graph = node->graph;
    for (size_t i = 0; i < graph->nnodes; i++) {
        tt_host_node_drop_dep(graph->nodes[i], node);
    }
    graph->nnodes--;
    for (size_t i = node->index; i < graph->nnodes; i++) {
        graph->nodes[i] = graph->nodes[i + 1];
        graph->nodes[i]->index = i;
    }
    free_node(node);
}

int tuttiHostGraphCreate(struct CUgraph_st **graph_out)
{
    *graph_out = tt_host_graph_make();
    return *graph_out ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
}

int tuttiHostGraphDestroy(struct CUgraph_st *graph)
{
    if (!tt_host_graph_holds(graph) || graph->capturing || graph->embedded)
        return TT_HOST_INVALID_VALUE;
    tt_host_graph_free(graph);
    return TT_HOST_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): graphs in graphs */
bool tt_host_graph_has_memory(const struct CUgraph_st *graph)
{
    for (size_t i = 0; i < graph->nnodes; i++) {
        const struct CUgraphNode_st *node = graph->nodes[i];
        if (node->kind == TT_NODE_ALLOC || node->kind == TT_NODE_FREE) return true;
        if (node->child && tt_host_graph_has_memory(node->child)) return true;
    }
    return false;
}

int tt_host_node_embed(struct CUgraphNode_st *node, struct CUgraph_st *graph, bool move)
{
    int rc = TT_HOST_OK;
    if (move) {
        node->child = graph;
        graph->moved = true;
    } else {
        rc = tuttiHostGraphClone(&node->child, graph);
    }
    if (!rc) node->child->embedded = true;
    return rc;
}

/* A node of its own for what `from` does; false: out of memory. */
static bool clone_node(struct CUgraph_st *copy, const struct CUgraphNode_st *from)
{
    struct CUgraphNode_st *node = tt_host_graph_add(copy, NULL, 0, &from->op, from->share);
    if (!node) return false;
    node->kind = from->kind;
    node->origin = from->id;
    node->params = from->params;
    if (!tt_host_attributes_copy(&node->attributes, from->attributes)) return false;
    return !from->child || tt_host_node_embed(node, from->child, false) == TT_HOST_OK;
}

int tuttiHostGraphClone(struct CUgraph_st **graph_out, struct CUgraph_st *graph)
{
    if (!tt_host_graph_holds(graph) || tt_host_graph_has_memory(graph))
        return TT_HOST_INVALID_VALUE;
    *graph_out = NULL;
    struct CUgraph_st *copy = tt_host_graph_make();
    if (!copy) return TT_HOST_OUT_OF_MEMORY;
    for (size_t i = 0; i < graph->nnodes; i++) {
        if (clone_node(copy, graph->nodes[i])) continue;
        tt_host_graph_free(copy);
        return TT_HOST_OUT_OF_MEMORY;
    }
    bool good = true;
    for (size_t i = 0; i < graph->nnodes; i++) { /* edges last: a node may depend on a later one */
        for (size_t d = 0; good && d < graph->nodes[i]->ndeps; d++) {
            good = depend(copy->nodes[i], copy->nodes[graph->nodes[i]->deps[d]->index]);
        }
    }
    if (!good || !tt_host_kept_copy(graph->kept, &copy->kept)) {
        tt_host_graph_free(copy);
        return TT_HOST_OUT_OF_MEMORY;
    }
    *graph_out = copy;
    return TT_HOST_OK;
}

int tuttiHostGraphAddEdge(struct CUgraph_st *graph, struct CUgraphNode_st *from,
                          struct CUgraphNode_st *to)
{
    struct CUgraphNode_st *both[] = {from, to};
    if (!tt_host_graph_holds(graph) || !tt_host_nodes_of(graph, both, 2) || from == to)
        return TT_HOST_INVALID_VALUE;
    for (size_t i = 0; i < to->ndeps; i++) {
        if (to->deps[i] == from) return TT_HOST_INVALID_VALUE;
    }
    return depend(to, from) ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
}

int tuttiHostGraphNodes(struct CUgraph_st *graph, struct CUgraphNode_st **list, size_t *count)
{
    if (!tt_host_graph_holds(graph)) return TT_HOST_INVALID_VALUE;
    for (size_t i = 0; list && i < *count && i < graph->nnodes; i++) {
        list[i] = graph->nodes[i];
    }
    *count = graph->nnodes;
    return TT_HOST_OK;
}

int tuttiHostGraphRoots(struct CUgraph_st *graph, struct CUgraphNode_st **list, size_t *count)
{
    size_t found = 0;
    if (!tt_host_graph_holds(graph)) return TT_HOST_INVALID_VALUE;
    for (size_t i = 0; i < graph->nnodes; i++) {
        if (graph->nodes[i]->ndeps) continue;
        if (list && found < *count) list[found] = graph->nodes[i];
        found++;
    }
    *count = found;
    return TT_HOST_OK;
}

int tuttiHostGraphEdges(struct CUgraph_st *graph, struct CUgraphNode_st **from,
                        struct CUgraphNode_st **to, size_t *count)
{
    size_t found = 0, room = *count;
    if (!tt_host_graph_holds(graph)) return TT_HOST_INVALID_VALUE;
    for (size_t i = 0; i < graph->nnodes; i++) {
        struct CUgraphNode_st *node = graph->nodes[i];
        for (size_t d = 0; d < node->ndeps; d++, found++) {
            if (from && to && found < room) from[found] = node->deps[d];
            if (from && to && found < room) to[found] = node;
        }
    }
    *count = found;
    return TT_HOST_OK;
}

int tuttiHostNodeKind(struct CUgraphNode_st *node, enum tt_node_kind *kind)
{
    if (!tt_host_node_holds(node)) return TT_HOST_INVALID_VALUE;
    *kind = node->kind;
    return TT_HOST_OK;
}
