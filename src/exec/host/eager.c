/* Small messages in one go. Programs whose messages take one slot each (one pass, one thread,
 * nothing to scale) are flattened once, when their work is made, into a list: send these bytes
 * there, take those from there, reduce. Running it then costs a few nanoseconds beyond the cache
 * lines that travel. The list keeps each program's order and meaning; it stops where a slot is
 * missing and goes on from there.
 *
 * The list of a work of several frames (a group) is cut into parts, and a blocked part stops only
 * those that come after it. Each message is one; messages to one peer come after one another. The
 * sends with which collectives begin are one part and what follows them another, whose operations
 * wait for the sends of their own and of earlier calls alone, so that all of a group are under way
 * at once; on every edge the order stays that of the calls. The maker of such a work sees to it
 * that none reads what an earlier one writes.
 *
 * Following calls of one shape may have their messages in one slot: bundle.c.
 *
 * Slots of a reduction are kept until it is done, since the sources lie in them. */
#include "base/mem.h"
#include "exec/events.h"
#include "exec/host/cursor.h"
#include "exec/host/reduce.h"

#include <limits.h>
#include <string.h>

#define EAGER_BYTES                                                                                \
    ((size_t)8 << 10) /* larger ones are referred to or reduced by tiles: move.c                   \
                       */

struct tt_eager_range { /* operations */
    int first, end;
};

/* ---- flattening ---- */

static uint32_t from_start(const char *base, const void *start)
{
    return (uint32_t)((uintptr_t)base - (uintptr_t)start);
}

static bool add(struct tt_work *work, struct tt_eager_op op)
{
    if (work->eager->nops >= work->eager->limit) return false;
    if (op.edge) op.small = tt_edge_small(op.edge);
    if (op.edge) op.send = op.small->send;
    work->eager->ops[work->eager->nops++] = op;
    return true;
}

struct part { /* of a message */
    uint32_t at, of_bytes;
};

/* The receiver's. */
static struct part part_of(const struct tt_cursor *cursor, uint32_t bytes)
{
    const struct tt_frame *frame = cursor->frame;
    if (frame->casts != TT_CASTS_PARTS) return (struct part){0, bytes};
    return (struct part){(uint32_t)frame->rank * bytes, (uint32_t)frame->in_bytes};
}

/* Two sources of which one is a slot: one operation. */
static bool add_pair(struct tt_work *work, const struct tt_cursor *cursor, struct tt_eager_op op)
{
    struct tt_edge *const *edge = cursor->src.edge;
    int slot = edge[0] ? 0 : 1;
    op.kind = TT_EAGER_PAIR;
    op.slot_first = slot == 0;
    op.edge = edge[slot];
    op.in_at = from_start(cursor->src.base[1 - slot], cursor->frame->in);
    return add(work, op);
}

static bool add_reduce(struct tt_work *work, const struct tt_cursor *cursor, uint32_t bytes)
{
    const struct tt_frame *frame = cursor->frame;
    if (cursor->dst.count != 1 || cursor->dst.edge[0]) return false;
    const struct tt_eager_op reduce = {
        .kind = TT_EAGER_REDUCE,
        .bytes = bytes,
        .count = bytes / (uint32_t)frame->elem_bytes,
        .out_at = from_start(cursor->dst.base[0], frame->out),
        .pair = tt_reduce_native_pair(frame->reduction.type, frame->reduction.op)};
    if (reduce.pair && cursor->src.count == 2 && !cursor->src.edge[0] != !cursor->src.edge[1])
        return add_pair(work, cursor, reduce);
    if (cursor->src.count > TT_EAGER_MAX_RANKS) return false;
    const struct part part = part_of(cursor, bytes);
    for (int k = 0; k < cursor->src.count; k++) {
        struct tt_eager_op op = {.kind = TT_EAGER_PICK,
                                 .bytes = part.of_bytes,
                                 .in_at = part.at,
                                 .edge = cursor->src.edge[k]};
        if (!op.edge) op.in_at = from_start(cursor->src.base[k], frame->in);
        if (!add(work, op)) return false;
    }
    return add(work, reduce);
}

static bool add_copy(struct tt_work *work, const struct tt_cursor *cursor, uint32_t bytes)
{
    const struct tt_frame *frame = cursor->frame;
    struct tt_eager_op op = {.bytes = bytes};
    if (cursor->src.count != 1) return false;
    if (cursor->dst.count < 1) return frame->casts == TT_CASTS_PARTS; /* went with another */
    if (cursor->src.edge[0]) {
        const struct part part = part_of(cursor, bytes);
        if (cursor->dst.count != 1 || cursor->dst.edge[0]) return false;
        op.kind = frame->casts == TT_CASTS_PARTS ? TT_EAGER_PART : TT_EAGER_TAKE;
        op.bytes = part.of_bytes;
        op.in_at = part.at;
        op.count = bytes;
        op.edge = cursor->src.edge[0];
        op.out_at = from_start(cursor->dst.base[0], frame->out);
        return add(work, op);
    }
    op.in_at = from_start(cursor->src.base[0], frame->in);
    for (int k = 0; k < cursor->dst.count; k++) {
        op.edge = cursor->dst.edge[k];
        op.kind = op.edge ? TT_EAGER_SEND : TT_EAGER_COPY;
        op.out_at = op.edge ? 0 : from_start(cursor->dst.base[k], frame->out);
        if (!add(work, op)) return false;
    }
    return true;
}

/* The list knows IN as a source and OUT as a destination; the other way round is left to the
 * interpreter. */
static bool leaves_list(const struct tt_stepper *stepper)
{
    for (int sends = 0; sends < 2; sends++) {
        const enum tt_space memory = sends ? TT_SPACE_OUT : TT_SPACE_IN;
        struct tt_side side = {.sends = sends};
        struct tt_location location;
        while (tt_stepper_location(stepper, &side, &location))
            if (location.space != memory && location.space != TT_SPACE_SLOT) return true;
    }
    return false;
}

static bool flatten_transfer(struct tt_work *work, struct tt_cursor *cursor)
{
    const struct tt_insn *insn = tt_stepper_insn(&cursor->stepper);
    if (leaves_list(&cursor->stepper)) return false;
    tt_move_begin(work, cursor);
    size_t bytes = cursor->total_count * cursor->frame->elem_bytes;
    if (bytes > tt_min_size(EAGER_BYTES, work->slice_bytes)) return false;
    return insn->flags & TT_MOVE_REDUCE ? add_reduce(work, cursor, (uint32_t)bytes)
                                        : add_copy(work, cursor, (uint32_t)bytes);
}

static bool may_be_small(const struct tt_frame *frame)
{
    const struct tt_program *program = frame->program;
    return !program->needs_barrier && frame->geometry.npasses == 1 && !frame->reduction.pre_mul &&
           frame->reduction.post_div <= 1 && frame->in_bytes <= UINT32_MAX &&
           frame->out_bytes <= UINT32_MAX && (frame->geometry.nparts == 1 || program->whole_window);
}

/* A part without operations yet. Returns its number plus 1. */
static int add_part(struct tt_eager *eager, int after, int after_too)
{
    eager->parts[eager->nparts] = (struct tt_eager_part){.after = {after, after_too}};
    return ++eager->nparts;
}

/* Put operations at the end of a part; they wait until so many of its sends are done. */
static void chain(struct tt_eager *eager, int part, struct tt_eager_range ops, int after_sends)
{
    struct tt_eager_part *to = &eager->parts[part - 1];
    for (int k = ops.first; k < ops.end; k++) {
        struct tt_eager_op *op = &eager->ops[k];
        op->after_sends = after_sends;
        op->next = NULL;
        *(to->last ? &to->last->next : &to->first) = op;
        if (to->twin) to->twin->next = op;
        to->twin = NULL;
        to->last = op;
        to->passed++; /* counts what there is, until it runs */
    }
}

/* Collectives of a group that only send at their beginning: all these sends are one part, the rest
 * is another. A rest may write what earlier calls send, so it comes after their sends, too. */
static void chain_overlapping(struct tt_eager *eager, struct tt_eager_range ops, int nsends)
{
    if (!eager->open) {
        int sends = add_part(eager, eager->sends, 0);
        eager->rests = add_part(eager, eager->sends, eager->rests);
        eager->parts[eager->rests - 1].sends = eager->sends = sends;
        eager->open = true;
    }
    const struct tt_eager_range sends = {ops.first, ops.first + nsends};
    const struct tt_eager_range rest = {sends.end, ops.end};
    chain(eager, eager->sends, sends, 0);
    chain(eager, eager->rests, rest, eager->parts[eager->sends - 1].passed);
}

/* Which parts the operations of a frame belong to, and what those come after. */
static void cut_parts(struct tt_work *work, struct tt_cursor *cursor)
{
    struct tt_eager *eager = work->eager;
    const struct tt_frame *frame = cursor->frame;
    const struct tt_eager_range ops = {cursor->first_op, cursor->end_op};
    int nsends = 0, later = 0;
    if (frame->conn == TT_CONN_P2P) {
        int after = frame->after ? work->cursors[frame->after - 1].part : 0;
        cursor->part = ops.first < ops.end ? add_part(eager, after, 0) : 0;
        if (cursor->part) chain(eager, cursor->part, ops, 0);
        return;
    }
    while (ops.first + nsends < ops.end && eager->ops[ops.first + nsends].kind == TT_EAGER_SEND)
        nsends++;
    for (int k = ops.first + nsends; k < ops.end; k++)
        later += eager->ops[k].kind == TT_EAGER_SEND;
    if (work->nframes > 1 && later == 0) {
        chain_overlapping(eager, ops, nsends);
        return;
    }
    eager->open = false;
    eager->sends = eager->rests = add_part(eager, eager->sends, eager->rests);
    chain(eager, eager->sends, ops, 0);
}

/* Calls whose messages share slots. Their own operations are there for when the peer has its
 * messages otherwise. */
static bool cut_bundle(struct tt_work *work, int at, int ncalls)
{
    struct tt_eager *eager = work->eager;
    const int first = eager->nops;
    if (!tt_bundle_add(work, at, ncalls)) return false;
    struct tt_eager_op *rest = &eager->ops[eager->nops - 1], *last = NULL;
    chain_overlapping(eager, (struct tt_eager_range){first, eager->nops}, eager->nops - 1 - first);
    for (int k = 0; k < ncalls; k++) {
        const struct tt_cursor *cursor = &work->cursors[at + k];
        for (int op = cursor->end_op - rest->neach; op < cursor->end_op; op++) {
            eager->ops[op].after_sends = rest->after_sends;
            if (last) last->next = &eager->ops[op];
            last = &eager->ops[op];
        }
    }
    eager->parts[eager->rests - 1].twin = last;
    return true;
}

/* A collective of which this rank only gives. */
static void run_ahead(struct tt_work *work, const struct tt_cursor *cursor)
{
    struct tt_eager_op *const end = work->eager->ops + cursor->end_op;
    struct tt_eager_op *const first = work->eager->ops + cursor->first_op;
    if (cursor->frame->conn != TT_CONN_COLL) return;
    for (const struct tt_eager_op *op = first; op < end; op++) {
        if (op->kind != TT_EAGER_SEND && op->kind != TT_EAGER_COPY) return;
    }
    for (struct tt_eager_op *op = first; op < end; op++) {
        if (op->edge) op->send = op->small->send_ahead;
    }
}

static bool flatten(struct tt_work *work, struct tt_cursor *cursor)
{
    const struct tt_frame *frame = cursor->frame;
    cursor->first_op = work->eager->nops;
    if (!may_be_small(frame)) return false;
    cursor->done = false;
    tt_stepper_start(&cursor->stepper, frame->program, frame->rank, cursor->thread, 1);
    for (;; tt_stepper_done(&cursor->stepper)) {
        enum tt_next next = tt_stepper_next(&cursor->stepper);
        if (next == TT_NEXT_OVER) break;
        if (next != TT_NEXT_MOVE || !flatten_transfer(work, cursor)) return false;
    }
    cursor->end_op = work->eager->nops;
    run_ahead(work, cursor);
    for (int k = cursor->first_op; k < cursor->end_op; k++)
        work->eager->ops[k].frame = frame;
    return true;
}

bool tt_eager_compile(struct tt_work *work)
{
    struct tt_eager *eager = work->eager;
    eager->nops = eager->nparts = eager->sends = eager->rests = 0;
    eager->open = false;
    for (int k = 0; k < work->ncursors; k++) {
        if (!flatten(work, &work->cursors[k])) return false;
    }
    for (int k = 0, ncalls; k < work->ncursors; k += ncalls) {
        ncalls = tt_bundle_length(work, k);
        if (ncalls == 1) cut_parts(work, &work->cursors[k]);
        if (ncalls > 1 && !cut_bundle(work, k, ncalls)) return false;
    }
    return true;
}

/* ---- running ---- */

/* More than a slot's header holds. */
static __attribute__((noinline)) enum tt_run send_payload(struct tt_work *work,
                                                          const struct tt_eager_op *op)
{
    char *payload = tt_edge_acquire(op->edge, op->bytes);
    if (!payload) return tt_eager_await_free(work, op);
    memcpy(payload, op->frame->in + op->in_at, op->bytes);
    tt_edge_post(op->edge, op->frame->match, op->bytes);
    return TT_RUN_DONE;
}

static void reduce(struct tt_eager *eager, const struct tt_frame *frame,
                   const struct tt_eager_op *op)
{
    void *const dst = frame->out + op->out_at;
    if (op->pair && eager->nsrcs == 2) {
        op->pair(dst, eager->srcs[0], eager->srcs[1], op->count);
    } else {
        struct tt_reduce_job job = {.reduction = &frame->reduction,
                                    .dsts = &dst,
                                    .ndsts = 1,
                                    .srcs = eager->srcs,
                                    .nsrcs = eager->nsrcs,
                                    .count = op->count};
        tt_reduce_run(&job);
    }
    for (int k = 0; k < eager->nfull; k++)
        tt_edge_release(eager->full[k]);
    eager->nsrcs = eager->nfull = 0;
}

static enum tt_run pick(struct tt_work *work, struct tt_eager *eager, const struct tt_eager_op *op)
{
    const char *payload = op->edge ? NULL : op->frame->in + op->in_at;
    if (op->edge && !(payload = op->small->take(op->edge, op->frame->match, op->bytes))) {
        enum tt_run run = tt_eager_await_full(work, op, &payload);
        if (run != TT_RUN_DONE) return run;
    }
    if (op->edge) eager->full[eager->nfull++] = op->edge;
    eager->srcs[eager->nsrcs++] = op->edge ? payload + op->in_at : payload;
    return TT_RUN_DONE;
}

static enum tt_run take_part(struct tt_work *work, const struct tt_eager_op *op)
{
    const char *payload = op->small->take(op->edge, op->frame->match, op->bytes);
    if (!payload) {
        enum tt_run run = tt_eager_await_full(work, op, &payload);
        if (run != TT_RUN_DONE) return run;
    }
    memcpy(op->frame->out + op->out_at, payload + op->in_at, op->count);
    op->small->release(op->edge);
    return TT_RUN_DONE;
}

/* What is not the one message of a small call: out of its way. */
static __attribute__((noinline)) enum tt_run run_other(struct tt_work *work, struct tt_eager_op *op)
{
    const struct tt_frame *frame = op->frame;
    const char *in = frame->in + op->in_at;
    char *out = frame->out + op->out_at;
    if (op->kind == TT_EAGER_PICK) return pick(work, work->eager, op);
    if (op->kind == TT_EAGER_PART) return take_part(work, op);
    if (op->kind == TT_EAGER_REDUCE) {
        reduce(work->eager, frame, op);
    } else if (out != in) {
        memcpy(out, in, op->bytes);
    }
    return TT_RUN_DONE;
}

/* Operations from *at on, up to the first that has to wait, or comes after more sends than there
 * were; *at is that one. hot: one loop, as each call out of it would be on the way */
__attribute__((always_inline)) static inline enum tt_run
/* NOLINTNEXTLINE(readability-function-size,readability-function-cognitive-complexity): one loop */
run_ops(struct tt_work *work, struct tt_eager_op **at, int after_sends)
{
    enum tt_run run = TT_RUN_DONE;
    struct tt_eager_op *op;
    for (op = *at; op && op->after_sends <= after_sends; op = op->next) {
        const struct tt_frame *frame = op->frame;
        if (op->kind == TT_EAGER_SEND) {
            const bool small = op->bytes <= TT_SLOT_INLINE_BYTES;
            if (small && op->send(op->edge, frame->match, frame->in + op->in_at, op->bytes))
                continue;
            run = small ? tt_eager_await_free(work, op) : send_payload(work, op);
        } else if (op->kind > TT_EAGER_TAKE) {
            run = op->kind < TT_EAGER_SEND_ALL ? run_other(work, op) : tt_bundle_run(work, op);
            if (run == TT_RUN_DONE) continue;
        } else {
            const char *payload = op->small->take(op->edge, frame->match, op->bytes);
            if (!payload) {
                run = tt_eager_await_full(work, op, &work->eager->late);
                if (run != TT_RUN_DONE) break;
                payload = work->eager->late;
            }
            char *out = frame->out + op->out_at;
            if (op->kind == TT_EAGER_PAIR) {
                const char *in = frame->in + op->in_at;
                op->pair(out, op->slot_first ? payload : in, op->slot_first ? in : payload,
                         op->count);
            } else {
                memcpy(out, payload, op->bytes);
            }
            op->small->release(op->edge);
        }
        if (run != TT_RUN_DONE) break;
    }
    *at = op;
    return run;
}

static bool is_over(const struct tt_eager *eager, int part) /* plus 1 */
{
    return part == 0 || eager->parts[part - 1].over;
}

/* A message of a list that has waited is over before the others: its events end now. */
static __attribute__((noinline)) void end_message(struct tt_work *work,
                                                  const struct tt_eager_part *part)
{
    const struct tt_frame *frame = part->first ? part->first->frame : NULL;
    if (!frame || frame->conn != TT_CONN_P2P) return;
    const int f = (int)(frame - work->frames);
    work->frame_live[f] = 0;
    tt_events_end(work, f);
}

/* Operations of the part until one has to wait. */
static inline enum tt_run run_part(struct tt_work *work, struct tt_eager *eager,
                                   struct tt_eager_part *part)
{
    const int passed = part->passed;
    int after_sends = is_over(eager, part->sends) ? INT_MAX : eager->parts[part->sends - 1].passed;
    const struct tt_eager_op *op = part->at;
    enum tt_run run = run_ops(work, &part->at, after_sends);
    for (; op != part->at; op = op->next)
        part->passed++;
    part->over = !part->at;
    if (part->over && work->events_open) end_message(work, part);
    if (part->over || run == TT_RUN_FAILED) return run;
    if (part->passed > passed) return TT_RUN_PROGRESS;
    return run == TT_RUN_DONE ? TT_RUN_WAIT : run; /* the sends have said what they wait for */
}

/* Whatever of the parts from number `from` on can go on; all before are over, or wait. */
static enum tt_run run_parts(struct tt_work *work, int from, bool progress)
{
    struct tt_eager *eager = work->eager;
    int nover = eager->done;
    for (int p = from; p < eager->nparts; p++) {
        struct tt_eager_part *part = &eager->parts[p];
        if (!part->over && is_over(eager, part->after[0]) && is_over(eager, part->after[1])) {
            enum tt_run run = run_part(work, eager, part);
            if (run == TT_RUN_FAILED) return run;
            progress |= run != TT_RUN_WAIT;
        }
        nover += part->over;
    }
    if (nover == eager->nparts) return TT_RUN_DONE;
    while (eager->parts[eager->done].over)
        eager->done++;
    return progress ? TT_RUN_PROGRESS : TT_RUN_WAIT;
}

enum tt_run tt_eager_run(struct tt_work *work)
{
    return run_parts(work, work->eager->done, false);
}

/* The first run came to an operation that is not done: note how far it was, and go on with parts
 * that do not come after it. */
static __attribute__((noinline)) enum tt_run stop_at(struct tt_work *work, int stopped,
                                                     struct tt_eager_op *at, enum tt_run run)
{
    struct tt_eager *eager = work->eager;
    bool progress = at != eager->parts[0].first;
    if (run == TT_RUN_FAILED) return run;
    for (int p = 0; p < eager->nparts; p++) {
        struct tt_eager_part *part = &eager->parts[p];
        part->over = p < stopped;
        part->passed = 0;
        part->at = part->over ? NULL : part->first;
        const struct tt_eager_op *end = p == stopped ? at : part->at;
        for (const struct tt_eager_op *op = part->first; op != end; op = op->next)
            part->passed++;
        if (part->over && work->events_open) end_message(work, part);
    }
    eager->parts[stopped].at = at;
    eager->done = stopped;
    return run_parts(work, stopped + 1, progress);
}

/* Parts come after earlier ones alone, so as long as nothing waits their order is that of the list,
 * and nothing needs to be noted. */
enum tt_run tt_eager_start(struct tt_work *work)
{
    struct tt_eager *eager = work->eager;
    eager->nsrcs = eager->nfull = 0; /* of a run that failed */
    for (int p = 0; p < eager->nparts; p++) {
        struct tt_eager_op *op = eager->parts[p].first;
        const enum tt_run run = run_ops(work, &op, INT_MAX);
        if (run != TT_RUN_DONE) return stop_at(work, p, op, run);
    }
    return TT_RUN_DONE;
}
