/* The life of one run of a work: its turn in the issue queue, staging, the program, the end.
 * A step never blocks. The first error of any rank's work becomes the communicator's abort code;
 * an aborted communicator's works end at their turn, one after the other, so that no rank waits for
 * them. */
#include "exec/step.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "exec/events.h"
#include "exec/host/cursor.h"
#include "exec/issue.h"
#include "transport/reduces.h"
#include "transport/uses.h"

#include <assert.h>
#include <string.h>

#define SLICES_PER_STEP 8
#define POLLS_TO_ENTER 256 /* fruitless steps before a wait is entered in the registry */
#define POLLS_TO_TIRE 16   /* then a step looks once: a look at a socket is a system call */
#define POLLS_TO_COMPARE 64
#define POLLS_TO_CLOCK 8      /* on busy cores a look takes milliseconds: */
#define SLOW_NSEC 10000000ull /* then so long a wait is entered after fewer of them */

/* ---- waits ---- */

static const struct tt_cursor *first_waiting(const struct tt_work *work)
{
    for (int k = 0; k < work->ncursors; k++) {
        if (!work->cursors[k].done) return &work->cursors[k];
    }
    return NULL;
}

/* The message, or the exchange made of messages, that waits for its peer; NULL: none does. */
static const struct tt_frame *waiting_message(const struct tt_work *work,
                                              const struct tt_cursor *cursor)
{
    int func = tt_wait_is_for_data(cursor->waits_what) ? TT_FUNC_RECV : TT_FUNC_SEND;
    for (int f = 0; f < work->nframes; f++) {
        const struct tt_frame *frame = &work->frames[f];
        const struct tt_program *program = frame->program;
        if (frame->conn == TT_CONN_P2P && program->root == cursor->waits_for &&
            program->func == func)
            return frame;
    }
    return NULL;
}

static void enter_wait(struct tt_work *work, const struct tt_cursor *cursor)
{
    const struct tt_frame *message = waiting_message(work, cursor);
    struct tt_wait wait = {.owner = work->member,
                           .peer = cursor->waits_for,
                           .op_seq = work->match >> 32,
                           .what = cursor->waits_what,
                           .since_nsec = work->waits_since_nsec};
    if (message) memcpy(wait.call, &message->call, sizeof(wait.call));
    work->wait_slot = tt_wait_enter(&wait);
}

static void leave_wait(struct tt_work *work)
{
    if (work->polls == 0) return;
    work->polls = 0;
    work->waits_long = false;
    work->polls_now = work->polls_per_step;
    if (work->wait_slot < 0) return;
    tt_wait_leave(work->wait_slot);
    work->wait_slot = -1;
}

static bool is_long(const struct tt_work *work)
{
    if (work->polls >= POLLS_TO_ENTER) return true;
    return work->polls > POLLS_TO_TIRE && work->polls % POLLS_TO_CLOCK == 0 &&
           tt_now_nsec() - work->waits_since_nsec >= SLOW_NSEC;
}

/* Nothing moved: note it, and now and then look whether the peer is in another operation. */
static __attribute__((noinline)) ncclResult_t long_wait(struct tt_work *work)
{
    if (++work->polls == POLLS_TO_TIRE) {
        work->polls_now = 1;
        work->waits_since_nsec = tt_now_nsec();
    }
    if (!work->waits_long && !is_long(work)) return ncclSuccess;
    const struct tt_cursor *cursor = first_waiting(work);
    if (!cursor || !cursor->waits_what) return ncclSuccess;
    if (!work->waits_long) enter_wait(work, cursor);
    work->waits_long = true;
    uint32_t each = work->polls < POLLS_TO_ENTER ? POLLS_TO_CLOCK : POLLS_TO_COMPARE;
    if (work->polls % each || !work->uses_transport || cursor->waits_for < 0) return ncclSuccess;
    return tt_transport_compare(work->transport, work->match, cursor->waits_for);
}

/* ---- the run ---- */

/* Back to the first instruction, with nothing done. */
static __attribute__((noinline)) void rewind_cursors(struct tt_work *work)
{
    for (int f = 0; f < work->nframes; f++) {
        work->frame_live[f] = tt_program_nthreads(work->frames[f].program, work->frames[f].rank);
    }
    for (int k = 0; k < work->ncursors; k++) {
        struct tt_cursor *cursor = &work->cursors[k];
        tt_stepper_start(&cursor->stepper, cursor->frame->program, cursor->frame->rank,
                         cursor->thread, cursor->frame->geometry.npasses);
        cursor->done = cursor->moving = cursor->draining = false;
        cursor->leaving = cursor->ref_many = false;
        cursor->ref_edge = cursor->held = NULL;
        cursor->waits_what = NULL;
    }
    work->nlive = work->ncursors;
    work->entered = work->left = false;
    work->nleaving = work->narrived = work->ngone = 0;
}

static bool may_run(const struct tt_work *work, const struct tt_cursor *cursor)
{
    return cursor->frame->after == 0 || work->frame_live[cursor->frame->after - 1] == 0;
}

/* Advance all cursors a little. */
static __attribute__((noinline)) enum tt_run run_cursors(struct tt_work *work)
{
    enum tt_run all = TT_RUN_WAIT;
    for (int k = 0; k < work->ncursors; k++) {
        struct tt_cursor *cursor = &work->cursors[k];
        if (cursor->done || !may_run(work, cursor)) continue;
        enum tt_run run = tt_cursor_run(work, cursor, SLICES_PER_STEP);
        if (run == TT_RUN_FAILED) return run;
        if (run != TT_RUN_WAIT) all = TT_RUN_PROGRESS;
        if (!cursor->done) continue;
        work->nlive--;
        bool frame_over = --work->frame_live[cursor->frame_index] == 0;
        if (frame_over && work->events_open) tt_events_end(work, cursor->frame_index);
    }
    return work->nlive == 0 ? TT_RUN_DONE : all;
}

/* The one edge of a message's frame. */
static struct tt_edge *message_edge(const struct tt_frame *frame)
{
    const struct tt_program *program = frame->program;
    if (program->root < 0) return NULL; /* within the rank */
    return program->func == TT_FUNC_SEND ? frame->send_edges[program->root]
                                         : frame->recv_edges[program->root];
}

static uint64_t message_match(const struct tt_frame *frame)
{
    if (frame->channel) return frame[-1].match; /* a further part of the message */
    struct tt_edge *edge = message_edge(frame);
    if (!edge) return 0;
    return tt_edge_next_message(edge, frame->geometry.count * frame->elem_bytes, frame->call.type);
}

/* The same where frames share a number or are messages. */
static __attribute__((noinline)) void number_others(struct tt_work *work)
{
    uint32_t fingerprint = 0;
    uint64_t number = 0;
    for (int f = 0; f < work->nframes; f++) {
        struct tt_frame *frame = &work->frames[f];
        if (frame->begins || (f == 0 && work->uses_transport))
            number = tt_transport_begin(work->transport, frame->fingerprint, &frame->call) >> 32;
        if (frame->begins || f == 0) fingerprint = frame->fingerprint;
        frame->match =
            frame->conn == TT_CONN_P2P ? message_match(frame) : number << 32 | frame->fingerprint;
    }
    work->match = number << 32 | fingerprint; /* what the peers see this rank in */
}

/* Calls of a group. */
static __attribute__((noinline)) void number_several(struct tt_work *work)
{
    struct tt_frame *frame = work->frames, *const end = frame + work->nframes;
    uint64_t match = 0;
    while (frame < end) {
        struct tt_frame *const other = frame + frame->nsame;
        match = tt_transport_begin_many(work->transport, frame->fingerprint, &frame->call,
                                        frame->nsame);
        for (; frame < other; frame++, match += TT_MATCH_STEP)
            frame->match = match;
    }
    work->match = match - TT_MATCH_STEP; /* the last one's */
}

/* Number the operations, and the messages of frames. */
static void number_frames(struct tt_work *work)
{
    if (!work->each_counts) {
        number_others(work);
        return;
    }
    struct tt_frame *frame = work->frames;
    if (work->nframes > 1) {
        number_several(work);
    } else {
        work->match = frame->match =
            tt_transport_begin(work->transport, frame->fingerprint, &frame->call);
    }
}

/* Hints for the network. Where one algorithm is not NCCL's nothing is said of any. */
static void report_uses(const struct tt_work *work)
{
    struct tt_net_uses uses = {0, 0, 0};
    bool known = true;
    for (int f = 0; f < work->nframes; f++) {
        const struct tt_call *call = &work->frames[f].call;
        known = known && call->algo < TT_ALGO_NCCL_COUNT_;
        uses.functions |= (uint16_t)(1u << call->func);
        uses.algorithms |= (uint16_t)(1u << call->algo % 16);
        uses.protocols |= (uint16_t)(1u << call->proto % 16);
    }
    if (!known) uses.algorithms = 0;
    tt_transport_uses(work->transport, uses);
}

/* Messages that the frames will take, so that the peers need not wait for receives. Where a
 * profiler watches, tt_edge_track() says so when a frame begins. */
static void expect_messages(const struct tt_work *work)
{
    struct tt_slot_counts *counts = work->slot_counts;
    for (int f = 0; f < work->nframes; f++) {
        const struct tt_frame *frame = &work->frames[f];
        if (!frame->recv_edges) continue;
        tt_program_slots(frame->program, frame->rank, &frame->geometry,
                         work->slice_bytes / frame->elem_bytes, counts);
        for (int k = 0; k < frame->program->nchannels * frame->program->nranks; k++) {
            if (counts[k].receives) tt_edge_expect(frame->recv_edges[k], counts[k].receives);
        }
    }
}

/* All frames are of one call: programs over the network are no part of others' works. */
static void report_network(const struct tt_work *work)
{
    const struct tt_frame *frame = &work->frames[0];
    const struct tt_network_call call = tt_program_network(frame->program, frame->rank);
    const struct tt_collnet_type type = {.type = frame->reduction.type,
                                         .op = frame->reduction.op,
                                         .elem_bytes = frame->elem_bytes,
                                         .gives = (int)call.gives,
                                         .takes = (int)call.takes};
    tt_transport_reduces(work->transport, &type);
}

/* The turn has come. */
static ncclResult_t begin(struct tt_work *work)
{
    if (!work->eager) rewind_cursors(work);
    number_frames(work);
    if (work->events.profiler) tt_events_begin(work);
    if (work->expects) report_uses(work);
    if (work->expects && !work->events.profiler) expect_messages(work);
    if (work->frames[0].program->table_at[TT_TABLE_NETWORK]) report_network(work);
    work->phase = TT_WORK_RUN;
    if (work->has_scratch) {
        ncclResult_t rc = tt_stage_scratch(work);
        if (rc) return rc;
    }
    if (work->nentered == 0) return ncclSuccess;
    for (int f = 0; f < work->nframes; f++) {
        work->frames[f].in = work->user_in;
        work->frames[f].out = work->user_out;
    }
    ncclResult_t rc = tt_stage_plan(work);
    if (work->nstages > 0) work->phase = TT_WORK_STAGE_IN;
    return rc;
}

/* An abort ends the frames that have not ended. */
static __attribute__((noinline)) void cut_events(struct tt_work *work)
{
    work->events_open = false;
    for (int f = 0; f < work->nframes; f++) {
        if (work->frame_live[f] > 0) tt_events_cut(work, f);
    }
}

/* Frames that did not end by themselves: the work failed, or ran as a list without a wait. */
static void end_events(struct tt_work *work, ncclResult_t rc)
{
    if (rc) cut_events(work);
    work->events_open = false;
    for (int f = 0; !rc && f < work->nframes; f++) {
        if (work->frame_live[f] > 0) tt_events_end(work, f);
    }
}

/* It failed, waited long, or is watched by a profiler. */
static __attribute__((noinline)) void end_unusual(struct tt_work *work, ncclResult_t rc)
{
    leave_wait(work);
    if (work->events_open) end_events(work, rc);
    if (rc) tt_member_abort(work->member, rc);
    if (rc && work->transport) tt_transport_release_memory(work->transport);
}

/* Captured works serve their sequence number at their end; others when the device releases them,
 * because a served queue may be gone the moment after. */
static void serve_captured(struct tt_work *work)
{
    /* pairs with the acquire loads of the next turn and of tt_exec_drain() */
    atomic_store_explicit(&work->queue->served, work->seq + 1, memory_order_release);
}

static inline enum tt_step end(struct tt_work *work, ncclResult_t rc)
{
    if (rc || work->polls || work->events_open) end_unusual(work, rc);
    work->phase = TT_WORK_IDLE;
    if (work->captured) serve_captured(work);
    return TT_STEP_DONE;
}

/* A graph launch has its position on a stream: its run's position in the queue is now. */
static void take_seq(struct tt_work *work)
{
    uint64_t seq = tt_issue_number(work->queue);
    tt_issue_let(work->queue);
    if (!tt_launch_seqs_put(&work->seqs, seq)) tt_member_abort(work->member, ncclSystemError);
}

/* Launches that were issued and never ran (a device was reset) would block the queue for ever. */
static __attribute__((noinline)) void forsake_seqs(struct tt_work *work)
{
    uint64_t seq;
    while (tt_launch_seqs_take(&work->seqs, &seq)) {
        tt_member_abort(work->member, ncclInternalError);
        atomic_store_explicit(&work->queue->served, seq + 1, memory_order_release);
    }
}

/* No call follows. A work that never got its turn would block the queue for ever: abort it. */
__attribute__((noinline)) void tt_work_release(struct tt_work *work)
{
    struct tt_issue_queue *queue = work->queue;
    uint64_t seq = work->seq;
    if (work->captured) {
        forsake_seqs(work);
        tt_work_destroy(work);
        return;
    }
    if (work->phase != TT_WORK_IDLE) end(work, ncclInternalError);
    if (work->kept) {
        atomic_store_explicit(&work->in_flight, 0, memory_order_release); /* tt_work_idle() */
    } else {
        tt_work_recycle(work);
    }
    if (atomic_load_explicit(&queue->served, memory_order_relaxed) > seq) return;
    /* pairs with the acquire loads of the next turn and of tt_exec_drain() */
    atomic_store_explicit(&queue->served, seq + 1, memory_order_release);
}

/* One step of a captured work that a graph launch reached, or of any before its turn. */
static bool turn_came(struct tt_work *work)
{
    if (work->phase == TT_WORK_IDLE) {
        if (!tt_launch_seqs_take(&work->seqs, &work->seq)) return false;
        work->phase = TT_WORK_TURN;
    }
    /* pairs with the release stores of those that ended before */
    return atomic_load_explicit(&work->queue->served, memory_order_acquire) >= work->seq;
}

static __attribute__((noinline)) enum tt_step step_stage(struct tt_work *work)
{
    bool in = work->phase == TT_WORK_STAGE_IN;
    if (!tt_stage_copy(work, in)) return TT_STEP_PROGRESS;
    if (!in) return end(work, ncclSuccess);
    work->phase = TT_WORK_RUN;
    return TT_STEP_PROGRESS;
}

/* All calls but that for a step. */
static __attribute__((noinline)) enum tt_step report_work(struct tt_work *work,
                                                          enum tt_item_call call)
{
    switch (call) {
    case TT_ITEM_STEP: break;
    case TT_ITEM_RELEASE: tt_work_release(work); break;
    case TT_ITEM_HOLD: tt_issue_hold(work->queue); break;
    case TT_ITEM_LET: tt_issue_let(work->queue); break;
    case TT_ITEM_ISSUE: take_seq(work); break;
    case TT_ITEM_TOUCH: tt_work_report_touches(work); break;
    }
    return TT_STEP_DONE;
}

/* The end of a step in which the program got so far. */
static __attribute__((noinline)) enum tt_step after_run(struct tt_work *work, enum tt_run run)
{
    if (run == TT_RUN_FAILED) return end(work, work->rc);
    if (run == TT_RUN_WAIT) {
        ncclResult_t rc = long_wait(work);
        return rc ? end(work, rc) : TT_STEP_WAIT;
    }
    if (run == TT_RUN_PROGRESS) {
        leave_wait(work);
        return TT_STEP_PROGRESS;
    }
    if (work->nstages == 0) return end(work, ncclSuccess);
    leave_wait(work);
    work->phase = TT_WORK_STAGE_OUT;
    return TT_STEP_PROGRESS;
}

/* The turn of what is no flat list, or has a profiler or a network that must know before. */
static __attribute__((noinline)) enum tt_step start_long(struct tt_work *work)
{
    ncclResult_t rc = begin(work);
    if (rc) return end(work, rc);
    if (work->phase != TT_WORK_RUN) return step_stage(work);
    return after_run(work, work->eager ? tt_eager_start(work) : run_cursors(work));
}

enum tt_step tt_work_start(struct tt_work *work)
{
    if (tt_member_gives_up(work->member, work->seq)) return end(work, ncclSuccess);
    if (!work->eager || work->announced) return start_long(work);
    struct tt_frame *frame = work->frames;
    if (!work->each_counts) { /* as number_frames() does */
        number_others(work);
    } else if (work->nframes > 1) {
        number_several(work);
    } else {
        work->match = frame->match =
            tt_transport_begin(work->transport, frame->fingerprint, &frame->call);
    }
    const enum tt_run run = tt_eager_start(work);
    if (run != TT_RUN_DONE) {
        work->phase = TT_WORK_RUN;
        return after_run(work, run);
    }
    work->phase = TT_WORK_IDLE;
    if (work->captured) serve_captured(work);
    return TT_STEP_DONE;
}

static __attribute__((noinline)) enum tt_step step(struct tt_work *work)
{
    if (work->phase == TT_WORK_TURN || work->phase == TT_WORK_IDLE)
        return turn_came(work) ? tt_work_start(work) : TT_STEP_WAIT;
    if (tt_member_gives_up(work->member, work->seq)) {
        /* the buffers are the caller's again when the stream is over */
        if (work->transport) tt_transport_release_memory(work->transport);
        if (work->events_open) cut_events(work);
        return end(work, ncclSuccess);
    }
    if (work->phase != TT_WORK_RUN) return step_stage(work);
    return after_run(work, work->eager ? tt_eager_run(work) : run_cursors(work));
}

enum tt_step tt_work_step(struct tt_item *item, enum tt_item_call call)
{
    struct tt_work *work = tt_container_of(item, struct tt_work, item);
    return call == TT_ITEM_STEP ? step(work) : report_work(work, call);
}
