/* Small messages in one go. A program whose messages take one slot each (one pass, one thread,
 * nothing to scale) is flattened once, when its work is made, into a list: send these
 * bytes there, take those from there, fold. Running it then costs a few nanoseconds beyond the
 * cache lines that travel. The list keeps the program's order and meaning; it stops where a slot is
 * missing and goes on from there.
 *
 * Slots of a fold are kept until it is done, since the sources lie in them. */
#include "base/mem.h"
#include "exec/host/cursor.h"
#include "exec/host/fold.h"

#include <string.h>

#define SHOT_BYTES ((size_t)8 << 10) /* larger ones are referred to or folded by tiles: move.c */

/* ---- flattening ---- */

static size_t from_start(const char *base, const void *start)
{
    return (size_t)((uintptr_t)base - (uintptr_t)start);
}

static bool add(struct tt_work *work, struct tt_shot_op op)
{
    if ((size_t)work->shot->nops >= tt_shot_op_limit(work->member->nranks)) return false;
    work->shot->ops[work->shot->nops++] = op;
    return true;
}

static bool add_fold(struct tt_work *work, const struct tt_cursor *cursor, uint32_t bytes)
{
    const struct tt_frame *frame = cursor->frame;
    if (cursor->dst.count != 1 || cursor->dst.edge[0]) return false;
    if (cursor->src.count > TT_SHOT_MAX_RANKS) return false;
    for (int k = 0; k < cursor->src.count; k++) {
        struct tt_shot_op op = {.kind = TT_SHOT_PICK, .bytes = bytes, .edge = cursor->src.edge[k]};
        if (!op.edge) op.in_at = from_start(cursor->src.base[k], frame->in);
        if (!add(work, op)) return false;
    }
    return add(work, (struct tt_shot_op){.kind = TT_SHOT_FOLD,
                                         .bytes = bytes,
                                         .out_at = from_start(cursor->dst.base[0], frame->out)});
}

static bool add_copy(struct tt_work *work, const struct tt_cursor *cursor, uint32_t bytes)
{
    const struct tt_frame *frame = cursor->frame;
    struct tt_shot_op op = {.bytes = bytes};
    if (cursor->src.count != 1 || cursor->dst.count < 1) return false;
    if (cursor->src.edge[0]) {
        if (cursor->dst.count != 1 || cursor->dst.edge[0]) return false;
        op.kind = TT_SHOT_TAKE;
        op.edge = cursor->src.edge[0];
        op.out_at = from_start(cursor->dst.base[0], frame->out);
        return add(work, op);
    }
    op.in_at = from_start(cursor->src.base[0], frame->in);
    for (int k = 0; k < cursor->dst.count; k++) {
        op.edge = cursor->dst.edge[k];
        op.kind = op.edge ? TT_SHOT_SEND : TT_SHOT_COPY;
        op.out_at = op.edge ? 0 : from_start(cursor->dst.base[k], frame->out);
        if (!add(work, op)) return false;
    }
    return true;
}

/* The list knows IN as a source and OUT as a destination; the other way round is left to the
 * interpreter. */
static bool reads_out(const struct tt_insn *insn)
{
    for (int k = 0; k < insn->nsrcs; k++) {
        if (insn->src[k].space == TT_SPACE_OUT) return true;
    }
    for (int k = 0; k < insn->ndsts; k++) {
        if (insn->dst[k].space == TT_SPACE_IN) return true;
    }
    return false;
}

static bool flatten_transfer(struct tt_work *work, struct tt_cursor *cursor)
{
    const struct tt_insn *insn = tt_stepper_insn(&cursor->stepper);
    if (reads_out(insn)) return false;
    tt_move_begin(work, cursor);
    size_t bytes = cursor->total_count * cursor->frame->elem_bytes;
    if (bytes > tt_min_size(SHOT_BYTES, work->slice_bytes)) return false;
    return insn->flags & TT_MOVE_FOLD ? add_fold(work, cursor, (uint32_t)bytes)
                                      : add_copy(work, cursor, (uint32_t)bytes);
}

static bool may_be_small(const struct tt_frame *frame)
{
    const struct tt_program *program = frame->program;
    return !program->needs_board && frame->geometry.npasses == 1 && !frame->fold.pre_mul &&
           frame->fold.post_div <= 1 && frame->after == 0 &&
           (frame->geometry.kind == TT_GEOMETRY_BLOCKS || program->whole_window);
}

bool tt_shot_compile(struct tt_work *work)
{
    struct tt_cursor *cursor = &work->cursors[0];
    const struct tt_frame *frame = cursor->frame;
    struct tt_shot *shot = work->shot;
    if (!may_be_small(frame)) return false;
    shot->nops = shot->at = shot->nsrcs = shot->nfull = 0;
    cursor->done = false;
    tt_stepper_start(&cursor->stepper, frame->program, cursor->thread, 1);
    for (;; tt_stepper_done(&cursor->stepper)) {
        enum tt_next next = tt_stepper_next(&cursor->stepper);
        if (next == TT_NEXT_OVER) break;
        if (next != TT_NEXT_MOVE || !flatten_transfer(work, cursor)) return false;
    }
    shot->pair = tt_fold_native_pair(frame->fold.type, frame->fold.op);
    return true;
}

/* ---- running ---- */

static enum tt_run wait_edge(struct tt_work *work, const struct tt_edge *edge, const char *what)
{
    return tt_cursor_wait(&work->cursors[0], tt_edge_peer(edge), what);
}

static enum tt_run send(struct tt_work *work, const struct tt_shot_op *op, const char *in)
{
    char *payload = tt_edge_acquire(op->edge, op->bytes);
    if (!payload) return wait_edge(work, op->edge, "free slot of");
    if (op->bytes <= TT_SLOT_INLINE_BYTES) {
        tt_edge_post_small(op->edge, work->cursors[0].stamp, in + op->in_at, op->bytes);
        return TT_RUN_DONE;
    }
    memcpy(payload, in + op->in_at, op->bytes);
    tt_edge_post(op->edge, work->cursors[0].stamp, op->bytes);
    return TT_RUN_DONE;
}

static enum tt_run await(struct tt_work *work, const struct tt_shot_op *op, const char **payload)
{
    size_t got = 0;
    ncclResult_t rc = tt_slot_poll(work, op->edge, work->cursors[0].stamp, payload, &got);
    if (rc == ncclInProgress) return wait_edge(work, op->edge, "data of");
    if (rc == ncclSuccess && got != op->bytes) {
        rc = tt_slot_misfit(work, op->edge, got, op->bytes);
    }
    work->rc = rc;
    return rc ? TT_RUN_FAILED : TT_RUN_DONE;
}

static enum tt_run pick(struct tt_work *work, const struct tt_shot_op *op, const char *in)
{
    struct tt_shot *shot = work->shot;
    const char *payload = in + op->in_at;
    if (op->edge) {
        enum tt_run run = await(work, op, &payload);
        if (run != TT_RUN_DONE) return run;
        shot->full[shot->nfull++] = op->edge;
    }
    shot->srcs[shot->nsrcs++] = payload;
    return TT_RUN_DONE;
}

static void fold(struct tt_work *work, const struct tt_shot_op *op, char *out)
{
    struct tt_shot *shot = work->shot;
    const struct tt_frame *frame = &work->frames[0];
    void *const dst = out + op->out_at;
    size_t count = op->bytes / frame->elem_bytes;
    if (shot->pair && shot->nsrcs == 2) {
        shot->pair(dst, shot->srcs[0], shot->srcs[1], count);
    } else {
        struct tt_fold_job job = {.fold = &frame->fold,
                                  .dsts = &dst,
                                  .ndsts = 1,
                                  .srcs = shot->srcs,
                                  .nsrcs = shot->nsrcs,
                                  .count = count};
        tt_fold_run(&job);
    }
    for (int k = 0; k < shot->nfull; k++)
        tt_edge_release(shot->full[k]);
    shot->nsrcs = shot->nfull = 0;
}

static enum tt_run take(struct tt_work *work, const struct tt_shot_op *op, char *out)
{
    const char *payload = NULL;
    enum tt_run run = await(work, op, &payload);
    if (run != TT_RUN_DONE) return run;
    memcpy(out + op->out_at, payload, op->bytes);
    tt_edge_release(op->edge);
    return TT_RUN_DONE;
}

static enum tt_run run_op(struct tt_work *work, const struct tt_shot_op *op)
{
    const char *in = work->frames[0].in;
    char *out = work->frames[0].out;
    switch (op->kind) {
    case TT_SHOT_SEND: return send(work, op, in);
    case TT_SHOT_TAKE: return take(work, op, out);
    case TT_SHOT_PICK: return pick(work, op, in);
    case TT_SHOT_FOLD: fold(work, op, out); break;
    case TT_SHOT_COPY:
        if (out + op->out_at != in + op->in_at) memcpy(out + op->out_at, in + op->in_at, op->bytes);
        break;
    }
    return TT_RUN_DONE;
}

enum tt_run tt_shot_run(struct tt_work *work)
{
    struct tt_shot *shot = work->shot;
    int from = shot->at;
    for (; shot->at < shot->nops; shot->at++) {
        enum tt_run run = run_op(work, &shot->ops[shot->at]);
        if (run == TT_RUN_FAILED) return run;
        if (run == TT_RUN_WAIT) return shot->at > from ? TT_RUN_PROGRESS : run;
    }
    return TT_RUN_DONE;
}
