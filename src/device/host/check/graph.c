/* Launches of graphs. To what is outside of it a launch is its nodes one after another, in an order
 * that the edges allow. Inside, two nodes that touch the same bytes need a path of edges between
 * them. */
#include "access.h"
#include "guard.h"

#include "device/host/graph/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NODES_MOST = 4096 };

static const char *kind_of(const struct exec_op *op)
{
    switch (op->op.kind) {
    case TT_HOST_OP_COPY: return "copy";
    case TT_HOST_OP_SET: return "fill";
    case TT_HOST_OP_GRAPH: return "child graph";
    default: break;
    }
    if (op->kind == TT_NODE_ALLOC) return "allocation";
    return op->kind == TT_NODE_FREE ? "free" : "work";
}

enum numbering { /* of nodes that hold a graph: what is in it counts as ... */
                 ONE_NODE,
                 MANY_NODES,
                 IN_A_NODE,
};

/* Accesses of all nodes. False: not all are known. */
static bool collect(struct tt_check_touches *touches, const struct tt_host_exec *exec,
                    enum numbering numbering)
{
    enum numbering inside = numbering == MANY_NODES ? MANY_NODES : IN_A_NODE;
    bool all = true;
    for (size_t i = 0; i < exec->nops; i++) {
        const struct exec_op *op = &exec->ops[i];
        if (op->disabled) continue;
        if (numbering == ONE_NODE) touches->node = i;
        if (numbering == MANY_NODES) touches->node++;
        bool known =
            op->op.kind == TT_HOST_OP_GRAPH
                ? collect(touches, op->op.launch.exec, inside)
                : tt_check_touches_op(touches, &op->op, op->share ? op->share->item : NULL);
        all = all && known;
    }
    return all;
}

static void join(uint64_t *into, const uint64_t *from, size_t words)
{
    for (size_t w = 0; w < words; w++)
        into[w] |= from[w];
}

/* Bit d of row i: node i comes behind node d. NULL: too many nodes, or out of memory. */
static uint64_t *make_paths(const struct tt_host_exec *exec)
{
    size_t words = (exec->nops + 63) / 64;
    if (!exec->nops || exec->nops > NODES_MOST) return NULL;
    uint64_t *paths = calloc(exec->nops * words, sizeof(*paths));
    for (size_t i = 0; paths && i < exec->nops; i++) {
        for (size_t d = 0; d < exec->ops[i].ndeps; d++) {
            size_t dep = exec->ops[i].deps[d];
            join(&paths[i * words], &paths[dep * words], words);
            paths[i * words + dep / 64] |= 1ull << dep % 64;
        }
    }
    return paths;
}

static int by_address(const void *a, const void *b)
{
    const struct tt_check_touch *one = a, *other = b;
    if (one->ptr == other->ptr) return 0;
    return (const char *)one->ptr < (const char *)other->ptr ? -1 : 1;
}

static bool is_behind(const struct tt_check_touch *one, const struct tt_check_touch *other,
                      const uint64_t *paths, size_t words)
{
    return paths[one->node * words + other->node / 64] >> other->node % 64 & 1;
}

static bool is_outlived(const struct tt_check_touch *free, const struct tt_check_touch *use,
                        const uint64_t *paths, size_t words)
{
    return free->kind == TT_CHECK_TOUCH_END && use->kind <= TT_CHECK_TOUCH_WRITE &&
           is_behind(use, free, paths, words);
}

/* What is wrong with two accesses to the same bytes; false: nothing. */
static bool clashes(const struct tt_check_touch *one, const struct tt_check_touch *other,
                    const uint64_t *paths, size_t words, enum tt_check_kind *kind_out)
{
    if (one->node == other->node) return false;
    *kind_out = TT_CHECK_USE_AFTER_FREE;
    if (is_outlived(one, other, paths, words) || is_outlived(other, one, paths, words)) return true;
    *kind_out = TT_CHECK_IN_GRAPH;
    if (one->kind == TT_CHECK_TOUCH_READ && other->kind == TT_CHECK_TOUCH_READ) return false;
    return !is_behind(one, other, paths, words) && !is_behind(other, one, paths, words);
}

static struct tt_check_op node_op(const struct tt_host_exec *exec,
                                  const struct tt_check_touch *touch)
{
    struct tt_check_op op = {.task = CHECK_GRAPH, .site = tt_host_thread.site};
    snprintf(op.name, sizeof(op.name), "%s (node %zu of a graph)", kind_of(&exec->ops[touch->node]),
             touch->node);
    return op;
}

static void tell(struct tt_host_check *check, const struct tt_host_exec *exec,
                 const struct tt_check_touch *one, const struct tt_check_touch *other,
                 enum tt_check_kind kind)
{
    const struct tt_check_touch *first = one->node < other->node ? one : other;
    const struct tt_check_touch *second = first == one ? other : one;
    const struct tt_check_op sides[2] = {node_op(exec, first), node_op(exec, second)};
    const struct tt_check_finding finding = {.kind = kind,
                                             .first = &sides[0],
                                             .second = &sides[1],
                                             .first_writes = first->kind != TT_CHECK_TOUCH_READ,
                                             .second_writes = second->kind != TT_CHECK_TOUCH_READ,
                                             .ptr = other->ptr,
                                             .bytes = 1};
    tt_check_report(check, &finding);
}

/* Does a node write there, any of the bytes? */
static bool is_written(const struct tt_check_touches *touches, const struct tt_check_touch *read)
{
    const char *from = read->ptr;
    for (size_t i = 0; i < touches->count; i++) {
        const struct tt_check_touch *one = &touches->at[i];
        const char *at = one->ptr;
        if (one->kind == TT_CHECK_TOUCH_WRITE && at < from + read->bytes && from < at + one->bytes)
            return true;
    }
    return false;
}

/* Does the graph wait amid for what is outside of it, which may write to its memory? */
static bool waits_amid(const struct tt_check_touches *touches)
{
    bool waits = false;
    for (size_t i = 0; i < touches->count; i++) {
        waits = waits || touches->at[i].kind == TT_CHECK_TOUCH_AWAIT ||
                touches->at[i].kind == TT_CHECK_TOUCH_WORD_WAIT;
    }
    return waits;
}

/* Memory that a node allocates holds nothing at each launch: a copy reads there what another node
 * of the graph has written, or nothing that is defined. */
static void look_for_unwritten(struct tt_host_check *check, const struct tt_host_exec *exec,
                               const struct tt_check_touches *touches)
{
    for (size_t b = 0; b < touches->count; b++) {
        const struct tt_check_touch *block = &touches->at[b];
        if (block->kind != TT_CHECK_TOUCH_BEGIN) continue;
        for (size_t i = 0; i < touches->count; i++) {
            const struct tt_check_touch *read = &touches->at[i];
            bool inside = read->kind == TT_CHECK_TOUCH_READ && read->ptr >= block->ptr &&
                          (const char *)read->ptr < (const char *)block->ptr + block->bytes;
            if (!inside || is_written(touches, read)) continue;
            struct tt_check_op reader = node_op(exec, read);
            const struct tt_check_finding finding = {.kind = TT_CHECK_UNWRITTEN,
                                                     .second = &reader,
                                                     .ptr = read->ptr,
                                                     .bytes = read->bytes};
            tt_check_report(check, &finding);
            return;
        }
    }
}

/* One finding is enough: a graph without a path as a rule lacks it for many bytes. */
static void look_inside(struct tt_host_check *check, const struct tt_host_exec *exec,
                        struct tt_check_touches *touches, const uint64_t *paths)
{
    size_t words = (exec->nops + 63) / 64;
    qsort(touches->at, touches->count, sizeof(touches->at[0]), by_address);
    for (size_t i = 0; i < touches->count; i++) {
        const struct tt_check_touch *one = &touches->at[i];
        if (one->kind > TT_CHECK_TOUCH_END) continue;
        for (size_t k = i + 1; k < touches->count; k++) {
            const struct tt_check_touch *other = &touches->at[k];
            if ((const char *)other->ptr >= (const char *)one->ptr + one->bytes) break;
            if (other->kind > TT_CHECK_TOUCH_END || !other->bytes) continue;
            enum tt_check_kind kind;
            if (!clashes(one, other, paths, words, &kind)) continue;
            tell(check, exec, one, other, kind);
            return;
        }
    }
}

/* The graph, then the child graphs, each by itself. */
static void look_at(struct tt_host_check *check, const struct tt_host_exec *exec)
{
    struct tt_check_touches touches = {0};
    uint64_t *paths = make_paths(exec);
    bool all = collect(&touches, exec, ONE_NODE);
    if (all && !waits_amid(&touches)) look_for_unwritten(check, exec, &touches);
    if (paths && touches.count) look_inside(check, exec, &touches, paths);
    free(paths);
    free(touches.at);
    for (size_t i = 0; i < exec->nops; i++) {
        const struct exec_op *op = &exec->ops[i];
        if (!op->disabled && op->op.kind == TT_HOST_OP_GRAPH) look_at(check, op->op.launch.exec);
    }
}

void tt_host_check_graph(struct CUstream_st *stream, const struct tt_host_exec *exec)
{
    struct tt_check_touches touches = {0};
    bool all = collect(&touches, exec, MANY_NODES);
    touches.name[0] = 0; /* of one of the nodes */
    struct tt_host_check *check = tt_host_check_lock();
    if (check) {
        /* launches of one executable follow each other */
        struct tt_check_mark *last = tt_check_mark(&check->execs, exec->launches, 0);
        size_t task = tt_check_task_of(check, stream);
        look_at(check, exec);
        if (last) tt_check_clock_merge(&check->tasks[task].now, last->clock);
        check->launching = exec->launches;
        struct tt_check_op *op = tt_check_apply(check, stream, &touches, "graph launch");
        check->launching = NULL;
        tt_check_guard_kernel(check, op, &touches.words);
        tt_check_op_drop(op);
        if (touches.tells) tt_check_task_tell(check, task, &check->tasks[TT_CHECK_HOST].now);
        if (last) tt_check_task_tell(check, task, &last->clock);
        if (!all) tt_check_note_opaque(check, stream);
    }
    tt_host_check_unlock(check);
    free(touches.at);
}
