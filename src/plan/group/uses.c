/* The threads that use a plan: holds keep its storage, pins the communicator, and one thread at a
 * time is inside.
 */
#include "base/error.h"
#include "base/system/fence.h"
#include "base/wait.h"
#include "device/device.h"
#include "plan/group/group.h"
#include "plan/launch/batch.h"

#include <stdlib.h>

/* A plan without users is kept until RETIRED others came after it, as its communicator does: a call
 * that another thread's abort overtook finds that it ended, not the bytes of another object. Before
 * that a communicator whose works wait on a stream that stands still, or lie in graphs, is kept
 * with its plan until they have gone. */
enum { RETIRED = 64 };

static void retire(struct tt_plan *plan)
{
    struct tt_plans *plans = tt_comm_plans();
    struct tt_plan *dead = NULL;
    tt_batches_free(plan);
    plan->next_ended = NULL;
    pthread_mutex_lock(&plans->retired.lock);
    if (plans->retired.count++ == 0) {
        plans->retired.oldest = plan;
    } else {
        plans->retired.newest->next_ended = plan;
    }
    plans->retired.newest = plan;
    if (plans->retired.count > RETIRED) {
        dead = plans->retired.oldest;
        plans->retired.oldest = dead->next_ended;
        plans->retired.count--;
    }
    pthread_mutex_unlock(&plans->retired.lock);
    if (!dead) return;
    pthread_mutex_destroy(&dead->background_lock);
    free(dead);
}

void tt_plan_hold(struct tt_plan *plan)
{
    atomic_fetch_add_explicit(&plan->uses, TT_PLAN_HOLD, memory_order_relaxed);
}

void tt_plan_drop(struct tt_plan *plan)
{
    uint64_t before = atomic_fetch_sub_explicit(&plan->uses, TT_PLAN_HOLD, memory_order_acq_rel);
    if (before == (TT_PLAN_CLOSED | TT_PLAN_HOLD)) retire(plan);
}

bool tt_plan_pin(struct tt_plan *plan)
{
    uint64_t before = atomic_fetch_add_explicit(&plan->uses, TT_PLAN_PIN, memory_order_acquire);
    if (!(before & TT_PLAN_CLOSED)) return true;
    tt_plan_unpin(plan);
    return false;
}

void tt_plan_unpin(struct tt_plan *plan)
{
    /* pairs with the acquire load of the thread that waits for the last pin to go */
    atomic_fetch_sub_explicit(&plan->uses, TT_PLAN_PIN, memory_order_release);
}

void tt_plan_unpin_and_drop(struct tt_plan *plan)
{
    const uint64_t both = TT_PLAN_PIN | TT_PLAN_HOLD;
    uint64_t before = atomic_fetch_sub_explicit(&plan->uses, both, memory_order_acq_rel);
    if (before == (TT_PLAN_CLOSED | both)) retire(plan);
}

ncclResult_t tt_plan_pin_or_fail(struct tt_plan *plan)
{
    if (tt_plan_pin(plan)) return ncclSuccess;
    ncclResult_t rc = (ncclResult_t)atomic_load(&plan->closed_rc);
    return tt_fail(rc, "group: a communicator was %s while the group held calls on it",
                   rc == ncclInvalidUsage ? "destroyed" : "aborted");
}

bool tt_plan_close(struct tt_plan *plan, ncclResult_t rc)
{
    int open = ncclSuccess;
    uint32_t spins = 0;
    atomic_compare_exchange_strong(&plan->closed_rc, &open, (int)rc);
    if (atomic_fetch_or(&plan->uses, TT_PLAN_CLOSED) & TT_PLAN_CLOSED) return false;
    tt_fence_threads(); /* a call that saw the plan open is seen inside below */
    while ((atomic_load_explicit(&plan->uses, memory_order_acquire) & TT_PLAN_PINS) !=
           TT_PLAN_PIN) {
        if (!tuttiHostHelp()) tt_wait_relax(&spins, true);
    }
    while (atomic_load_explicit(&plan->inside, memory_order_acquire)) {
        if (!tuttiHostHelp()) tt_wait_relax(&spins, true);
    }
    plan->last_seq = atomic_load(&plan->comm->queue_used->issued);
    return true;
}

void tt_plan_show(struct tt_plan *plan, ncclResult_t rc, const char *why)
{
    if (!tt_plan_pin(plan)) return;
    tt_comm_show(plan->comm, rc, why);
    tt_plan_unpin(plan);
}

ncclResult_t tt_plan_contended(const struct tt_plan *plan)
{
    return tt_fail(ncclInvalidUsage,
                   "rank %d of communicator %#lx: two threads call it at the same time",
                   plan->comm->member.rank, (unsigned long)plan->comm->member.comm_id);
}
