/* Launches of graphs. To what is outside of it a launch is its nodes one after another, in an order
 * that the edges allow. Inside, two nodes that touch the same bytes need a path of edges between
 * them. */
#include "device/host/check/shadow/guard.h"
#include "device/host/check/shadow/inside.h"
#include "device/host/graph/exec.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Of nodes that hold a graph: what is in it counts as ... */
enum numbering {
    ONE_NODE,
    MANY_NODES,
    IN_A_NODE,
};

static bool collect(struct tt_check_touches *touches, const struct tt_host_exec *exec,
                    enum numbering numbering);

static bool collect_op(struct tt_check_touches *touches, const struct exec_op *op,
                       enum numbering numbering)
{
    enum numbering inside = numbering == MANY_NODES ? MANY_NODES : IN_A_NODE;
    return op->op.kind == TT_HOST_OP_GRAPH
               ? collect(touches, op->op.launch.exec, inside)
               : tt_check_touches_op(touches, &op->op, op->share ? op->share->item : NULL);
}

/* Accesses of all nodes. False: not all are known. */
static bool collect(struct tt_check_touches *touches, const struct tt_host_exec *exec,
                    enum numbering numbering)
{
    bool all = true;
    for (size_t i = 0; i < exec->nops; i++) {
        if (exec->ops[i].disabled) continue;
        if (numbering == ONE_NODE) touches->node = i;
        if (numbering == MANY_NODES) touches->node++;
        all = collect_op(touches, &exec->ops[i], numbering) && all;
    }
    return all;
}

static void touches_node(struct tt_check_touches *touches, const struct exec_op *op)
{
    touches->name[0] = 0;
    collect_op(touches, op, ONE_NODE);
    if (op->op.kind != TT_HOST_OP_ITEM || !touches->name[0])
        snprintf(touches->name, sizeof(touches->name), "%s", kind_of(op));
}

static struct tt_check_op node_op(const struct tt_host_exec *exec,
                                  const struct tt_check_touch *touch)
{
    struct tt_check_op op = {.task = CHECK_GRAPH, .site = tt_host_thread.check.site};
    snprintf(op.name, sizeof(op.name), "%s (node %zu of a graph)", kind_of(&exec->ops[touch->node]),
             touch->node);
    return op;
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
                        struct tt_check_touches *touches, const struct tt_check_paths *paths)
{
    qsort(touches->at, touches->count, sizeof(touches->at[0]), tt_check_by_address);
    for (size_t i = 0; i < touches->count; i++) {
        const struct tt_check_touch *one = &touches->at[i];
        if (one->kind > TT_CHECK_TOUCH_END) continue;
        for (size_t k = i + 1; k < touches->count; k++) {
            const struct tt_check_touch *other = &touches->at[k];
            if ((const char *)other->ptr >= (const char *)one->ptr + one->bytes) break;
            if (other->kind > TT_CHECK_TOUCH_END || !other->bytes) continue;
            enum tt_check_kind kind;
            if (!tt_check_clashes(one, other, paths, &kind)) continue;
            const struct tt_check_op sides[2] = {node_op(exec, one), node_op(exec, other)};
            tt_check_report_nodes(check, sides, one, other, kind);
            return;
        }
    }
}

/* The graph, then the child graphs, each by itself. */
static void look_at(struct tt_host_check *check, const struct tt_host_exec *exec)
{
    struct tt_check_touches touches = {0};
    bool all = collect(&touches, exec, ONE_NODE);
    struct tt_check_paths *paths = tt_check_paths(check, exec, &touches);
    if (all && !waits_amid(&touches)) look_for_unwritten(check, exec, &touches);
    if (paths && touches.count) look_inside(check, exec, &touches, paths);
    free(paths);
    free(touches.at);
    for (size_t i = 0; i < exec->nops; i++) {
        const struct exec_op *op = &exec->ops[i];
        if (!op->disabled && op->op.kind == TT_HOST_OP_GRAPH) look_at(check, op->op.launch.exec);
    }
}

/* ---- what kernels are seen to do ---- */

static void count(const struct tt_host_exec *exec, size_t *levels, size_t *places)
{
    ++*levels;
    for (size_t i = 0; i < exec->nops; i++) {
        if (exec->ops[i].disabled) continue;
        ++*places;
        if (exec->ops[i].op.kind == TT_HOST_OP_GRAPH)
            count(exec->ops[i].op.launch.exec, levels, places);
    }
}

static void add_level(struct tt_host_check *check, struct tt_check_inside *inside,
                      const struct tt_host_exec *exec, size_t outer, size_t node)
{
    size_t index = inside->nlevels++;
    struct tt_check_level *level = &inside->levels[index];
    *level = (struct tt_check_level){
        .outer = outer, .node = node, .names = calloc(exec->nops + 1, TT_CHECK_NODE_NAME_BYTES)};
    for (size_t i = 0; i < exec->nops; i++) {
        const struct exec_op *op = &exec->ops[i];
        if (op->disabled) continue;
        level->known.node = i;
        touches_node(&level->known, op);
        if (level->names)
            snprintf(level->names[i], TT_CHECK_NODE_NAME_BYTES, "%.31s", level->known.name);
        inside->places[++inside->nplaces] = (struct tt_check_place){index, i};
        if (op->op.kind == TT_HOST_OP_GRAPH) add_level(check, inside, op->op.launch.exec, index, i);
    }
    level->paths = tt_check_paths(check, exec, &level->known);
}

static struct tt_check_inside *open_inside(struct tt_host_check *check,
                                           const struct tt_host_exec *exec)
{
    size_t levels = 0, places = 1;
    struct tt_check_inside *inside = calloc(1, sizeof(*inside));
    if (!inside) return NULL;
    count(exec, &levels, &places);
    inside->refs = 1;
    inside->site = tt_host_thread.check.site;
    inside->levels = calloc(levels, sizeof(*inside->levels));
    inside->places = calloc(places, sizeof(*inside->places));
    if (inside->levels && inside->places) {
        add_level(check, inside, exec, 0, 0);
        return inside;
    }
    tt_check_inside_drop(inside);
    return NULL;
}

/* Of those that report nothing. */
static bool has_kernels(const struct tt_check_touches *touches)
{
    bool found = false;
    for (size_t i = 0; i < touches->count && !found; i++)
        found = touches->at[i].kind == TT_CHECK_TOUCH_KERNEL;
    return found;
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
        check->launching_inside = has_kernels(&touches) ? open_inside(check, exec) : NULL;
        struct tt_check_op *op = tt_check_apply(check, stream, &touches, "graph launch");
        check->launching = NULL;
        tt_check_inside_drop(check->launching_inside);
        check->launching_inside = NULL;
        tt_check_guard_kernel(check, op, &touches.words);
        tt_check_op_drop(op);
        if (touches.reports) tt_check_task_report(check, task, &check->tasks[TT_CHECK_HOST].now);
        if (last) tt_check_task_report(check, task, &last->clock);
        if (!all) tt_check_note_opaque(check, stream);
    }
    tt_host_check_unlock(check);
    free(touches.at);
}
