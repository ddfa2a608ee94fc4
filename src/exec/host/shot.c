/* Small messages in one go. Programs whose messages take one slot each (one pass, one thread,
 * nothing to scale) are flattened once, when their work is made, into a list: send these bytes
 * there, take those from there, fold. Running it then costs a few nanoseconds beyond the cache
 * lines that travel. The list keeps each program's order and meaning; it stops where a slot is
 * missing and goes on from there.
 *
 * A work of several frames (a group) has a part for each, and a blocked part stops only those that
 * come after it. Messages to one peer come after one another. Of collectives the sends with which
 * they begin are a part of their own that comes after the sends of those before alone, so that all
 * of a group are under way at once; on every edge the order stays that of the calls. Whoever makes
 * such a work sees to it that none reads what an earlier one writes.
 *
 * Slots of a fold are kept until it is done, since the sources lie in them. */
#include "base/mem.h"
#include "exec/host/cursor.h"
#include "exec/host/fold.h"

#include <string.h>

#define SHOT_BYTES ((size_t)8 << 10) /* larger ones are referred to or folded by tiles: move.c */

/* ---- flattening ---- */

static uint32_t from_start(const char *base, const void *start)
{
    return (uint32_t)((uintptr_t)base - (uintptr_t)start);
}

static bool add(struct tt_work *work, struct tt_shot_op op)
{
    if (work->shot->nops >= work->shot->limit) return false;
    work->shot->ops[work->shot->nops++] = op;
    return true;
}

/* Two sources of which one is a slot: one operation. */
static bool add_pair(struct tt_work *work, const struct tt_cursor *cursor, struct tt_shot_op fold)
{
    struct tt_edge *const *edge = cursor->src.edge;
    int slot = edge[0] ? 0 : 1;
    fold.kind = TT_SHOT_PAIR;
    fold.slot_first = slot == 0;
    fold.edge = edge[slot];
    fold.in_at = from_start(cursor->src.base[1 - slot], cursor->frame->in);
    return add(work, fold);
}

static bool add_fold(struct tt_work *work, const struct tt_cursor *cursor, uint32_t bytes)
{
    const struct tt_frame *frame = cursor->frame;
    if (cursor->dst.count != 1 || cursor->dst.edge[0]) return false;
    const struct tt_shot_op fold = {.kind = TT_SHOT_FOLD,
                                    .bytes = bytes,
                                    .count = bytes / (uint32_t)frame->elem_bytes,
                                    .out_at = from_start(cursor->dst.base[0], frame->out),
                                    .pair = tt_fold_native_pair(frame->fold.type, frame->fold.op)};
    if (fold.pair && cursor->src.count == 2 && !cursor->src.edge[0] != !cursor->src.edge[1])
        return add_pair(work, cursor, fold);
    if (cursor->src.count > TT_SHOT_MAX_RANKS) return false;
    for (int k = 0; k < cursor->src.count; k++) {
        struct tt_shot_op op = {.kind = TT_SHOT_PICK, .bytes = bytes, .edge = cursor->src.edge[k]};
        if (!op.edge) op.in_at = from_start(cursor->src.base[k], frame->in);
        if (!add(work, op)) return false;
    }
    return add(work, fold);
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
static bool leaves_list(const struct tt_stepper *stepper, const struct tt_insn *insn)
{
    for (int k = 0; k < insn->nsrcs; k++) {
        enum tt_space space = (enum tt_space)stepper->operands[insn->first_src + (uint32_t)k].space;
        if (space != TT_SPACE_IN && space != TT_SPACE_SLOT) return true;
    }
    for (int k = 0; k < insn->ndsts; k++) {
        enum tt_space space = (enum tt_space)stepper->operands[insn->first_dst + (uint32_t)k].space;
        if (space != TT_SPACE_OUT && space != TT_SPACE_SLOT) return true;
    }
    return false;
}

static bool flatten_transfer(struct tt_work *work, struct tt_cursor *cursor)
{
    const struct tt_insn *insn = tt_stepper_insn(&cursor->stepper);
    if (leaves_list(&cursor->stepper, insn)) return false;
    tt_move_begin(work, cursor);
    size_t bytes = cursor->total_count * cursor->frame->elem_bytes;
    if (bytes > tt_min_size(SHOT_BYTES, work->slice_bytes)) return false;
    return insn->flags & TT_MOVE_FOLD ? add_fold(work, cursor, (uint32_t)bytes)
                                      : add_copy(work, cursor, (uint32_t)bytes);
}

static bool may_be_small(const struct tt_frame *frame)
{
    const struct tt_program *program = frame->program;
    return !program->needs_barrier && frame->geometry.npasses == 1 && !frame->fold.pre_mul &&
           frame->fold.post_div <= 1 && frame->in_bytes <= UINT32_MAX &&
           frame->out_bytes <= UINT32_MAX && (frame->geometry.nparts == 1 || program->whole_window);
}

static int add_part(struct tt_shot *shot, struct tt_shot_part part)
{
    if (part.first == part.end) return 0;
    shot->parts[shot->nparts] = part;
    return ++shot->nparts;
}

/* Which parts the operations from `first` on are, and what they come after. */
static void cut_parts(struct tt_work *work, struct tt_cursor *cursor, int first)
{
    struct tt_shot *shot = work->shot;
    const struct tt_frame *frame = cursor->frame;
    struct tt_shot_part part = {.frame = cursor->frame_index, .first = first, .end = shot->nops};
    int sends = first, later = 0;
    while (sends < shot->nops && shot->ops[sends].kind == TT_SHOT_SEND)
        sends++;
    for (int k = sends; k < shot->nops; k++)
        later += shot->ops[k].kind == TT_SHOT_SEND;
    if (frame->conn == TT_CONN_P2P) {
        if (frame->after) part.after[0] = work->cursors[frame->after - 1].part;
        cursor->part = add_part(shot, part);
        return;
    }
    part.after[0] = shot->sends;
    if (later == 0 && work->nframes > 1) {
        part.end = sends;
        int own = add_part(shot, part);
        if (own) shot->sends = own;
        part = (struct tt_shot_part){.frame = part.frame, .first = sends, .end = shot->nops};
        part.after[0] = shot->sends; /* it may write what earlier calls send, too */
    }
    part.after[1] = shot->rests;
    int last = add_part(shot, part);
    if (last) shot->rests = last;
    if (last && later > 0) shot->sends = last;
}

static bool flatten(struct tt_work *work, struct tt_cursor *cursor)
{
    const struct tt_frame *frame = cursor->frame;
    int first = work->shot->nops;
    if (!may_be_small(frame)) return false;
    cursor->done = false;
    tt_stepper_start(&cursor->stepper, frame->program, frame->rank, cursor->thread, 1);
    for (;; tt_stepper_done(&cursor->stepper)) {
        enum tt_next next = tt_stepper_next(&cursor->stepper);
        if (next == TT_NEXT_OVER) break;
        if (next != TT_NEXT_MOVE || !flatten_transfer(work, cursor)) return false;
    }
    cut_parts(work, cursor, first);
    return true;
}

bool tt_shot_compile(struct tt_work *work)
{
    struct tt_shot *shot = work->shot;
    shot->nops = shot->nparts = shot->sends = shot->rests = 0;
    for (int k = 0; k < work->ncursors; k++) {
        if (!flatten(work, &work->cursors[k])) return false;
    }
    tt_shot_rewind(shot);
    return true;
}

/* ---- running ---- */

static enum tt_run send(struct tt_work *work, const struct tt_cursor *cursor,
                        const struct tt_shot_op *op)
{
    const char *in = cursor->frame->in + op->in_at;
    char *payload = tt_edge_acquire(op->edge, op->bytes);
    if (!payload) return tt_cursor_wait(&work->cursors[0], tt_edge_peer(op->edge), "free slot of");
    if (op->bytes <= TT_SLOT_INLINE_BYTES) {
        tt_edge_post_small(op->edge, cursor->match, in, op->bytes);
        return TT_RUN_DONE;
    }
    memcpy(payload, in, op->bytes);
    tt_edge_post(op->edge, cursor->match, op->bytes);
    return TT_RUN_DONE;
}

static enum tt_run await(struct tt_work *work, const struct tt_cursor *cursor,
                         const struct tt_shot_op *op, const char **payload)
{
    size_t got = 0;
    ncclResult_t rc = tt_slot_poll(work, op->edge, cursor->match, payload, &got);
    if (rc == ncclInProgress)
        return tt_cursor_wait(&work->cursors[0], tt_edge_peer(op->edge), "data of");
    if (rc == ncclSuccess && got != op->bytes) {
        rc = tt_slot_misfit(work, op->edge, got, op->bytes);
    }
    work->rc = rc;
    return rc ? TT_RUN_FAILED : TT_RUN_DONE;
}

static void fold(struct tt_shot *shot, const struct tt_frame *frame, const struct tt_shot_op *op)
{
    void *const dst = frame->out + op->out_at;
    if (op->pair && shot->nsrcs == 2) {
        op->pair(dst, shot->srcs[0], shot->srcs[1], op->count);
    } else {
        struct tt_fold_job job = {.fold = &frame->fold,
                                  .dsts = &dst,
                                  .ndsts = 1,
                                  .srcs = shot->srcs,
                                  .nsrcs = shot->nsrcs,
                                  .count = op->count};
        tt_fold_run(&job);
    }
    for (int k = 0; k < shot->nfull; k++)
        tt_edge_release(shot->full[k]);
    shot->nsrcs = shot->nfull = 0;
}

static inline enum tt_run run_op(struct tt_work *work, struct tt_shot *shot,
                                 const struct tt_cursor *cursor, const struct tt_shot_op *op)
{
    const struct tt_frame *frame = cursor->frame;
    const char *payload = frame->in + op->in_at;
    enum tt_run run = TT_RUN_DONE;
    switch (op->kind) {
    case TT_SHOT_SEND: return send(work, cursor, op);
    case TT_SHOT_PICK:
        if (op->edge) run = await(work, cursor, op, &payload);
        if (run != TT_RUN_DONE) return run;
        if (op->edge) shot->full[shot->nfull++] = op->edge;
        shot->srcs[shot->nsrcs++] = payload;
        break;
    case TT_SHOT_FOLD: fold(shot, frame, op); break;
    case TT_SHOT_TAKE:
        run = await(work, cursor, op, &payload);
        if (run != TT_RUN_DONE) return run;
        memcpy(frame->out + op->out_at, payload, op->bytes);
        tt_edge_release(op->edge);
        break;
    case TT_SHOT_COPY:
        if (frame->out + op->out_at != payload) memcpy(frame->out + op->out_at, payload, op->bytes);
        break;
    case TT_SHOT_PAIR:
        run = await(work, cursor, op, &payload);
        if (run != TT_RUN_DONE) return run;
        if (op->slot_first) {
            op->pair(frame->out + op->out_at, payload, frame->in + op->in_at, op->count);
        } else {
            op->pair(frame->out + op->out_at, frame->in + op->in_at, payload, op->count);
        }
        tt_edge_release(op->edge);
        break;
    }
    return TT_RUN_DONE;
}

static bool is_over(const struct tt_shot *shot, int part) /* plus 1 */
{
    return part == 0 || shot->parts[part - 1].at == shot->parts[part - 1].end;
}

enum tt_run tt_shot_run(struct tt_work *work)
{
    struct tt_shot *shot = work->shot;
    bool progress = false;
    for (int p = shot->done; p < shot->nparts; p++) {
        struct tt_shot_part *part = &shot->parts[p];
        const struct tt_cursor *cursor = &work->cursors[part->frame];
        if (!is_over(shot, part->after[0]) || !is_over(shot, part->after[1])) continue;
        const struct tt_shot_op *op = &shot->ops[part->at];
        int at = part->at, end = part->end;
        enum tt_run run = TT_RUN_DONE;
        for (; at < end; at++, op++) {
            run = run_op(work, shot, cursor, op);
            if (run != TT_RUN_DONE) break;
        }
        if (run == TT_RUN_FAILED) return run;
        progress = progress || at > part->at;
        part->at = at;
        if (p == shot->done && at == end) shot->done++;
    }
    if (shot->done == shot->nparts) return TT_RUN_DONE;
    return progress ? TT_RUN_PROGRESS : TT_RUN_WAIT;
}
