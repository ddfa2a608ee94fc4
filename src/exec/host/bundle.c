/* Calls of a group that follow each other and are of one shape (the same program, type, operator
 * and size) have their messages to one peer in one slot, as far as they fit beside its header: one
 * cache line travels where each call had one. What a rank does so its peers need not know: a slot
 * with several messages is taken message by message where the calls were made otherwise, and where
 * the messages of a REST come otherwise the calls' own operations do what it would have done, from
 * then on each time.
 *
 * The operations of the calls are done in the order of the calls, as without; only sends, which
 * come before all of them anyway, change places. */
#include "base/wait.h"
#include "exec/host/cursor.h"
#include "exec/host/reduce.h"

#include <string.h>

/* ---- which calls ---- */

static bool is_same_call(const struct tt_frame *a, const struct tt_frame *b)
{
    const struct tt_reduction *x = &a->reduction, *y = &b->reduction;
    return b->begins && b->conn == TT_CONN_COLL && a->program == b->program &&
           a->fingerprint == b->fingerprint && a->elem_bytes == b->elem_bytes &&
           x->type == y->type && x->op == y->op;
}

static bool same_op(const struct tt_eager_op *a, const struct tt_eager_op *b)
{
    return a->kind == b->kind && a->bytes == b->bytes && a->edge == b->edge &&
           a->in_at == b->in_at && a->out_at == b->out_at && a->count == b->count &&
           a->slot_first == b->slot_first && a->pair == b->pair;
}

/* A send or a taken message: its edge has bundles and no other operation of the call uses it. */
static bool may_share(const struct tt_eager_op *ops, int nops, int at)
{
    const struct tt_eager_op *op = &ops[at];
    const bool sends = op->kind == TT_EAGER_SEND;
    if (!op->edge) return true;
    if (!op->small->open || op->bytes == 0) return false;
    for (int k = 0; k < nops; k++) {
        if (k != at && ops[k].edge == op->edge && (ops[k].kind == TT_EAGER_SEND) == sends)
            return false;
    }
    return true;
}

/* How many calls like this one fit a slot. */
static int slot_holds(const struct tt_eager_op *ops, int nops)
{
    uint32_t bytes = 1;
    int nrest = 0;
    for (int k = 0; k < nops; k++) {
        const bool sends = ops[k].kind == TT_EAGER_SEND;
        if ((sends && nrest > 0) || !may_share(ops, nops, k)) return 1;
        if (!sends) nrest++;
        if (ops[k].bytes > bytes) bytes = ops[k].bytes;
    }
    return nrest > 0 ? (int)(TT_SLOT_INLINE_BYTES / bytes) : 1;
}

int tt_bundle_length(const struct tt_work *work, int at)
{
    const struct tt_cursor *first = &work->cursors[at];
    const struct tt_eager_op *ops = &work->eager->ops[first->first_op];
    const int nops = first->end_op - first->first_op;
    int ncalls = 1, most = 1;
    if (first->frame->conn != TT_CONN_COLL || work->nframes == 1) return 1;
    most = slot_holds(ops, nops);
    for (; ncalls < most && at + ncalls < work->ncursors; ncalls++) {
        const struct tt_cursor *next = first + ncalls;
        if (next->end_op - next->first_op != nops || !is_same_call(first->frame, next->frame))
            break;
        int k = 0;
        while (k < nops && same_op(&ops[k], &work->eager->ops[next->first_op + k]))
            k++;
        if (k < nops) break;
    }
    return ncalls;
}

bool tt_bundle_add(struct tt_work *work, int at, int ncalls)
{
    struct tt_eager *eager = work->eager;
    const struct tt_cursor *cursor = &work->cursors[at];
    int op = cursor->first_op;
    for (; eager->nops < eager->limit; op++) {
        struct tt_eager_op *own = &eager->ops[op], *all = &eager->ops[eager->nops++];
        *all = *own;
        all->ncalls = ncalls;
        all->each = own;
        all->neach = 1;
        all->kind = own->kind == TT_EAGER_SEND ? TT_EAGER_SEND_ALL : TT_EAGER_REST;
        if (all->kind == TT_EAGER_SEND_ALL) continue;
        all->neach = cursor->end_op - op;
        return true;
    }
    return false;
}

/* ---- running ---- */

__attribute__((noinline)) enum tt_run tt_eager_await_free(struct tt_work *work,
                                                          const struct tt_eager_op *op)
{
    return tt_cursor_wait(&work->cursors[0], tt_edge_peer(op->edge), "free slot of");
}

/* It is not there, or not what was expected, or one of several messages. DONE: it is there. */
__attribute__((noinline)) enum tt_run
tt_eager_await_full(struct tt_work *work, const struct tt_eager_op *op, const char **payload_out)
{
    size_t got = 0;
    ncclResult_t rc = tt_slot_poll(work, op->edge, op->frame->match, payload_out, &got);
    if (rc == ncclInProgress)
        return tt_cursor_wait(&work->cursors[0], tt_edge_peer(op->edge), TT_WAIT_DATA);
    if (rc == ncclSuccess && got != op->bytes) {
        rc = tt_slot_size_error(work, op->edge, got, op->bytes);
    }
    work->rc = rc;
    return rc ? TT_RUN_FAILED : TT_RUN_DONE;
}

static inline void collect(char *to, const struct tt_eager_op *op)
{
    const struct tt_frame *frame = op->frame;
    const uint32_t at = op->in_at, bytes = op->bytes;
    for (const struct tt_frame *end = frame + op->ncalls; frame < end; frame++, to += bytes) {
        if (bytes == 8) {
            memcpy(to, frame->in + at, 8);
        } else {
            memcpy(to, frame->in + at, bytes);
        }
    }
}

static inline enum tt_run send_all(struct tt_work *work, const struct tt_eager_op *op)
{
    const struct tt_bundle bundle = {op->frame->match, op->bytes, (uint32_t)op->ncalls};
    char *to = op->small->open(op->edge);
    if (!to) return tt_eager_await_free(work, op);
    collect(to, op);
    op->small->close(op->edge, &bundle);
    return TT_RUN_DONE;
}

/* The messages of that edge, *bytes_out NULL when they come otherwise; or the wait for them. */
static inline enum tt_run take_all(struct tt_work *work, const struct tt_eager_op *rest,
                                   const struct tt_eager_op *op, const char **bytes_out)
{
    const struct tt_bundle bundle = {rest->frame->match, op->bytes, (uint32_t)rest->ncalls};
    *bytes_out = op->small->take_all(op->edge, &bundle);
    if (*bytes_out) return TT_RUN_DONE;
    const char *one = NULL;
    enum tt_run run = tt_eager_await_full(work, op, &one);
    if (run == TT_RUN_DONE) *bytes_out = op->small->take_all(op->edge, &bundle);
    return run;
}

/* The reduction of two, one of them what the peers sent: for all calls at once, since theirs lie
 * one after the other. */
static void run_pairs(const struct tt_eager_op *op, const char *theirs)
{
    char own[TT_SLOT_INLINE_BYTES], sums[TT_SLOT_INLINE_BYTES];
    const struct tt_frame *frame = op->frame;
    const uint32_t at = op->out_at, bytes = op->bytes;
    const char *from = sums;
    collect(own, op);
    op->pair(sums, op->slot_first ? theirs : own, op->slot_first ? own : theirs,
             (size_t)op->count * (size_t)op->ncalls);
    for (const struct tt_frame *end = frame + op->ncalls; frame < end; frame++, from += bytes) {
        if (bytes == 8) {
            memcpy(frame->out + at, from, 8);
        } else {
            memcpy(frame->out + at, from, bytes);
        }
    }
}

static void reduce(struct tt_eager *eager, const struct tt_frame *frame,
                   const struct tt_eager_op *op)
{
    void *const dst = frame->out + op->out_at;
    const struct tt_reduce_job job = {.reduction = &frame->reduction,
                                      .dsts = &dst,
                                      .ndsts = 1,
                                      .srcs = eager->srcs,
                                      .nsrcs = eager->nsrcs,
                                      .count = op->count};
    if (op->pair && eager->nsrcs == 2) {
        op->pair(dst, eager->srcs[0], eager->srcs[1], op->count);
    } else {
        tt_reduce_run(&job);
    }
    eager->nsrcs = 0;
}

/* One operation of one call, whose message (of what has an edge) is there. */
static inline void run_own(struct tt_eager *eager, const struct tt_frame *frame,
                           const struct tt_eager_op *op, const char *message)
{
    const char *in = frame->in + op->in_at;
    char *out = frame->out + op->out_at;
    if (op->kind == TT_EAGER_PAIR) {
        op->pair(out, op->slot_first ? message : in, op->slot_first ? in : message, op->count);
    } else if (op->kind == TT_EAGER_TAKE && message) {
        memcpy(out, message, op->bytes);
    } else if (op->kind == TT_EAGER_PART && message) {
        memcpy(out, message + op->in_at, op->count);
    } else if (op->kind == TT_EAGER_PICK) {
        eager->srcs[eager->nsrcs++] = op->edge ? message + op->in_at : in;
    } else if (op->kind == TT_EAGER_REDUCE) {
        reduce(eager, frame, op);
    } else if (out != in) {
        memcpy(out, in, op->bytes);
    }
}

/* All calls, each with its own part of what every edge brought. */
static void run_calls(struct tt_eager *eager, const struct tt_eager_op *rest,
                      const char *const *messages)
{
    const struct tt_eager_op *ops = rest->each;
    for (int call = 0; call < rest->ncalls; call++) {
        const char *const *message = messages;
        for (int k = 0; k < rest->neach; k++) {
            const char *own = ops[k].edge ? *message++ + (size_t)call * ops[k].bytes : NULL;
            run_own(eager, &rest->frame[call], &ops[k], own);
        }
    }
}

static __attribute__((noinline)) enum tt_run run_rest(struct tt_work *work,
                                                      struct tt_eager_op *rest)
{
    struct tt_eager_op *ops = rest->each;
    const char *messages[TT_EAGER_MAX_RANKS] = {NULL};
    int nmessages = 0;
    for (int k = 0; k < rest->neach; k++) {
        if (!ops[k].edge) continue;
        enum tt_run run = take_all(work, rest, &ops[k], &messages[nmessages]);
        if (run != TT_RUN_DONE) return run;
        if (messages[nmessages++]) continue;
        rest->kind = TT_EAGER_NOTHING;
        rest->next = ops;
        return TT_RUN_DONE;
    }
    run_calls(work->eager, rest, messages);
    for (int k = 0; k < rest->neach; k++) {
        const struct tt_bundle all = {rest->frame->match, ops[k].bytes, (uint32_t)rest->ncalls};
        if (ops[k].edge) ops[k].small->release_all(ops[k].edge, &all);
    }
    return TT_RUN_DONE;
}

enum tt_run tt_bundle_run(struct tt_work *work, struct tt_eager_op *op)
{
    if (op->kind == TT_EAGER_SEND_ALL) return send_all(work, op);
    if (op->kind == TT_EAGER_NOTHING) return TT_RUN_DONE;
    if (!op->pair || op->neach > 1) return run_rest(work, op);
    const struct tt_bundle bundle = {op->frame->match, op->bytes, (uint32_t)op->ncalls};
    const char *theirs = op->small->take_all(op->edge, &bundle);
    if (!theirs) return run_rest(work, op);
    run_pairs(op, theirs);
    op->small->release_all(op->edge, &bundle);
    return TT_RUN_DONE;
}
