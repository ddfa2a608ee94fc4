/* Executable graphs: operations in an order that respects the edges, of which any whose
 * predecessors are done may advance. The handle points to a body that launches share; who changes
 * parameters while a launch holds the body gets a copy of his own first. */
#include "graph.h"
#include "host_kernel.h"

#include <stdlib.h>
#include <string.h>

enum { EXEC_MAGIC = 0x65786563, MAX_EXECS = 1 << 20, EXEC_PLACE = 64, HOST_UPDATE_FAILED = 910 };

struct exec_op {
    struct host_op op;
    struct host_item_share *share; /* counted */
    size_t *deps;                  /* owned: indices of earlier operations */
    size_t ndeps;
    uint64_t node; /* id of the node it was made from */
    bool done, disabled;
};

struct host_exec {
    _Atomic int refs;      /* the handle, and queued launches */
    void *_Atomic running; /* token of the launch that is under way; one at a time */
    struct exec_op *ops;   /* owned */
    size_t nops, ndone;
    bool has_calls;
    struct host_kept *kept; /* owned */
};

struct CUgraphExec_st {
    uint32_t magic;
    pthread_mutex_t lock;
    struct host_exec *body; /* counted; changes under the lock */
};

static struct host_slab execs = {
    PTHREAD_MUTEX_INITIALIZER, NULL, EXEC_PLACE, MAX_EXECS, 0, NULL, 0};
_Static_assert(sizeof(struct CUgraphExec_st) <= EXEC_PLACE, "an executable graph fits its place");

static bool is_exec(const struct CUgraphExec_st *exec)
{
    return host_slab_holds(&execs, exec, EXEC_MAGIC);
}

bool tuttiHostExecAlive(const struct CUgraphExec_st *exec)
{
    return is_exec(exec);
}

/* ---- bodies ---- */

static void clear_op(struct exec_op *op)
{
    host_share_drop(op->share);
    if (op->op.kind == HOST_OP_GRAPH) host_exec_drop(op->op.launch.exec);
    free(op->deps);
    memset(op, 0, sizeof(*op));
}

static void free_body(struct host_exec *exec)
{
    for (size_t i = 0; exec->ops && i < exec->nops; i++) {
        clear_op(&exec->ops[i]);
    }
    host_kept_free(exec->kept);
    free(exec->ops);
    free(exec);
}

void host_exec_hold(struct host_exec *exec)
{
    atomic_fetch_add(&exec->refs, 1);
}

void host_exec_drop(struct host_exec *exec)
{
    if (exec && atomic_fetch_sub(&exec->refs, 1) == 1) free_body(exec);
}

static struct host_exec *make_body(size_t nops)
{
    struct host_exec *exec = calloc(1, sizeof(*exec));
    if (!exec) return NULL;
    atomic_store(&exec->refs, 1);
    exec->nops = nops;
    exec->ops = calloc(nops + 1, sizeof(*exec->ops));
    if (exec->ops) return exec;
    free(exec);
    return NULL;
}
static bool deps_placed(const struct CUgraphNode_st *node, const size_t *position)
{
    for (size_t d = 0; d < node->ndeps; d++) {
        if (position[node->deps[d]->index] == SIZE_MAX) return false;
    }
    return true;
}

/* Position of every node in an order that respects the edges; false on a cycle. */
static bool sort_nodes(const struct CUgraph_st *graph, size_t *position)
{
    size_t placed = 0;
    bool moved = true;
    for (size_t i = 0; i < graph->nnodes; i++) {
        position[i] = SIZE_MAX;
    }
    while (placed < graph->nnodes && moved) {
        moved = false;
        for (size_t i = 0; i < graph->nnodes; i++) {
            if (position[i] != SIZE_MAX || !deps_placed(graph->nodes[i], position)) continue;
            position[i] = placed++;
            moved = true;
        }
    }
    return placed == graph->nnodes;
}

static bool has_calls(const struct host_op *op)
{
    return op->kind == HOST_OP_CALL || (op->kind == HOST_OP_GRAPH && op->launch.exec->has_calls);
}

static int fill_op(struct host_exec *exec, const struct CUgraphNode_st *node,
                   const size_t *position)
{
    struct exec_op *op = &exec->ops[position[node->index]];
    op->op = node->op;
    op->node = node->id;
    op->share = node->share;
    if (op->share) atomic_fetch_add(&op->share->refs, 1);
    if (node->child) op->op.kind = HOST_OP_EMPTY; /* until its body is there */
    if (op->op.kind == HOST_OP_GRAPH) host_exec_hold(op->op.launch.exec);
    op->deps = malloc((node->ndeps + 1) * sizeof(*op->deps));
    if (!op->deps) return HOST_OUT_OF_MEMORY;
    for (size_t d = 0; d < node->ndeps; d++) {
        op->deps[op->ndeps++] = position[node->deps[d]->index];
    }
    if (node->child) {
        int rc = host_exec_make(node->child, &op->op.launch.exec);
        if (rc) return rc;
        op->op.kind = HOST_OP_GRAPH;
    }
    if (op->op.kind == HOST_OP_GRAPH) op->op.launch.token = op;
    exec->has_calls = exec->has_calls || has_calls(&op->op);
    return HOST_OK;
}

int host_exec_make(const struct CUgraph_st *graph, struct host_exec **exec_out)
{
    int rc = HOST_OK;
    struct host_exec *exec = make_body(graph->nnodes);
    size_t *position = calloc(graph->nnodes + 1, sizeof(*position));
    if (!exec || !position) {
        rc = HOST_OUT_OF_MEMORY;
    } else if (!sort_nodes(graph, position)) {
        rc = HOST_INVALID_VALUE;
    }
    for (size_t i = 0; !rc && i < graph->nnodes; i++) {
        rc = fill_op(exec, graph->nodes[i], position);
    }
    free(position);
    if (rc) {
        host_exec_drop(exec);
        return rc;
    }
    exec->kept = host_kept_copy(graph->kept);
    *exec_out = exec;
    return HOST_OK;
}

int tuttiHostGraphInstantiate(struct CUgraph_st *graph, struct CUgraphExec_st **exec_out)
{
    struct host_exec *body = NULL;
    if (!host_graph_holds(graph) || graph->capturing) return HOST_INVALID_VALUE;
    int rc = host_exec_make(graph, &body);
    if (rc) return rc;
    struct CUgraphExec_st *exec = host_slab_take(&execs);
    if (!exec) {
        host_exec_drop(body);
        return HOST_OUT_OF_MEMORY;
    }
    pthread_mutex_init(&exec->lock, NULL);
    exec->body = body;
    exec->magic = EXEC_MAGIC;
    *exec_out = exec;
    return HOST_OK;
}

/* ---- running ---- */

static bool deps_done(const struct host_exec *exec, const struct exec_op *op)
{
    for (size_t d = 0; d < op->ndeps; d++) {
        if (!exec->ops[op->deps[d]].done) return false;
    }
    return true;
}

static bool start_launch(struct host_exec *exec, void *token)
{
    void *idle = NULL;
    if (atomic_load(&exec->running) == token) return true;
    if (!atomic_compare_exchange_strong(&exec->running, &idle, token)) return false;
    for (size_t i = 0; i < exec->nops; i++) {
        exec->ops[i].done = false;
    }
    exec->ndone = 0;
    return true;
}

/* Execs of one graph share its items: the launch that began an item ends it. */
static enum tt_step step_item(struct host_exec *exec, struct exec_op *op)
{
    struct host_item_share *share = op->share;
    const void *idle = NULL;
    if (atomic_load_explicit(&share->runner, memory_order_relaxed) != exec &&
        !atomic_compare_exchange_strong(&share->runner, &idle, exec))
        return TT_STEP_WAIT;
    enum tt_step step = share->item->step(share->item, TT_ITEM_STEP);
    if (step == TT_STEP_DONE) atomic_store(&share->runner, NULL);
    return step;
}

static enum tt_step step_op(struct host_exec *exec, struct exec_op *op, bool calls)
{
    if (op->disabled) return TT_STEP_DONE;
    if (op->share && op->op.kind == HOST_OP_ITEM) return step_item(exec, op);
    return host_op_step(&op->op, calls);
}

/* Tell the items in the order of the host's calls that a launch is under way. */
static void issue(const struct host_exec *exec)
{
    for (size_t i = 0; i < exec->nops; i++) {
        const struct exec_op *op = &exec->ops[i];
        if (op->disabled) continue;
        if (op->op.kind == HOST_OP_GRAPH) issue(op->op.launch.exec);
        if (op->share && op->share->item->wants_issue)
            op->share->item->step(op->share->item, TT_ITEM_ISSUE);
    }
}

/* Launches of one exec follow each other: a stream in front holds `running`, so others' launches
 * wait. */
enum tt_step host_exec_step(struct host_exec *exec, void *token, bool calls)
{
    bool progress = false;
    if (!start_launch(exec, token)) return TT_STEP_WAIT;
    for (size_t i = 0; i < exec->nops; i++) {
        struct exec_op *op = &exec->ops[i];
        if (op->done || !deps_done(exec, op)) continue;
        enum tt_step step = step_op(exec, op, calls);
        if (step != TT_STEP_WAIT) progress = true;
        if (step != TT_STEP_DONE) continue;
        op->done = true;
        exec->ndone++;
    }
    if (exec->ndone < exec->nops) return progress ? TT_STEP_PROGRESS : TT_STEP_WAIT;
    atomic_store(&exec->running, NULL);
    return TT_STEP_DONE;
}

static int launch_inline(struct host_exec *exec, struct CUstream_st *stream,
                         const struct host_op *op)
{
    enum tt_step step = TT_STEP_PROGRESS;
    issue(exec);
    for (int polls = 0; step != TT_STEP_DONE && polls < 100; polls++) {
        step = host_exec_step(exec, stream, false);
    }
    if (step != TT_STEP_DONE) return host_stream_park(stream, op);
    host_stream_release(stream);
    host_exec_drop(exec);
    return HOST_OK;
}

static struct host_exec *hold_body(struct CUgraphExec_st *exec)
{
    pthread_mutex_lock(&exec->lock);
    struct host_exec *body = exec->body;
    host_exec_hold(body);
    pthread_mutex_unlock(&exec->lock);
    return body;
}

int tuttiHostGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!is_exec(exec)) return HOST_INVALID_VALUE;
    if (!stream) return HOST_BAD_HANDLE;
    struct host_exec *body = hold_body(exec);
    struct host_op op = {.kind = HOST_OP_GRAPH, .launch = {body, stream}};
    int rc;
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed)) {
        rc = host_capture_add(stream, &op); /* the node has a reference of its own */
        host_exec_drop(body);
        return rc;
    }
    if (!body->has_calls && !atomic_load(&body->running) && host_stream_claim_idle(stream))
        return launch_inline(body, stream, &op);
    host_exec_hold(body); /* the launch may be over before its items are told */
    rc = host_stream_append(stream, &op);
    if (!rc) issue(body);
    if (rc) host_exec_drop(body);
    host_exec_drop(body);
    return rc;
}

int tuttiHostGraphExecDestroy(struct CUgraphExec_st *exec)
{
    if (!is_exec(exec)) return HOST_INVALID_VALUE;
    exec->magic = 0;
    host_exec_drop(exec->body);
    pthread_mutex_destroy(&exec->lock);
    host_slab_give(&execs, exec);
    return HOST_OK;
}

/* ---- changes ---- */

static struct host_exec *copy_body(const struct host_exec *from)
{
    struct host_exec *exec = make_body(from->nops);
    for (size_t i = 0; exec && i < from->nops; i++) {
        struct exec_op *op = &exec->ops[i];
        *op = from->ops[i];
        op->deps = malloc((op->ndeps + 1) * sizeof(*op->deps));
        if (op->share) atomic_fetch_add(&op->share->refs, 1);
        if (op->op.kind == HOST_OP_GRAPH) host_exec_hold(op->op.launch.exec);
        if (op->op.kind == HOST_OP_GRAPH) op->op.launch.token = op;
        if (!op->deps) {
            host_exec_drop(exec);
            return NULL;
        }
        memcpy(op->deps, from->ops[i].deps, op->ndeps * sizeof(*op->deps));
    }
    if (!exec) return NULL;
    exec->has_calls = from->has_calls;
    exec->kept = host_kept_copy(from->kept);
    return exec;
}

/* A body that no launch holds. Lock held. */
static bool own_body(struct CUgraphExec_st *exec)
{
    if (atomic_load(&exec->body->refs) == 1) return true;
    struct host_exec *copy = copy_body(exec->body);
    if (!copy) return false;
    host_exec_drop(exec->body);
    exec->body = copy;
    return true;
}

static struct exec_op *find_op(struct host_exec *exec, const struct CUgraphNode_st *node)
{
    for (size_t i = 0; i < exec->nops; i++) {
        if (exec->ops[i].node == node->id || exec->ops[i].node == node->origin)
            return &exec->ops[i];
    }
    return NULL;
}

static int replace_op(struct host_exec *exec, struct exec_op *old, const struct tt_node *params)
{
    struct host_op op;
    if (params->kind == TT_NODE_GRAPH || params->kind == TT_NODE_ALLOC) return HOST_INVALID_VALUE;
    int rc = host_op_of_node(params, &op);
    if (rc) return rc;
    struct host_item_share *share = NULL;
    if (op.kind == HOST_OP_ITEM && op.kind == old->op.kind) share = host_share_make(op.item);
    if (op.kind != old->op.kind || (op.kind == HOST_OP_ITEM && !share)) {
        rc = op.kind != old->op.kind ? HOST_INVALID_VALUE : HOST_OUT_OF_MEMORY;
        host_op_unmake(params, &op);
        return rc;
    }
    host_share_drop(old->share);
    old->op = op;
    old->share = share;
    exec->has_calls = exec->has_calls || has_calls(&op);
    return HOST_OK;
}

int tuttiHostExecNodeSet(struct CUgraphExec_st *exec, struct CUgraphNode_st *node,
                         const struct tt_node *what)
{
    if (!is_exec(exec) || !host_node_holds(node) || node->kind != what->kind)
        return HOST_INVALID_VALUE;
    pthread_mutex_lock(&exec->lock);
    int rc = own_body(exec) ? HOST_OK : HOST_OUT_OF_MEMORY;
    struct exec_op *op = rc ? NULL : find_op(exec->body, node);
    if (!rc) rc = op ? replace_op(exec->body, op, what) : HOST_INVALID_VALUE;
    pthread_mutex_unlock(&exec->lock);
    return rc;
}

int tuttiHostExecNodeEnable(struct CUgraphExec_st *exec, struct CUgraphNode_st *node, bool enabled)
{
    if (!is_exec(exec) || !host_node_holds(node)) return HOST_INVALID_VALUE;
    bool fit =
        node->kind == TT_NODE_KERNEL || node->kind == TT_NODE_COPY || node->kind == TT_NODE_SET;
    if (!fit) return HOST_INVALID_VALUE;
    pthread_mutex_lock(&exec->lock);
    int rc = own_body(exec) ? HOST_OK : HOST_OUT_OF_MEMORY;
    struct exec_op *op = rc ? NULL : find_op(exec->body, node);
    if (!rc && !op) rc = HOST_INVALID_VALUE;
    if (op) op->disabled = !enabled;
    pthread_mutex_unlock(&exec->lock);
    return rc;
}

int tuttiHostExecNodeEnabled(struct CUgraphExec_st *exec, struct CUgraphNode_st *node,
                             bool *enabled)
{
    if (!is_exec(exec) || !host_node_holds(node)) return HOST_INVALID_VALUE;
    pthread_mutex_lock(&exec->lock);
    const struct exec_op *op = find_op(exec->body, node);
    if (op) *enabled = !op->disabled;
    pthread_mutex_unlock(&exec->lock);
    return op ? HOST_OK : HOST_INVALID_VALUE;
}

/* ---- updates ---- */

static const void *function_of(const struct exec_op *op)
{
    struct tt_launch launch;
    return op->share && tuttiHostKernelOf(op->share->item, &launch) ? launch.function : NULL;
}

static enum tt_update compare_ops(const struct exec_op *old, const struct exec_op *fresh)
{
    if (old->ndeps != fresh->ndeps) return TT_UPDATE_TOPOLOGY;
    for (size_t d = 0; d < old->ndeps; d++) {
        if (old->deps[d] != fresh->deps[d]) return TT_UPDATE_TOPOLOGY;
    }
    if (old->op.kind != fresh->op.kind) return TT_UPDATE_KIND;
    return function_of(old) != function_of(fresh) ? TT_UPDATE_PARAMETERS : TT_UPDATE_OK;
}

static struct CUgraphNode_st *node_by_id(const struct CUgraph_st *graph, uint64_t id)
{
    for (size_t i = 0; i < graph->nnodes; i++) {
        if (graph->nodes[i]->id == id) return graph->nodes[i];
    }
    return NULL;
}

/* What may not change is the same in both; names the first operation where it is not. */
static enum tt_update compare_bodies(const struct host_exec *old, const struct host_exec *fresh,
                                     uint64_t *node)
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

int tuttiHostExecUpdate(struct CUgraphExec_st *exec, struct CUgraph_st *graph,
                        enum tt_update *reason, struct CUgraphNode_st **node)
{
    struct host_exec *fresh = NULL;
    uint64_t first = 0;
    *reason = TT_UPDATE_ERROR;
    *node = NULL;
    if (!is_exec(exec) || !host_graph_holds(graph) || graph->capturing) return HOST_INVALID_VALUE;
    int rc = host_exec_make(graph, &fresh);
    if (rc) return rc;
    pthread_mutex_lock(&exec->lock);
    *reason = compare_bodies(exec->body, fresh, &first);
    if (*reason == TT_UPDATE_OK) {
        struct host_exec *old = exec->body;
        for (size_t i = 0; i < fresh->nops; i++) { /* the nodes of the first graph stay its names */
            fresh->ops[i].node = old->ops[i].node;
        }
        exec->body = fresh;
        fresh = old;
    } else {
        *node = node_by_id(graph, first);
    }
    pthread_mutex_unlock(&exec->lock);
    host_exec_drop(fresh);
    return *reason == TT_UPDATE_OK ? HOST_OK : HOST_UPDATE_FAILED;
}
