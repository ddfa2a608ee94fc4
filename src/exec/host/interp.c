/* The interpreter: does what the stepper says next, wherever a thread calls.
 * It never blocks: what cannot be done now is answered with WAIT, and the cursor stays where it
 * is. */
#include "exec/events.h"
#include "exec/host/cursor.h"
#include "exec/host/reduce.h"
#include "transport/barrier.h"

#include <string.h>

/* ---- ENTER and LEAVE: once per work, whatever the number of its frames ---- */

static enum tt_run arrived(struct tt_work *work, struct tt_cursor *cursor, int rank)
{
    ncclResult_t rc = tt_barrier_arrived(work->transport, work->match, rank, &work->arrivals[rank]);
    if (rc == ncclInProgress) return tt_cursor_wait(cursor, rank, "arrival of");
    if (rc == ncclSuccess) return TT_RUN_DONE;
    work->rc = rc;
    return TT_RUN_FAILED;
}

/* The ranks that read our input multiply it by our scalar. */
static uint64_t own_scalar(const struct tt_frame *frame)
{
    uint64_t bits = 0;
    if (frame->reduction.pre_mul)
        memcpy(&bits, tt_reduce_scalar(&frame->reduction), frame->elem_bytes);
    return bits;
}

static enum tt_run enter(struct tt_work *work, struct tt_cursor *cursor, const struct tt_insn *insn)
{
    const struct tt_frame *frame = cursor->frame;
    if (!work->entered) {
        const struct tt_arrival own = {frame->in, frame->out, own_scalar(frame)};
        ncclResult_t rc = tt_barrier_enter(work->transport, work->match, &own);
        if (rc == ncclInProgress) return tt_cursor_wait(cursor, -1, "departure of");
        work->entered = true;
    }
    if (insn->arg >= 0) return arrived(work, cursor, insn->arg);
    while (work->narrived < frame->program->nranks) {
        enum tt_run run = arrived(work, cursor, work->narrived);
        if (run != TT_RUN_DONE) return run;
        work->narrived++;
    }
    return TT_RUN_DONE;
}

static enum tt_run step_enter(struct tt_work *work, struct tt_cursor *cursor,
                              const struct tt_insn *insn)
{
    enum tt_run run = enter(work, cursor, insn);
    if (work->events.phases && run == TT_RUN_DONE) tt_events_phase(work, cursor->frame_index, 1);
    return run;
}

static enum tt_run step_leave(struct tt_work *work, struct tt_cursor *cursor,
                              const struct tt_insn *insn)
{
    if (!cursor->leaving) {
        cursor->leaving = true;
        work->nleaving++;
        if (work->events.phases) tt_events_phase(work, cursor->frame_index, 2);
    }
    if (work->nleaving < work->nentered)
        return tt_cursor_wait(cursor, work->member->rank, "channel of");
    if (!work->left) {
        work->left = true;
        tt_barrier_leave(work->transport);
    }
    if (insn->flags & TT_MOVE_NO_WAIT) return TT_RUN_DONE;
    for (; work->ngone < cursor->frame->program->nranks; work->ngone++) {
        if (!tt_barrier_left(work->transport, work->ngone)) {
            return tt_cursor_wait(cursor, work->ngone, "departure of");
        }
    }
    return TT_RUN_DONE;
}

/* ---- the thread ---- */

/* All passes are done: wait until the peers have read what slots refer to. A message waits for its
 * own peer alone: the others in its edge table may be waiting for what this peer sends next. */
static enum tt_run drain(struct tt_cursor *cursor)
{
    struct tt_edge **edges = cursor->frame->send_edges;
    if (cursor->ref_edge && !tt_edge_drained(cursor->ref_edge)) {
        return tt_cursor_wait(cursor, tt_edge_peer(cursor->ref_edge), "reading by");
    }
    int nedges = cursor->frame->program->nchannels * cursor->frame->program->nranks;
    for (int k = 0; cursor->ref_many && k < nedges; k++) {
        if (edges[k] && !tt_edge_drained(edges[k])) {
            return tt_cursor_wait(cursor, tt_edge_peer(edges[k]), "reading by");
        }
    }
    cursor->done = true;
    return TT_RUN_DONE;
}

static enum tt_run step_move(struct tt_work *work, struct tt_cursor *cursor)
{
    if (!cursor->moving) tt_move_begin(work, cursor);
    cursor->moving = true;
    enum tt_run run = tt_move_step(work, cursor);
    if (run == TT_RUN_DONE) cursor->moving = false;
    return run;
}

/* The frame's cursors stand side by side, and are stepped by one thread. */
static enum tt_run step_await(struct tt_cursor *cursor)
{
    const struct tt_insn *insn = tt_stepper_insn(&cursor->stepper);
    const struct tt_cursor *other = cursor - cursor->thread + insn->thread;
    if (tt_stepper_awaited(&cursor->stepper, &other->stepper)) return TT_RUN_DONE;
    return tt_cursor_wait(cursor, -1, "thread of");
}

static enum tt_run step(struct tt_work *work, struct tt_cursor *cursor)
{
    enum tt_next next = cursor->moving ? TT_NEXT_MOVE : tt_stepper_next(&cursor->stepper);
    switch (next) {
    case TT_NEXT_MOVE: return step_move(work, cursor);
    case TT_NEXT_ENTER: return step_enter(work, cursor, tt_stepper_insn(&cursor->stepper));
    case TT_NEXT_LEAVE: return step_leave(work, cursor, tt_stepper_insn(&cursor->stepper));
    case TT_NEXT_AWAIT: return step_await(cursor);
    case TT_NEXT_OVER: break;
    }
    cursor->draining = true;
    return TT_RUN_PROGRESS;
}

/* What it posted last is sent, as it may be long before it goes on. */
static enum tt_run stop(struct tt_cursor *cursor, enum tt_run run)
{
    if (cursor->held) tt_edge_push(cursor->held);
    cursor->held = NULL;
    return run;
}

enum tt_run tt_cursor_run(struct tt_work *work, struct tt_cursor *cursor, int slices)
{
    bool progress = false;
    while (!cursor->draining) {
        enum tt_run run = step(work, cursor);
        if (run == TT_RUN_FAILED) return run;
        if (run == TT_RUN_WAIT) return stop(cursor, progress ? TT_RUN_PROGRESS : run);
        progress = true;
        if (run == TT_RUN_DONE) tt_stepper_done(&cursor->stepper);
        if (--slices <= 0 && !cursor->draining) return stop(cursor, TT_RUN_PROGRESS);
    }
    stop(cursor, TT_RUN_PROGRESS);
    enum tt_run run = drain(cursor);
    return run == TT_RUN_WAIT && progress ? TT_RUN_PROGRESS : run;
}
