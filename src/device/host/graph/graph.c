/* Graphs and their nodes. Handles are checked as streams' are: objects lie in slabs, so a dead one
 * is harmless to look at. What is launched is a sorted copy, see exec.c. */
#include "graph.h"

#include "device/host/host.h"

#include <stdlib.h>

enum { MAX_GRAPHS = 1 << 20, MAX_NODES = 1 << 23, GRAPH_BYTES = 64, NODE_BYTES = 512 };

_Static_assert(sizeof(struct CUgraph_st) <= GRAPH_BYTES, "a graph fits its slot of the slab");
_Static_assert(sizeof(struct CUgraphNode_st) <= NODE_BYTES, "a node fits its slot of the slab");

/* ---- shares ---- */

struct host_item_share *host_share_make(struct tt_item *item)
{
    struct host_item_share *share = calloc(1, sizeof(*share));
    if (!share) return NULL;
    atomic_store(&share->refs, 1);
    share->item = item;
    return share;
}

void host_share_drop(struct host_item_share *share)
{
    if (!share || atomic_fetch_sub(&share->refs, 1) != 1) return;
    share->item->step(share->item, TT_ITEM_RELEASE);
    free(share);
}

/* ---- graphs ---- */

bool host_nodes_of(const struct CUgraph_st *graph, struct CUgraphNode_st *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!host_node_holds(list[i]) || list[i]->graph != graph) return false;
    }
    return true;
}

struct CUgraph_st *host_graph_make(void)
{
    struct CUgraph_st *graph = host_slab_take(&tt_host.graphs.graphs, GRAPH_BYTES, MAX_GRAPHS);
    if (graph) graph->magic = GRAPH_MAGIC;
    return graph;
}

void host_node_free(struct CUgraphNode_st *node)
{
    host_share_drop(node->share);
    if (node->op.kind == HOST_OP_GRAPH) node->op.launch.ops->drop(node->op.launch.exec);
    host_graph_free(node->child);
    host_attributes_free(node->attributes);
    free(node->deps);
    host_slab_give(&tt_host.graphs.nodes, node);
}

void host_graph_free(struct CUgraph_st *graph)
{
    if (!graph) return;
    for (size_t i = 0; i < graph->nnodes; i++) {
        host_node_free(graph->nodes[i]);
    }
    host_kept_free(graph->kept);
    free(graph->nodes);
    host_slab_give(&tt_host.graphs.graphs, graph);
}

bool host_node_depend(struct CUgraphNode_st *node, struct CUgraphNode_st *dep)
{
    struct CUgraphNode_st **deps = realloc(node->deps, (node->ndeps + 1) * sizeof(*deps));
    if (!deps) return false;
    node->deps = deps;
    node->deps[node->ndeps++] = dep;
    return true;
}

struct CUgraphNode_st *host_graph_add(struct CUgraph_st *graph, struct CUgraphNode_st *const *deps,
                                      size_t ndeps, const struct host_op *op,
                                      struct host_item_share *share)
{
    static const enum tt_node_kind kinds[] = {
        [HOST_OP_ITEM] = TT_NODE_KERNEL, [HOST_OP_COPY] = TT_NODE_COPY,
        [HOST_OP_SET] = TT_NODE_SET,     [HOST_OP_CALL] = TT_NODE_HOST,
        [HOST_OP_GRAPH] = TT_NODE_GRAPH, [HOST_OP_EMPTY] = TT_NODE_EMPTY};
    if (graph->nnodes == graph->room) {
        size_t room = graph->room ? graph->room * 2 : 16;
        struct CUgraphNode_st **list = realloc(graph->nodes, room * sizeof(*list));
        if (!list) return NULL;
        graph->nodes = list;
        graph->room = room;
    }
    struct CUgraphNode_st *node = host_slab_take(&tt_host.graphs.nodes, NODE_BYTES, MAX_NODES);
    bool good = node != NULL;
    for (size_t i = 0; good && i < ndeps; i++) {
        good = host_node_depend(node, deps[i]);
    }
    if (!good) {
        if (node) free(node->deps);
        if (node) host_slab_give(&tt_host.graphs.nodes, node);
        return NULL;
    }
    node->graph = graph;
    node->id = node->origin = atomic_fetch_add(&tt_host.graphs.last_node, 1) + 1;
    node->op = *op;
    host_op_note_opened(&node->op);
    node->kind = kinds[op->kind];
    node->share = share;
    if (share) atomic_fetch_add(&share->refs, 1);
    if (op->kind == HOST_OP_GRAPH) op->launch.ops->hold(op->launch.exec);
    node->index = graph->nnodes;
    graph->nodes[graph->nnodes++] = node;
    node->magic = NODE_MAGIC;
    return node;
}

size_t host_node_find_dep(const struct CUgraphNode_st *node, const struct CUgraphNode_st *dep)
{
    size_t at = 0;
    while (at < node->ndeps && node->deps[at] != dep) {
        at++;
    }
    return at;
}

bool host_node_drop_dep(struct CUgraphNode_st *node, const struct CUgraphNode_st *dep)
{
    size_t at = host_node_find_dep(node, dep);
    if (at == node->ndeps) return false;
    node->ndeps--;
    memmove(node->deps + at, node->deps + at + 1, (node->ndeps - at) * sizeof(*node->deps));
    return true;
}

void host_node_remove(struct CUgraphNode_st *node)
{
    struct CUgraph_st *graph = node->graph;
    for (size_t i = 0; i < graph->nnodes; i++) {
        host_node_drop_dep(graph->nodes[i], node);
    }
    graph->nnodes--;
    for (size_t i = node->index; i < graph->nnodes; i++) {
        graph->nodes[i] = graph->nodes[i + 1];
        graph->nodes[i]->index = i;
    }
    host_node_free(node);
}

int tuttiHostGraphCreate(struct CUgraph_st **graph_out)
{
    *graph_out = host_graph_make();
    return *graph_out ? HOST_OK : HOST_OUT_OF_MEMORY;
}

int tuttiHostGraphDestroy(struct CUgraph_st *graph)
{
    if (!host_graph_holds(graph) || graph->capturing || graph->embedded) return HOST_INVALID_VALUE;
    host_graph_free(graph);
    return HOST_OK;
}

int host_node_embed(struct CUgraphNode_st *node, struct CUgraph_st *graph)
{
    int rc = tuttiHostGraphClone(&node->child, graph);
    if (!rc) node->child->embedded = true;
    return rc;
}

/* A node of its own for what `from` does; false: out of memory. */
static bool clone_node(struct CUgraph_st *copy, const struct CUgraphNode_st *from)
{
    struct CUgraphNode_st *node = host_graph_add(copy, NULL, 0, &from->op, from->share);
    if (!node) return false;
    node->kind = from->kind;
    node->origin = from->id;
    node->params = from->params;
    if (!host_attributes_copy(&node->attributes, from->attributes)) return false;
    return !from->child || host_node_embed(node, from->child) == HOST_OK;
}

int tuttiHostGraphClone(struct CUgraph_st **graph_out, struct CUgraph_st *graph)
{
    if (!host_graph_holds(graph)) return HOST_INVALID_VALUE;
    *graph_out = NULL;
    struct CUgraph_st *copy = host_graph_make();
    if (!copy) return HOST_OUT_OF_MEMORY;
    for (size_t i = 0; i < graph->nnodes; i++) {
        if (clone_node(copy, graph->nodes[i])) continue;
        host_graph_free(copy);
        return HOST_OUT_OF_MEMORY;
    }
    bool good = true;
    for (size_t i = 0; i < graph->nnodes; i++) { /* edges last: a node may depend on a later one */
        for (size_t d = 0; good && d < graph->nodes[i]->ndeps; d++) {
            good = host_node_depend(copy->nodes[i], copy->nodes[graph->nodes[i]->deps[d]->index]);
        }
    }
    if (!good || !host_kept_copy(graph->kept, &copy->kept)) {
        host_graph_free(copy);
        return HOST_OUT_OF_MEMORY;
    }
    *graph_out = copy;
    return HOST_OK;
}

int tuttiHostGraphAddEdge(struct CUgraph_st *graph, struct CUgraphNode_st *from,
                          struct CUgraphNode_st *to)
{
    struct CUgraphNode_st *both[] = {from, to};
    if (!host_graph_holds(graph) || !host_nodes_of(graph, both, 2) || from == to)
        return HOST_INVALID_VALUE;
    for (size_t i = 0; i < to->ndeps; i++) {
        if (to->deps[i] == from) return HOST_INVALID_VALUE;
    }
    return host_node_depend(to, from) ? HOST_OK : HOST_OUT_OF_MEMORY;
}

int tuttiHostGraphNodes(struct CUgraph_st *graph, struct CUgraphNode_st **list, size_t *count)
{
    if (!host_graph_holds(graph)) return HOST_INVALID_VALUE;
    for (size_t i = 0; list && i < *count && i < graph->nnodes; i++) {
        list[i] = graph->nodes[i];
    }
    *count = graph->nnodes;
    return HOST_OK;
}

int tuttiHostGraphRoots(struct CUgraph_st *graph, struct CUgraphNode_st **list, size_t *count)
{
    size_t found = 0;
    if (!host_graph_holds(graph)) return HOST_INVALID_VALUE;
    for (size_t i = 0; i < graph->nnodes; i++) {
        if (graph->nodes[i]->ndeps) continue;
        if (list && found < *count) list[found] = graph->nodes[i];
        found++;
    }
    *count = found;
    return HOST_OK;
}

int tuttiHostGraphEdges(struct CUgraph_st *graph, struct CUgraphNode_st **from,
                        struct CUgraphNode_st **to, size_t *count)
{
    size_t found = 0, room = *count;
    if (!host_graph_holds(graph)) return HOST_INVALID_VALUE;
    for (size_t i = 0; i < graph->nnodes; i++) {
        struct CUgraphNode_st *node = graph->nodes[i];
        for (size_t d = 0; d < node->ndeps; d++, found++) {
            if (from && to && found < room) from[found] = node->deps[d];
            if (from && to && found < room) to[found] = node;
        }
    }
    *count = found;
    return HOST_OK;
}

int tuttiHostNodeKind(struct CUgraphNode_st *node, enum tt_node_kind *kind)
{
    if (!host_node_holds(node)) return HOST_INVALID_VALUE;
    *kind = node->kind;
    return HOST_OK;
}
