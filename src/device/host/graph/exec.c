/* Executable graphs: operations in an order that respects the edges, of which any whose
 * predecessors are done may advance. The handle points to a body that launches share. */
#include "exec.h"

#include "capture.h"

#include "device/host/check/check.h"
#include "device/host/host_vmm.h"
#include "device/host/stream/claim.h"

#include <stdlib.h>
#include <string.h>

enum { EXEC_MAGIC = 0x65786563, MAX_EXECS = 1 << 20, EXEC_BYTES = 64, AUTO_FREE = 1 };
enum { INLINE_STEPS = 100 }; /* of a launch within its call */

_Static_assert(sizeof(struct CUgraphExec_st) <= EXEC_BYTES,
               "an executable graph fits its slot of the slab");

bool tt_host_exec_holds(const struct CUgraphExec_st *exec)
{
    return tt_host_slab_holds(&tt_host.graphs.execs, exec, EXEC_MAGIC);
}

bool tuttiHostExecAlive(const struct CUgraphExec_st *exec)
{
    return tt_host_exec_holds(exec);
}

/* ---- bodies ---- */

static void clear_op(struct exec_op *op)
{
    tt_host_share_drop(op->share);
    if (op->op.kind == TT_HOST_OP_GRAPH) tt_host_exec_drop(op->op.launch.exec);
    free(op->deps);
    memset(op, 0, sizeof(*op));
}

static void free_body(struct tt_host_exec *exec)
{
    for (size_t i = 0; exec->ops && i < exec->nops; i++) {
        clear_op(&exec->ops[i]);
    }
    tt_host_kept_free(exec->kept);
    if (exec->launches && atomic_fetch_sub(&exec->launches->refs, 1) == 1) free(exec->launches);
    free(exec->ops);
    free(exec->runs);
    free(exec);
}

static void exec_hold(struct tt_host_exec *exec)
{
    atomic_fetch_add(&exec->refs, 1);
}

void tt_host_exec_drop(struct tt_host_exec *exec)
{
    if (exec && atomic_fetch_sub(&exec->refs, 1) == 1) free_body(exec);
}

/* A body of nops empty operations that shares what orders launches (or NULL), or NULL. */
static struct tt_host_exec *make_body(size_t nops, struct tt_host_launches *launches)
{
    struct tt_host_exec *exec = calloc(1, sizeof(*exec));
    if (!exec) return NULL;
    atomic_store(&exec->refs, 1);
    exec->nops = nops;
    exec->ops = calloc(nops + 1, sizeof(*exec->ops));
    exec->runs = calloc(nops + 1, sizeof(*exec->runs));
    exec->launches = launches;
    if (launches) atomic_fetch_add(&launches->refs, 1);
    if (exec->ops && exec->runs) return exec;
    free_body(exec);
    return NULL;
}

/* Each executable has event items of its own; others are shared. False when out of memory. */
static bool share_item(struct exec_op *op, struct tt_host_item_share *share)
{
    op->share = share;
    if (!share) return true;
    if (op->kind != TT_NODE_WAIT && op->kind != TT_NODE_RECORD) {
        atomic_fetch_add(&share->refs, 1);
        return true;
    }
    struct tt_item *item = tt_host_event_item_again(share->item);
    op->share = item ? tt_host_share_make(item) : NULL;
    if (item && !op->share) item->step(item, TT_ITEM_RELEASE);
    return op->share != NULL;
}

/* False when out of memory; what *to has then can be dropped. */
static bool copy_op(struct exec_op *to, const struct exec_op *from)
{
    *to = *from;
    to->deps = malloc((from->ndeps + 1) * sizeof(*to->deps));
    bool good = share_item(to, from->share) && to->deps;
    if (to->op.kind == TT_HOST_OP_GRAPH) {
        to->op.launch.exec = tt_host_exec_copy(from->op.launch.exec, NULL);
        if (!to->op.launch.exec) to->op.kind = TT_HOST_OP_EMPTY;
    }
    if (to->deps) memcpy(to->deps, from->deps, from->ndeps * sizeof(*to->deps));
    return good && to->op.kind == from->op.kind;
}

/* NOLINTNEXTLINE(misc-no-recursion): a graph in a graph is copied as the outer one is */
struct tt_host_exec *tt_host_exec_copy(const struct tt_host_exec *from,
                                       struct tt_host_launches *launches)
{
    struct tt_host_exec *exec = make_body(from->nops, launches);
    if (!exec) return NULL;
    for (size_t i = 0; i < from->nops; i++) {
        if (copy_op(&exec->ops[i], &from->ops[i])) continue;
        tt_host_exec_drop(exec);
        return NULL;
    }
    exec->has_calls = from->has_calls;
    exec->has_memory = from->has_memory;
    exec->has_opened = from->has_opened;
    if (tt_host_kept_copy(from->kept, &exec->kept)) return exec;
    tt_host_exec_drop(exec);
    return NULL;
}

static bool deps_sorted(const struct CUgraphNode_st *node, const size_t *position)
{
    for (size_t d = 0; d < node->ndeps; d++) {
        if (position[node->deps[d]->index] == SIZE_MAX) return false;
    }
    return true;
}

/* Position of every node in an order that respects the edges; false on a cycle. */
static bool sort_nodes(const struct CUgraph_st *graph, size_t *position)
{
    size_t sorted = 0;
    bool moved = true;
    for (size_t i = 0; i < graph->nnodes; i++) {
        position[i] = SIZE_MAX;
    }
    while (sorted < graph->nnodes && moved) {
        moved = false;
        for (size_t i = 0; i < graph->nnodes; i++) {
            if (position[i] != SIZE_MAX || !deps_sorted(graph->nodes[i], position)) continue;
            position[i] = sorted++;
            moved = true;
        }
    }
    return sorted == graph->nnodes;
}

bool tt_host_op_has_calls(const struct tt_host_op *op)
{
    return op->kind == TT_HOST_OP_CALL ||
           (op->kind == TT_HOST_OP_GRAPH && op->launch.exec->has_calls);
}

bool tt_host_op_has_opened(const struct tt_host_op *op)
{
    return op->opened || (op->kind == TT_HOST_OP_GRAPH && op->launch.exec->has_opened);
}

/* The graph below a node: made anew, or of a captured launch. */
static int fill_inner(struct tt_host_exec *exec, const struct CUgraphNode_st *node,
                      struct exec_op *op)
{
    struct tt_host_exec *inner = NULL;
    int rc = node->child ? tt_host_exec_make(node->child, &inner) : TT_HOST_OK;
    if (!node->child) inner = tt_host_exec_copy(node->op.launch.exec, NULL);
    if (!inner) return rc ? rc : TT_HOST_OUT_OF_MEMORY;
    op->op = (struct tt_host_op){.kind = TT_HOST_OP_GRAPH, .launch = {&tt_host_exec_ops, inner, 0}};
    exec->has_memory = exec->has_memory || (node->child && inner->has_memory);
    return TT_HOST_OK;
}

static int fill_op(struct tt_host_exec *exec, const struct CUgraphNode_st *node,
                   const size_t *position)
{
    struct exec_op *op = &exec->ops[position[node->index]];
    op->kind = node->kind;
    op->op = node->op;
    op->node = node->id;
    if (op->op.kind == TT_HOST_OP_GRAPH || node->child)
        op->op.kind = TT_HOST_OP_EMPTY; /* until its body is there */
    op->deps = malloc((node->ndeps + 1) * sizeof(*op->deps));
    if (!share_item(op, node->share) || !op->deps) return TT_HOST_OUT_OF_MEMORY;
    for (size_t d = 0; d < node->ndeps; d++) {
        op->deps[op->ndeps++] = position[node->deps[d]->index];
    }
    bool has_inner = node->child || node->op.kind == TT_HOST_OP_GRAPH;
    int rc = has_inner ? fill_inner(exec, node, op) : TT_HOST_OK;
    if (rc) return rc;
    exec->has_calls = exec->has_calls || tt_host_op_has_calls(&op->op);
    exec->has_opened = exec->has_opened || tt_host_op_has_opened(&op->op);
    exec->has_memory =
        exec->has_memory || node->kind == TT_NODE_ALLOC || node->kind == TT_NODE_FREE;
    return TT_HOST_OK;
}

int tt_host_exec_make(const struct CUgraph_st *graph, struct tt_host_exec **exec_out)
{
    int rc = TT_HOST_OK;
    struct tt_host_exec *exec = make_body(graph->nnodes, NULL);
    size_t *position = calloc(graph->nnodes + 1, sizeof(*position));
    if (!exec || !position) {
        rc = TT_HOST_OUT_OF_MEMORY;
    } else if (!sort_nodes(graph, position)) {
        rc = TT_HOST_INVALID_VALUE;
    }
    for (size_t i = 0; !rc && i < graph->nnodes; i++) {
        rc = fill_op(exec, graph->nodes[i], position);
    }
    free(position);
    if (!rc && !tt_host_kept_copy(graph->kept, &exec->kept)) rc = TT_HOST_OUT_OF_MEMORY;
    if (rc) {
        tt_host_exec_drop(exec);
        return rc;
    }
    *exec_out = exec;
    return TT_HOST_OK;
}

/* Memory nodes of a body: whether another executable has them, and that this one has or does not
 * have them any more. */
/* NOLINTNEXTLINE(misc-no-recursion): graphs in graphs */
static bool any_instantiated(const struct tt_host_exec *body)
{
    bool found = false;
    for (size_t i = 0; body->has_memory && !found && i < body->nops; i++) {
        const struct exec_op *op = &body->ops[i];
        if (op->op.kind == TT_HOST_OP_GRAPH) found = any_instantiated(op->op.launch.exec);
        found = found || (op->share && atomic_load(&op->share->instantiated));
    }
    return found;
}

/* NOLINTNEXTLINE(misc-no-recursion): graphs in graphs */
void tt_host_exec_note_instance(const struct tt_host_exec *body, bool there)
{
    for (size_t i = 0; body->has_memory && i < body->nops; i++) {
        const struct exec_op *op = &body->ops[i];
        const bool memory = op->kind == TT_NODE_ALLOC || op->kind == TT_NODE_FREE;
        if (op->op.kind == TT_HOST_OP_GRAPH) tt_host_exec_note_instance(op->op.launch.exec, there);
        if (memory && op->share) atomic_store(&op->share->instantiated, there);
    }
}

int tuttiHostGraphInstantiate(struct CUgraph_st *graph, unsigned flags,
                              struct CUgraphExec_st **exec_out)
{
    struct tt_host_exec *body = NULL;
    if (!tt_host_graph_holds(graph) || graph->capturing || graph->moved)
        return TT_HOST_INVALID_VALUE;
    int rc = tt_host_exec_make(graph, &body);
    if (!rc && any_instantiated(body)) {
        tt_host_exec_drop(body);
        rc = TT_HOST_INVALID_VALUE;
    }
    if (rc) return rc;
    body->launches = calloc(1, sizeof(*body->launches));
    if (body->launches) atomic_store(&body->launches->refs, 1);
    struct CUgraphExec_st *exec = tt_host_slab_take(&tt_host.graphs.execs, EXEC_BYTES, MAX_EXECS);
    if (!exec || !body->launches) {
        if (exec) tt_host_slab_give(&tt_host.graphs.execs, exec);
        tt_host_exec_drop(body);
        return TT_HOST_OUT_OF_MEMORY;
    }
    exec->lock = (struct tt_host_spinlock){0};
    exec->flags = flags;
    exec->body = body;
    tt_host_exec_note_instance(body, true);
    exec->magic = EXEC_MAGIC;
    *exec_out = exec;
    return TT_HOST_OK;
}

/* ---- running ---- */

static bool deps_done(const struct tt_host_exec *exec, const struct exec_op *op)
{
    for (size_t d = 0; d < op->ndeps; d++) {
        if (!exec->runs[op->deps[d]].done) return false;
    }
    return true;
}

/* Nothing is done yet of the launch whose turn it is. */
static void begin(struct tt_host_exec *exec)
{
    for (size_t i = 0; i < exec->nops; i++)
        exec->runs[i] = (struct exec_run){.done = false};
    exec->ndone = 0;
    exec->begun = true;
}

/* Execs of one graph share its items: the launch that began an item ends it. */
static enum tt_step step_item(struct tt_host_exec *exec, struct exec_op *op)
{
    struct tt_host_item_share *share = op->share;
    const void *idle = NULL;
    if (atomic_load_explicit(&share->runner, memory_order_relaxed) != exec &&
        !atomic_compare_exchange_strong(&share->runner, &idle, exec))
        return TT_STEP_WAIT;
    enum tt_step step = share->item->step(share->item, TT_ITEM_STEP);
    if (step == TT_STEP_DONE) /* pairs with the exchange of the launch that is next */
        atomic_store_explicit(&share->runner, NULL, memory_order_release);
    return step;
}

static enum tt_step step_op(struct tt_host_exec *exec, size_t i, bool calls)
{
    struct exec_op *op = &exec->ops[i];
    if (op->disabled) return TT_STEP_DONE;
    if (op->share && op->op.kind == TT_HOST_OP_ITEM) return step_item(exec, op);
    if (op->op.kind == TT_HOST_OP_COPY || op->op.kind == TT_HOST_OP_SET)
        return tt_host_bytes_step(&op->op, &exec->runs[i].moved);
    return tt_host_op_step(&op->op, calls);
}

/* Report to the items, in the order of the host's calls, how far a launch is. */
static void report_items(const struct tt_host_exec *exec, enum tt_item_call call)
{
    for (size_t i = 0; i < exec->nops; i++) {
        const struct exec_op *op = &exec->ops[i];
        if (op->disabled) continue;
        if (op->op.kind == TT_HOST_OP_GRAPH) report_items(op->op.launch.exec, call);
        if (op->share && op->share->item->wants_issue) op->share->item->step(op->share->item, call);
    }
}

/* One item and nothing else, as where one call was captured: NULL, or its operation. */
static struct exec_op *only_item(const struct tt_host_exec *exec)
{
    struct exec_op *op = exec->ops;
    bool item = exec->nops == 1 && op->share && op->op.kind == TT_HOST_OP_ITEM && !op->disabled;
    return item && op->share->item->wants_issue ? op : NULL;
}

static void report(const struct tt_host_exec *exec, const struct exec_op *only,
                   enum tt_item_call call)
{
    if (only) {
        only->share->item->step(only->share->item, call);
    } else {
        report_items(exec, call);
    }
}

/* The launch with this number waits for the one before it, and for its own call to issue it. */
static bool has_turn(const struct tt_host_exec *exec, uint64_t number)
{
    const struct tt_host_launches *launches = exec->launches;
    return atomic_load_explicit(&launches->ended, memory_order_acquire) + 1 == number &&
           atomic_load_explicit(&launches->issued, memory_order_acquire) >= number;
}

static enum tt_step exec_step(struct tt_host_exec *exec, uint64_t number, bool calls)
{
    bool progress = false;
    if (!exec->begun) begin(exec);
    for (size_t i = 0; i < exec->nops; i++) {
        if (exec->runs[i].done || !deps_done(exec, &exec->ops[i])) continue;
        enum tt_step step = step_op(exec, i, calls);
        if (step != TT_STEP_WAIT) progress = true;
        if (step != TT_STEP_DONE) continue;
        exec->runs[i].done = true;
        exec->ndone++;
    }
    if (exec->ndone < exec->nops) return progress ? TT_STEP_PROGRESS : TT_STEP_WAIT;
    exec->begun = false;
    if (number) atomic_store_explicit(&exec->launches->ended, number, memory_order_release);
    return TT_STEP_DONE;
}

/* The race checker knows kernels by the launch that runs. */
static __attribute__((noinline)) enum tt_step step_seen(struct tt_host_exec *exec, uint64_t number,
                                                        bool calls)
{
    const void *outer = tt_host_thread.check.launches;
    tt_host_thread.check.launches = exec->launches;
    enum tt_step step = exec_step(exec, number, calls);
    tt_host_thread.check.launches = outer;
    return step;
}

static enum tt_step launch_step(struct tt_host_exec *exec, uint64_t number, bool calls)
{
    if (number && !has_turn(exec, number)) return TT_STEP_WAIT;
    return number && tt_host_checks() ? step_seen(exec, number, calls)
                                      : exec_step(exec, number, calls);
}

const struct tt_host_launch_ops tt_host_exec_ops = {
    .step = launch_step, .hold = exec_hold, .drop = tt_host_exec_drop};

/* The executable holds its body; a stream with a launch of it holds it for that as well. */
static int launch_park(struct tt_host_exec *exec, struct CUstream_st *stream, uint64_t number)
{
    const struct tt_host_op op = {.kind = TT_HOST_OP_GRAPH,
                                  .launch = {&tt_host_exec_ops, exec, number}};
    exec_hold(exec);
    return tt_host_stream_park(stream, &op);
}

static int launch_inline(struct tt_host_exec *exec, struct CUstream_st *stream, uint64_t number)
{
    for (int polls = 0; polls < INLINE_STEPS; polls++) {
        if (launch_step(exec, number, false) != TT_STEP_DONE) continue;
        tt_host_stream_release(stream);
        return TT_HOST_OK;
    }
    return launch_park(exec, stream, number);
}

/* The same of one item: what the launch has done so far is known to the item alone. */
static int launch_item(struct tt_host_exec *exec, struct exec_op *op, struct CUstream_st *stream,
                       uint64_t number)
{
    for (int polls = 0; polls < INLINE_STEPS; polls++) {
        if (step_item(exec, op) != TT_STEP_DONE) continue;
        atomic_store_explicit(&exec->launches->ended, number, memory_order_release);
        tt_host_stream_release(stream);
        return TT_HOST_OK;
    }
    begin(exec);
    return launch_park(exec, stream, number);
}

static int launch_later(struct tt_host_exec *exec, struct CUstream_st *stream, uint64_t number)
{
    const struct tt_host_op op = {.kind = TT_HOST_OP_GRAPH,
                                  .launch = {&tt_host_exec_ops, exec, number}};
    exec_hold(exec);
    int rc = tt_host_stream_append(stream, &op);
    if (rc) tt_host_exec_drop(exec);
    return rc;
}

/* NOLINTNEXTLINE(misc-no-recursion): graphs in graphs */
static bool any_claimed(const struct tt_host_exec *body)
{
    bool claimed = false;
    for (size_t i = 0; body->has_memory && !claimed && i < body->nops; i++) {
        const struct exec_op *op = &body->ops[i];
        if (op->op.kind == TT_HOST_OP_GRAPH) claimed = any_claimed(op->op.launch.exec);
        claimed = claimed || (op->share && tt_host_memory_claimed(op->share->item));
    }
    return claimed;
}

/* NOLINTNEXTLINE(misc-no-recursion): graphs in graphs */
static void claim_all(const struct tt_host_exec *body)
{
    for (size_t i = 0; body->has_memory && i < body->nops; i++) {
        const struct exec_op *op = &body->ops[i];
        if (op->op.kind == TT_HOST_OP_GRAPH) claim_all(op->op.launch.exec);
        if (op->share) tt_host_memory_claim(op->share->item);
    }
}

/* Memory of the last launch must have been freed, or may be freed now. */
static bool claim_memory(const struct tt_host_exec *body, bool again)
{
    if (!again && any_claimed(body)) return false;
    claim_all(body);
    return true;
}

/* What was mapped or opened when a node was made may have been unmapped or closed since. */
static bool is_mapped(const struct tt_host_exec *body)
{
    bool good = true;
    for (size_t i = 0; good && i < body->nops; i++) {
        const struct tt_host_op *op = &body->ops[i].op;
        if (body->ops[i].disabled) continue;
        good = tt_host_op_is_mapped(op);
        if (op->kind == TT_HOST_OP_GRAPH) good = is_mapped(op->launch.exec);
    }
    return good;
}

/* The numbers of launches, their positions in streams and the reports to their items have one
 * order: the executable's lock is held. */
static int launch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
    struct tt_host_exec *body = exec->body;
    struct tt_host_launches *launches = body->launches;
    uint64_t number = atomic_load_explicit(&launches->issued, memory_order_relaxed) + 1;
    if ((body->has_opened || tuttiHostAnyReserved()) && !is_mapped(body))
        return TT_HOST_INVALID_VALUE;
    if (!claim_memory(body, exec->flags & AUTO_FREE)) return TT_HOST_INVALID_VALUE;
    if (tt_host_checks()) tt_host_check_graph(stream, body);
    bool first = atomic_load_explicit(&launches->ended, memory_order_acquire) + 1 == number;
    struct exec_op *only = tt_host_checks() ? NULL : only_item(body);
    tt_host_spinlock_lock(&tt_host.graphs.issuing);
    report(body, only, TT_ITEM_HOLD);
    bool here = !body->has_calls && first && tt_host_stream_claim_idle(stream);
    int rc = here ? TT_HOST_OK : launch_later(body, stream, number);
    /* a launch does not begin before */
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the executable has a reference of its own */
    report(body, only, rc ? TT_ITEM_LET : TT_ITEM_ISSUE);
    tt_host_spinlock_unlock(&tt_host.graphs.issuing);
    if (rc && tt_host_checks()) tt_host_check_unlaunched(launches);
    if (rc) return rc;
    atomic_store_explicit(&launches->issued, number, memory_order_release);
    if (!here) return TT_HOST_OK;
    return only ? launch_item(body, only, stream, number) : launch_inline(body, stream, number);
}

/* A graph launched on a stream that is captured is a node of that capture's graph. */
static int capture_launch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
    struct tt_host_op op = {.kind = TT_HOST_OP_GRAPH, .launch = {&tt_host_exec_ops, exec->body, 0}};
    return tt_host_capture_add(stream, &op);
}

int tuttiHostGraphLaunch(struct CUgraphExec_st *exec, struct CUstream_st *handle)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!tt_host_exec_holds(exec)) return TT_HOST_INVALID_VALUE;
    if (!stream) return TT_HOST_BAD_HANDLE;
    if (tt_host_forbidden()) return TT_HOST_NOT_PERMITTED;
    tt_host_spinlock_lock(&exec->lock);
    bool capturing = atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
    int rc = capturing ? capture_launch(exec, stream) : launch(exec, stream);
    tt_host_spinlock_unlock(&exec->lock);
    return rc;
}

int tuttiHostExecFlags(const struct CUgraphExec_st *exec, unsigned *flags)
{
    if (!tt_host_exec_holds(exec)) return TT_HOST_INVALID_VALUE;
    *flags = exec->flags;
    return TT_HOST_OK;
}

int tuttiHostGraphExecDestroy(struct CUgraphExec_st *exec)
{
    if (!tt_host_exec_holds(exec)) return TT_HOST_INVALID_VALUE;
    exec->magic = 0;
    tt_host_exec_note_instance(exec->body, false);
    tt_host_exec_drop(exec->body);
    tt_host_slab_give(&tt_host.graphs.execs, exec);
    return TT_HOST_OK;
}
