/* Nodes by what they are to do: what each kind becomes as an operation. */
#include "graph.h"

#include "device/host/host.h"
#include "device/host/stream/event.h"

#include <stdlib.h>
#include <string.h>

/* A dependency may be named once. 1, 2. */
static int check_single(const struct CUgraph_st *graph, struct CUgraphNode_st *const *list,
                        size_t count)
{
    int rc = TT_HOST_OK;
    if (count < 2) return rc;
    bool *seen = calloc(graph->nnodes, sizeof(*seen));
    if (!seen) return TT_HOST_OUT_OF_MEMORY;
    for (size_t i = 0; i < count; i++) {
        if (seen[list[i]->index]) rc = TT_HOST_INVALID_VALUE;
        seen[list[i]->index] = true;
    }
    free(seen);
    return rc;
}

static int item_of_node(const struct tt_node *node, struct tt_host_op *op)
{
    op->kind = TT_HOST_OP_ITEM;
    if (node->kind == TT_NODE_KERNEL) {
        op->item = node->item;
        return node->item ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
    }
    if (node->kind == TT_NODE_ALLOC)
        return tt_host_memory_item(node->ptr, node->bytes, node->device, &op->item);
    if (node->kind == TT_NODE_FREE) return tt_host_memory_free_item(node->ptr, &op->item);
    if (!tt_host_event_holds(node->event)) return TT_HOST_BAD_HANDLE;
    op->item = tt_host_event_item(node->event, node->kind == TT_NODE_WAIT);
    return op->item ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
}

int tt_host_op_of_node(const struct tt_node *node, struct tt_host_op *op)
{
    memset(op, 0, sizeof(*op));
    switch (node->kind) {
    case TT_NODE_COPY:
        op->kind = TT_HOST_OP_COPY;
        op->copy = node->copy;
        tt_host_op_note_opened(op);
        return tt_host_copy_fits(&op->copy) ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
    case TT_NODE_SET:
        op->kind = TT_HOST_OP_SET;
        op->set = node->set;
        tt_host_op_note_opened(op);
        return tt_host_set_fits(op) ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
    case TT_NODE_HOST:
        op->kind = TT_HOST_OP_CALL;
        op->call.fn = node->host.fn;
        op->call.arg = node->host.arg;
        return node->host.fn ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
    case TT_NODE_KERNEL:
    case TT_NODE_WAIT:
    case TT_NODE_RECORD:
    case TT_NODE_ALLOC:
    case TT_NODE_FREE: {
        int rc = item_of_node(node, op);
        if (!rc) tt_host_op_note_opened(op);
        return rc;
    }
    case TT_NODE_GRAPH:
    case TT_NODE_EMPTY: op->kind = TT_HOST_OP_EMPTY; return TT_HOST_OK;
    }
    return TT_HOST_INVALID_VALUE;
}

void tt_host_op_unmake(const struct tt_node *node, const struct tt_host_op *op)
{
    if (op->kind == TT_HOST_OP_ITEM && node->kind != TT_NODE_KERNEL)
        op->item->step(op->item, TT_ITEM_RELEASE);
}

/* NOLINTNEXTLINE(misc-no-recursion): graphs in graphs */
static bool is_within(const struct CUgraph_st *inner, const struct CUgraph_st *graph)
{
    bool found = inner == graph;
    for (size_t i = 0; !found && i < graph->nnodes; i++)
        found = graph->nodes[i]->child && is_within(inner, graph->nodes[i]->child);
    return found;
}

static bool may_embed(const struct CUgraph_st *graph, const struct tt_node *node)
{
    const struct CUgraph_st *child = node->graph;
    if (!tt_host_graph_holds(child) || child == graph || child->moved) return false;
    if (!node->move) return !tt_host_graph_has_memory(child);
    return !child->embedded && !child->capturing && !is_within(graph, child);
}

static int check_add(const struct CUgraph_st *graph, struct CUgraphNode_st *const *deps,
                     size_t ndeps, const struct tt_node *node)
{
    if (!tt_host_graph_holds(graph) || (ndeps && !deps) || !tt_host_nodes_of(graph, deps, ndeps))
        return TT_HOST_INVALID_VALUE;
    if (node->kind == TT_NODE_GRAPH && !may_embed(graph, node)) return TT_HOST_INVALID_VALUE;
    /* an embedded graph gets no memory nodes: what its outer graph promised would not hold */
    if (graph->embedded && (node->kind == TT_NODE_ALLOC || node->kind == TT_NODE_FREE))
        return TT_HOST_INVALID_VALUE;
    return check_single(graph, deps, ndeps);
}

int tuttiHostGraphAdd(struct CUgraph_st *graph, struct CUgraphNode_st *const *deps, size_t ndeps,
                      const struct tt_node *node, struct CUgraphNode_st **node_out)
{
    struct tt_host_op op;
    struct tt_host_item_share *share = NULL;
    struct CUgraphNode_st *made = NULL;
    struct tt_node params = *node;
    if (node->kind == TT_NODE_ALLOC) params.ptr = NULL;
    int rc = check_add(graph, deps, ndeps, node);
    if (!rc && node->kind == TT_NODE_ALLOC)
        rc = tuttiHostMalloc(node->device, node->bytes, &params.ptr);
    if (!rc) rc = tt_host_op_of_node(&params, &op);
    if (rc && node->kind == TT_NODE_ALLOC) tuttiHostFree(params.ptr);
    if (rc) return rc;
    if (op.kind == TT_HOST_OP_ITEM) share = tt_host_share_make(op.item);
    if (share || op.kind != TT_HOST_OP_ITEM)
        made = tt_host_graph_add(graph, deps, ndeps, &op, share);
    if (!made) {
        tt_host_op_unmake(node, &op);
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the item frees itself when unmade */
        free(share);
        return TT_HOST_OUT_OF_MEMORY;
    }
    if (share) atomic_fetch_sub(&share->refs, 1);
    made->kind = node->kind;
    made->params = params;
    *node_out = made;
    if (node->kind != TT_NODE_GRAPH) return TT_HOST_OK;
    rc = tt_host_node_embed(made, node->graph, node->move);
    if (rc) tt_host_node_remove(made);
    return rc;
}
