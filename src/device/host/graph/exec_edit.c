/* Changes of executable graphs: one operation, or all of them. A change of parameters while a
 * launch holds the body is made in a copy. */
#include "device/host/host.h"
#include "exec.h"

/* A body that no launch holds. Lock held. */
static bool own_body(struct CUgraphExec_st *exec)
{
    if (atomic_load(&exec->body->refs) == 1) return true;
    struct tt_host_exec *copy = tt_host_exec_copy(exec->body, exec->body->launches);
    if (!copy) return false;
    tt_host_exec_drop(exec->body);
    exec->body = copy;
    return true;
}

static struct exec_op *find_op(struct tt_host_exec *exec, const struct CUgraphNode_st *node)
{
    for (size_t i = 0; i < exec->nops; i++) {
        if (exec->ops[i].node == node->id || exec->ops[i].node == node->origin)
            return &exec->ops[i];
    }
    return NULL;
}

/* ---- what may change ---- */

/* Memory that one device holds, or the host, stays there. */
static bool same_address(const void *a, const void *b)
{
    struct tt_pointer old, fresh;
    tuttiHostPointer(a, &old);
    tuttiHostPointer(b, &fresh);
    bool device = old.kind == TT_MEMORY_DEVICE;
    return device == (fresh.kind == TT_MEMORY_DEVICE) && (!device || old.device == fresh.device);
}

static bool is_flat(const struct tt_host_op *op)
{
    if (op->kind == TT_HOST_OP_SET) return op->set.height <= 1;
    return op->copy.height <= 1 && op->copy.depth <= 1;
}

static bool same_addresses(const struct tt_host_op *old, const struct tt_host_op *fresh)
{
    if (old->kind == TT_HOST_OP_SET) return same_address(old->set.ptr, fresh->set.ptr);
    if (old->kind != TT_HOST_OP_COPY) return true;
    return same_address(old->copy.dst, fresh->copy.dst) &&
           same_address(old->copy.src, fresh->copy.src);
}

/* Of a fill with rows only the address and the value may change in an update. */
static bool same_box(const struct tt_host_op *old, const struct tt_host_op *fresh)
{
    if (old->kind != TT_HOST_OP_SET || is_flat(old)) return true;
    return old->set.elem_bytes == fresh->set.elem_bytes && old->set.pitch == fresh->set.pitch &&
           old->set.width == fresh->set.width && old->set.height == fresh->set.height;
}

static enum tt_update compare_bodies(const struct tt_host_exec *old,
                                     const struct tt_host_exec *fresh, uint64_t *node);

static enum tt_update compare_ops(const struct exec_op *old, const struct exec_op *fresh)
{
    uint64_t inside;
    if (old->ndeps != fresh->ndeps) return TT_UPDATE_TOPOLOGY;
    for (size_t d = 0; d < old->ndeps; d++) {
        if (old->deps[d] != fresh->deps[d]) return TT_UPDATE_TOPOLOGY;
    }
    if (old->kind != fresh->kind || old->op.kind != fresh->op.kind) return TT_UPDATE_KIND;
    if (!same_addresses(&old->op, &fresh->op) || !same_box(&old->op, &fresh->op))
        return TT_UPDATE_PARAMETERS;
    if (old->op.kind != TT_HOST_OP_GRAPH) return TT_UPDATE_OK;
    return compare_bodies(old->op.launch.exec, fresh->op.launch.exec, &inside);
}

/* What may not change is the same in both; names the first operation where it is not. Depth is that
 * of graphs in graphs. */
/* NOLINTNEXTLINE(misc-no-recursion): a graph in a graph is compared as the outer one is */
static enum tt_update compare_bodies(const struct tt_host_exec *old,
                                     const struct tt_host_exec *fresh, uint64_t *node)
{
    *node = 0;
    if (old->nops != fresh->nops) return TT_UPDATE_TOPOLOGY;
    for (size_t i = 0; i < old->nops; i++) {
        enum tt_update found = compare_ops(&old->ops[i], &fresh->ops[i]);
        *node = fresh->ops[i].node;
        if (found != TT_UPDATE_OK) return found;
    }
    return TT_UPDATE_OK;
}

/* The nodes of the first graph stay the names of the operations. */
static void keep_names(struct tt_host_exec *fresh, const struct tt_host_exec *old)
{
    for (size_t i = 0; i < fresh->nops; i++) {
        fresh->ops[i].node = old->ops[i].node;
        fresh->ops[i].disabled = old->ops[i].disabled;
    }
}

/* ---- one operation ---- */

static int replace_child(struct exec_op *old, const struct CUgraph_st *graph)
{
    struct tt_host_exec *fresh = NULL;
    uint64_t node;
    if (!tt_host_graph_holds(graph) || old->op.kind != TT_HOST_OP_GRAPH)
        return TT_HOST_INVALID_VALUE;
    int rc = tt_host_exec_make(graph, &fresh);
    if (!rc && compare_bodies(old->op.launch.exec, fresh, &node) != TT_UPDATE_OK)
        rc = TT_HOST_INVALID_VALUE;
    if (rc) {
        tt_host_exec_drop(fresh);
        return rc;
    }
    keep_names(fresh, old->op.launch.exec);
    tt_host_exec_drop(old->op.launch.exec);
    old->op.launch.exec = fresh;
    return TT_HOST_OK;
}

static bool may_replace(const struct tt_host_op *old, const struct tt_host_op *fresh)
{
    if (old->kind != fresh->kind) return false;
    if (old->kind != TT_HOST_OP_COPY && old->kind != TT_HOST_OP_SET) return true;
    return is_flat(old) && is_flat(fresh) && same_addresses(old, fresh);
}

static int replace_op(struct tt_host_exec *exec, struct exec_op *old, const struct tt_node *params)
{
    struct tt_host_op op;
    if (params->kind == TT_NODE_ALLOC || params->kind == TT_NODE_FREE) return TT_HOST_INVALID_VALUE;
    if (params->kind == TT_NODE_GRAPH) {
        int rc = replace_child(old, params->graph);
        exec->has_calls = exec->has_calls || tt_host_op_has_calls(&old->op);
        exec->has_opened = exec->has_opened || tt_host_op_has_opened(&old->op);
        return rc;
    }
    int rc = tt_host_op_of_node(params, &op);
    if (rc) return rc;
    struct tt_host_item_share *share = NULL;
    bool good = may_replace(&old->op, &op);
    if (good && op.kind == TT_HOST_OP_ITEM) share = tt_host_share_make(op.item);
    if (!good || (op.kind == TT_HOST_OP_ITEM && !share)) {
        tt_host_op_unmake(params, &op);
        return good ? TT_HOST_OUT_OF_MEMORY : TT_HOST_INVALID_VALUE;
    }
    tt_host_share_drop(old->share);
    old->op = op;
    old->share = share;
    exec->has_calls = exec->has_calls || tt_host_op_has_calls(&op);
    exec->has_opened = exec->has_opened || tt_host_op_has_opened(&op);
    return TT_HOST_OK;
}

int tuttiHostExecNodeSet(struct CUgraphExec_st *exec, struct CUgraphNode_st *node,
                         const struct tt_node *what)
{
    if (!tt_host_exec_holds(exec) || !tt_host_node_holds(node) || node->kind != what->kind)
        return TT_HOST_INVALID_VALUE;
    tt_host_spinlock_lock(&exec->lock);
    int rc = own_body(exec) ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
    struct exec_op *op = rc ? NULL : find_op(exec->body, node);
    if (!rc) rc = op ? replace_op(exec->body, op, what) : TT_HOST_INVALID_VALUE;
    tt_host_spinlock_unlock(&exec->lock);
    return rc;
}

int tuttiHostExecNodeEnable(struct CUgraphExec_st *exec, struct CUgraphNode_st *node, bool enabled)
{
    if (!tt_host_exec_holds(exec) || !tt_host_node_holds(node)) return TT_HOST_INVALID_VALUE;
    bool fit =
        node->kind == TT_NODE_KERNEL || node->kind == TT_NODE_COPY || node->kind == TT_NODE_SET;
    if (!fit) return TT_HOST_INVALID_VALUE;
    tt_host_spinlock_lock(&exec->lock);
    int rc = own_body(exec) ? TT_HOST_OK : TT_HOST_OUT_OF_MEMORY;
    struct exec_op *op = rc ? NULL : find_op(exec->body, node);
    if (!rc && !op) rc = TT_HOST_INVALID_VALUE;
    if (op) op->disabled = !enabled;
    tt_host_spinlock_unlock(&exec->lock);
    return rc;
}

int tuttiHostExecNodeEnabled(struct CUgraphExec_st *exec, struct CUgraphNode_st *node,
                             bool *enabled)
{
    if (!tt_host_exec_holds(exec) || !tt_host_node_holds(node)) return TT_HOST_INVALID_VALUE;
    tt_host_spinlock_lock(&exec->lock);
    const struct exec_op *op = find_op(exec->body, node);
    if (op) *enabled = !op->disabled;
    tt_host_spinlock_unlock(&exec->lock);
    return op ? TT_HOST_OK : TT_HOST_INVALID_VALUE;
}

/* ---- all of them ---- */

static struct CUgraphNode_st *node_by_id(const struct CUgraph_st *graph, uint64_t id)
{
    for (size_t i = 0; i < graph->nnodes; i++) {
        if (graph->nodes[i]->id == id) return graph->nodes[i];
    }
    return NULL;
}

int tuttiHostExecUpdate(struct CUgraphExec_st *exec, struct CUgraph_st *graph,
                        enum tt_update *reason, struct CUgraphNode_st **node)
{
    struct tt_host_exec *fresh = NULL;
    uint64_t first = 0;
    *reason = TT_UPDATE_ERROR;
    *node = NULL;
    if (!tt_host_exec_holds(exec) || !tt_host_graph_holds(graph) || graph->capturing ||
        graph->moved)
        return TT_HOST_INVALID_VALUE;
    int rc = tt_host_exec_make(graph, &fresh);
    if (rc) return rc;
    tt_host_spinlock_lock(&exec->lock);
    fresh->launches = exec->body->launches;
    atomic_fetch_add(&fresh->launches->refs, 1);
    *reason = compare_bodies(exec->body, fresh, &first);
    if (*reason == TT_UPDATE_OK) {
        struct tt_host_exec *old = exec->body;
        keep_names(fresh, old);
        tt_host_exec_note_instance(old, false);
        tt_host_exec_note_instance(fresh, true);
        exec->body = fresh;
        fresh = old;
    } else {
        *node = node_by_id(graph, first);
    }
    tt_host_spinlock_unlock(&exec->lock);
    tt_host_exec_drop(fresh);
    return *reason == TT_UPDATE_OK ? TT_HOST_OK : TT_HOST_UPDATE_FAILURE;
}
