/* Questions about nodes and changes of graphs. */
#include "graph.h"

#include <stdlib.h>
#include <string.h>

int tuttiHostNodeGet(struct CUgraphNode_st *node, struct tt_node *node_out)
{
    if (!tt_host_node_holds(node)) return TT_HOST_INVALID_VALUE;
    memset(node_out, 0, sizeof(*node_out));
    node_out->kind = node->kind;
    switch (node->kind) {
    case TT_NODE_COPY: node_out->copy = node->op.copy; break;
    case TT_NODE_SET: node_out->set = node->op.set; break;
    case TT_NODE_HOST:
        node_out->host.fn = node->op.call.fn;
        node_out->host.arg = node->op.call.arg;
        break;
    case TT_NODE_KERNEL: node_out->item = node->share ? node->share->item : NULL; break;
    case TT_NODE_GRAPH: node_out->graph = node->child; break;
    default: *node_out = node->params; break;
    }
    return TT_HOST_OK;
}

int tuttiHostNodeSet(struct CUgraphNode_st *node, const struct tt_node *params)
{
    struct tt_host_op op;
    struct tt_host_item_share *share = NULL;
    if (!tt_host_node_holds(node) || params->kind != node->kind || node->kind == TT_NODE_GRAPH)
        return TT_HOST_INVALID_VALUE;
    if (node->kind == TT_NODE_ALLOC || node->kind == TT_NODE_FREE) return TT_HOST_INVALID_VALUE;
    int rc = tt_host_op_of_node(params, &op);
    if (rc) return rc;
    if (op.kind == TT_HOST_OP_ITEM) {
        share = tt_host_share_make(op.item);
        if (!share) tt_host_op_unmake(params, &op);
        if (!share) return TT_HOST_OUT_OF_MEMORY;
        tt_host_share_drop(node->share);
    }
    node->op = op;
    node->share = share;
    node->params = *params;
    return TT_HOST_OK;
}

/* ---- edges ---- */

int tuttiHostNodeBefore(struct CUgraphNode_st *node, struct CUgraphNode_st **list, size_t *count)
{
    if (!tt_host_node_holds(node)) return TT_HOST_INVALID_VALUE;
    for (size_t i = 0; list && i < *count && i < node->ndeps; i++) {
        list[i] = node->deps[i];
    }
    *count = node->ndeps;
    return TT_HOST_OK;
}

int tuttiHostNodeAfter(struct CUgraphNode_st *node, struct CUgraphNode_st **list, size_t *count)
{
    size_t found = 0;
    if (!tt_host_node_holds(node)) return TT_HOST_INVALID_VALUE;
    for (size_t i = 0; i < node->graph->nnodes; i++) {
        struct CUgraphNode_st *other = node->graph->nodes[i];
        if (tt_host_node_find_dep(other, node) == other->ndeps) continue;
        if (list && found < *count) list[found] = other;
        found++;
    }
    *count = found;
    return TT_HOST_OK;
}

int tuttiHostGraphRemoveEdge(struct CUgraph_st *graph, struct CUgraphNode_st *from,
                             struct CUgraphNode_st *to)
{
    struct CUgraphNode_st *both[] = {from, to};
    if (!tt_host_graph_holds(graph) || !tt_host_nodes_of(graph, both, 2))
        return TT_HOST_INVALID_VALUE;
    if (tt_host_graph_has_memory(graph)) return TT_HOST_INVALID_VALUE;
    return tt_host_node_drop_dep(to, from) ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

int tuttiHostNodeDestroy(struct CUgraphNode_st *node)
{
    if (!tt_host_node_holds(node) || node->graph->capturing ||
        tt_host_graph_has_memory(node->graph))
        return TT_HOST_INVALID_VALUE;
    tt_host_node_remove(node);
    return TT_HOST_OK;
}

int tuttiHostNodeInClone(struct CUgraphNode_st *node, struct CUgraph_st *clone,
                         struct CUgraphNode_st **node_out)
{
    if (!tt_host_graph_holds(clone) || !tt_host_node_holds(node)) return TT_HOST_INVALID_VALUE;
    for (size_t i = 0; i < clone->nnodes; i++) {
        if (clone->nodes[i]->origin != node->id || clone->nodes[i] == node) continue;
        *node_out = clone->nodes[i];
        return TT_HOST_OK;
    }
    return TT_HOST_INVALID_VALUE;
}

/* ---- launch attributes of kernel nodes ---- */

static bool is_kernel(const struct CUgraphNode_st *node)
{
    return tt_host_node_holds(node) && node->kind == TT_NODE_KERNEL;
}

int tuttiHostNodeAttributeSet(struct CUgraphNode_st *node, int id, const void *value)
{
    if (!is_kernel(node)) return TT_HOST_INVALID_VALUE;
    return tt_host_attributes_set(&node->attributes, id, value) ? TT_HOST_OK
                                                                : TT_HOST_OUT_OF_MEMORY;
}

int tuttiHostNodeAttributeGet(struct CUgraphNode_st *node, int id, void *value)
{
    if (!is_kernel(node)) return TT_HOST_INVALID_VALUE;
    const void *kept = tt_host_attributes_get(node->attributes, id);
    if (kept) memcpy(value, kept, TT_ATTRIBUTE_BYTES);
    return TT_HOST_OK;
}

int tuttiHostNodeAttributesCopy(struct CUgraphNode_st *to, struct CUgraphNode_st *from)
{
    if (!is_kernel(to) || !is_kernel(from)) return TT_HOST_INVALID_VALUE;
    return tt_host_attributes_copy(&to->attributes, from->attributes) ? TT_HOST_OK
                                                                      : TT_HOST_OUT_OF_MEMORY;
}
