/* The way in: takes sequence numbers and hands work to the stream; the way out: waits for the
 * queue. */
#include "exec/exec.h"

#include "base/arch/arch.h"
#include "base/error.h"
#include "base/member.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "exec/host/cursor.h"
#include "exec/issue.h"
#include "exec/step.h"

enum {                      /* of a work that runs inside its call */
       POLLS_BLIND = 32,    /* steps before the first look at the clock */
       POLLS_MOST = 400,    /* where there is no clock */
       INLINE_TICKS = 6000, /* about 2 us at 3 GHz */
};
#define ABORT_GRACE_NSEC 500000000u /* how long drain waits for works that no thread runs */

static bool is_served(struct tt_issue_queue *queue, uint64_t seq)
{
    /* pairs with the release stores in step.c */
    return atomic_load_explicit(&queue->served, memory_order_acquire) >= seq;
}

static void help_until_served(struct tt_issue_queue *queue, uint64_t seq)
{
    uint32_t spins = 0;
    while (!is_served(queue, seq)) {
        if (tuttiHostHelp()) {
            spins = 0;
        } else {
            tt_wait_relax(&spins, true);
        }
    }
}

/* The stream refused the work: its sequence number is served unused, in order. */
static __attribute__((noinline)) ncclResult_t refused(struct tt_work *work, int code)
{
    int rank = work->member->rank;
    if (!work->captured) {
        help_until_served(work->queue, work->seq);
        atomic_store_explicit(&work->queue->served, work->seq + 1, memory_order_release);
    }
    work->phase = TT_WORK_IDLE;
    atomic_store_explicit(&work->in_flight, 0, memory_order_relaxed);
    if (!work->kept) tt_work_destroy(work);
    return tt_fail(ncclUnhandledCudaError, "rank %d: the stream took no work (code %d)", rank,
                   code);
}

/* The first step did not end it: step on within the budget, but where cores are short. */
static __attribute__((noinline)) bool ends_soon(struct tt_work *work)
{
    uint64_t until = 0;
    if (tuttiHostOversubscribed()) return false;
    for (int polls = 1; polls < POLLS_MOST; polls++) {
        if (tt_work_step(&work->item, TT_ITEM_STEP) == TT_STEP_DONE) return true;
        if (polls < POLLS_BLIND) continue;
        if (polls == POLLS_BLIND) until = tt_cpu_ticks() + INLINE_TICKS;
        if (tt_cpu_ticks() > until) return false;
    }
    return false;
}

/* Where the race checker cannot close them while the work runs. */
static __attribute__((noinline)) void use_views(struct tt_work *work)
{
    for (int f = 0; f < work->nframes; f++) {
        struct tt_frame *frame = &work->frames[f];
        frame->in = tuttiHostView(frame->in);
        frame->out = tuttiHostView(frame->out);
        frame->reduction.scalar_ptr = tuttiHostView(frame->reduction.scalar_ptr);
    }
    work->user_in = work->frames[0].in;
    work->user_out = work->frames[0].out;
}

ncclResult_t tt_work_create(const struct tt_work_spec *spec, struct tt_work **work_out)
{
    struct tt_work *work = NULL;
    ncclResult_t rc = tt_work_make(spec, &work);
    if (rc) return rc;
    work->item.step = tt_work_step;
    *work_out = work;
    return ncclSuccess;
}

ncclResult_t tt_exec_submit(struct tt_work *work, struct CUstream_st *stream)
{
    struct tt_issue_queue *queue = work->queue;
    bool captured = work->captured; /* then the stream is, and the work has no number yet */
    if (tuttiHostHasViews()) use_views(work);
    if (!captured) {
        work->phase = TT_WORK_TURN;
        atomic_store_explicit(&work->in_flight, 1, memory_order_relaxed);
        tt_issue_lock(queue);
        work->seq = tt_issue_number(queue);
        tt_issue_note(queue, work->seq, stream);
    }
    int code = tuttiHostSubmit(stream, &work->item, false);
    if (!captured) tt_issue_unlock(queue);
    return code ? refused(work, code) : ncclSuccess;
}

/* Not the next one of the queue, or not over after one step. `stream` is that of the handle. */
static __attribute__((noinline)) void submit_later(struct tt_work *work, struct CUstream_st *handle,
                                                   struct CUstream_st *stream, bool began)
{
    if (!began) work->phase = TT_WORK_TURN;
    atomic_store_explicit(&work->in_flight, 1, memory_order_relaxed);
    if (began && ends_soon(work)) {
        tt_work_release(work);
        tuttiHostClaimEnd(stream);
    } else {
        tt_issue_note(work->queue, work->seq, handle);
        tuttiHostClaimPark(stream, &work->item);
    }
}

/* Leave the issue lock, with the next sequence number where the stream was claimed. */
static inline uint64_t end_issue(struct tt_issue_queue *queue, bool claimed)
{
    const uint64_t seq = atomic_load_explicit(&queue->issued, memory_order_relaxed);
    if (claimed) atomic_store_explicit(&queue->issued, seq + 1, memory_order_relaxed);
    atomic_store_explicit(&queue->issuing, 0, memory_order_release);
    return seq;
}

/* hot */
enum tt_claim tt_exec_launch(struct tt_work *work, struct CUstream_st *stream, ncclResult_t *rc_out)
{
    struct tt_issue_queue *queue = work->queue;
    struct CUstream_st *claimed = NULL;
    tt_issue_lock(queue);
    const enum tt_claim claim = tuttiHostClaim(stream, &claimed);
    const uint64_t seq = end_issue(queue, claim == TT_CLAIM_TAKEN);
    if (claim != TT_CLAIM_TAKEN) {
        if (claim == TT_CLAIM_BUSY) *rc_out = tt_exec_submit(work, stream);
        return claim;
    }
    work->seq = seq;
    const bool turn = is_served(queue, seq);
    if (!turn || tt_work_start(work) != TT_STEP_DONE) {
        submit_later(work, stream, claimed, turn);
        return TT_CLAIM_TAKEN;
    }
    if (!work->kept) tt_work_recycle(work);
    /* pairs with the acquire loads of the next turn and of tt_exec_drain() */
    atomic_store_explicit(&queue->served, seq + 1, memory_order_release);
    tuttiHostClaimEnd(claimed);
    return TT_CLAIM_TAKEN;
}

ncclResult_t tt_exec_drain(const struct tt_member *member, struct tt_issue_queue *queue)
{
    uint64_t issued = atomic_load_explicit(&queue->issued, memory_order_relaxed);
    uint64_t aborted_nsec = 0;
    uint32_t spins = 0;
    while (!is_served(queue, issued)) {
        if (tuttiHostHelp()) {
            spins = 0;
            continue;
        }
        tt_wait_relax(&spins, true);
        if (!tt_member_gives_up(member, issued)) continue;
        if (!aborted_nsec) aborted_nsec = tt_now_nsec();
        if (tt_now_nsec() - aborted_nsec > ABORT_GRACE_NSEC) break;
    }
    return tt_member_abort_code(member);
}
