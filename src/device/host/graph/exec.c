/* Executable graphs: operations in an order that respects the edges, of which any whose
 * predecessors are done may advance. The handle points to a body that launches share. */
#include "exec.h"

#include "device/host/host_vmm.h"

#include <stdlib.h>
#include <string.h>

enum { EXEC_MAGIC = 0x65786563, MAX_EXECS = 1 << 20, EXEC_PLACE = 64, AUTO_FREE = 1 };

_Static_assert(sizeof(struct CUgraphExec_st) <= EXEC_PLACE, "an executable graph fits its place");

bool host_exec_holds(const struct CUgraphExec_st *exec)
{
    return host_slab_holds(&tt_host.graphs.execs, exec, EXEC_MAGIC);
}

bool tuttiHostExecAlive(const struct CUgraphExec_st *exec)
{
    return host_exec_holds(exec);
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

struct host_exec *host_exec_body(size_t nops)
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

bool host_op_has_calls(const struct host_op *op)
{
    return op->kind == HOST_OP_CALL || (op->kind == HOST_OP_GRAPH && op->launch.exec->has_calls);
}

static int fill_op(struct host_exec *exec, const struct CUgraphNode_st *node,
                   const size_t *position)
{
    struct exec_op *op = &exec->ops[position[node->index]];
    op->kind = node->kind;
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
    exec->has_calls = exec->has_calls || host_op_has_calls(&op->op);
    exec->has_memory =
        exec->has_memory || node->kind == TT_NODE_ALLOC || node->kind == TT_NODE_FREE;
    return HOST_OK;
}

int host_exec_make(const struct CUgraph_st *graph, struct host_exec **exec_out)
{
    int rc = HOST_OK;
    struct host_exec *exec = host_exec_body(graph->nnodes);
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

int tuttiHostGraphInstantiate(struct CUgraph_st *graph, unsigned flags,
                              struct CUgraphExec_st **exec_out)
{
    struct host_exec *body = NULL;
    if (!host_graph_holds(graph) || graph->capturing) return HOST_INVALID_VALUE;
    int rc = host_exec_make(graph, &body);
    if (rc) return rc;
    struct CUgraphExec_st *exec = host_slab_take(&tt_host.graphs.execs, EXEC_PLACE, MAX_EXECS);
    if (!exec) {
        host_exec_drop(body);
        return HOST_OUT_OF_MEMORY;
    }
    pthread_mutex_init(&exec->lock, NULL);
    exec->flags = flags;
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

/* Memory of the last launch must have been freed, or may be freed now. */
static bool claim_memory(const struct host_exec *body, bool again)
{
    if (!body->has_memory) return true;
    for (size_t i = 0; !again && i < body->nops; i++) {
        const struct host_item_share *share = body->ops[i].share;
        if (share && host_memory_claimed(share->item)) return false;
    }
    for (size_t i = 0; i < body->nops; i++) {
        if (body->ops[i].share) host_memory_claim(body->ops[i].share->item);
    }
    return true;
}

/* What was mapped when a node was made may have been unmapped since. */
static bool is_mapped(const struct host_exec *body)
{
    bool good = true;
    for (size_t i = 0; good && i < body->nops; i++) {
        const struct host_op *op = &body->ops[i].op;
        if (body->ops[i].disabled) continue;
        good = host_op_is_mapped(op);
        if (op->kind == HOST_OP_GRAPH) good = is_mapped(op->launch.exec);
    }
    return good;
}

int tuttiHostGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!host_exec_holds(exec)) return HOST_INVALID_VALUE;
    if (!stream) return HOST_BAD_HANDLE;
    struct host_exec *body = hold_body(exec);
    struct host_op op = {.kind = HOST_OP_GRAPH, .launch = {body, stream}};
    int rc;
    if (atomic_load_explicit(&stream->capture, memory_order_relaxed)) {
        rc = host_capture_add(stream, &op); /* the node has a reference of its own */
        host_exec_drop(body);
        return rc;
    }
    bool lost = tuttiHostAnyReserved() && !is_mapped(body);
    if (lost || !claim_memory(body, exec->flags & AUTO_FREE)) {
        host_exec_drop(body);
        return HOST_INVALID_VALUE;
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

int tuttiHostExecFlags(const struct CUgraphExec_st *exec, unsigned *flags)
{
    if (!host_exec_holds(exec)) return HOST_INVALID_VALUE;
    *flags = exec->flags;
    return HOST_OK;
}

int tuttiHostGraphExecDestroy(struct CUgraphExec_st *exec)
{
    if (!host_exec_holds(exec)) return HOST_INVALID_VALUE;
    exec->magic = 0;
    host_exec_drop(exec->body);
    pthread_mutex_destroy(&exec->lock);
    host_slab_give(&tt_host.graphs.execs, exec);
    return HOST_OK;
}
