/* The end of a group: what the thread collected runs, here or in the background, or an earlier
 * group is launched again. It leaves the thread clean, whatever went wrong in between. */
#include "base/error.h"
#include "base/mem.h"
#include "plan/bind/events.h"
#include "plan/group/group.h"
#include "plan/group/job.h"
#include "plan/launch/batch.h"

enum { SIM_INFO_MAGIC = 0x74685283 }; /* NCCL_SIM_INFO_INITIALIZER */

/* The group has run and is the thread's again, unless one that a plugin's callback opened meanwhile
 * is still open. */
static void group_return(struct tt_group *group)
{
    struct tt_group *other = tt_own_group;
    if (other && other->depth > 0) {
        tt_group_destroy(group);
        return;
    }
    tt_group_clear(group);
    tt_own_group = group;
    if (!other) return;
    pthread_setspecific(tt_comm_plans()->group_end.key, group);
    tt_group_destroy(other);
}

/* All calls of an earlier group came: launch it again. False when the group has to be looked at.
 * Where nothing failed and no callback opened another group, it is the thread's again, with the one
 * thing forgotten that it collected: its plan. hot */
static inline bool repeat(struct tt_group *group, ncclResult_t *rc_out)
{
    struct tt_plan *plan = group->repeats;
    bool again = false;
    if (group->error || group->jobs || group->simulate || group->next_call != group->end_call ||
        !tt_plan_pin(plan))
        return false;
    if (tt_comm_is_usual(plan->comm) && !tt_plan_enter_pinned(plan)) {
        again = tt_batch_launch(plan, group->repeat_stream, rc_out);
        tt_plan_exit(plan);
    }
    if (!again || *rc_out || tt_own_group) {
        tt_plan_unpin(plan);
        return again;
    }
    plan->group = NULL;
    atomic_store_explicit(&plan->comm->member.grouped, false, memory_order_relaxed);
    group->plans = NULL;
    tt_group_forget_repeats(group);
    group->any_blocking = group->any_background = false;
    tt_own_group = group;
    tt_plan_unpin_and_drop(plan);
    return true;
}

/* ---- jobs ---- */

ncclResult_t tt_group_job(struct tt_job *job)
{
    ncclResult_t rc = tt_group_start();
    struct tt_group *group = tt_own_group;
    tt_job_hold(job);
    if (rc) {
        tt_job_drop(job);
        return rc;
    }
    job->next = NULL;
    if (!job->must_block && group->depth > 1 &&
        (job->blocking ? group->any_background : group->any_blocking)) {
        rc = tt_group_error(tt_fail(
            ncclInvalidArgument, "a group must not mix blocking and non-blocking communicators"));
        tt_job_drop(job);
    } else {
        *group->jobs_tail = job;
        group->jobs_tail = &job->next;
        if (job->must_block) {
            group->must_block = true;
        } else if (job->blocking) {
            group->any_blocking = true;
        } else {
            group->any_background = true;
        }
    }
    ncclResult_t end = tt_group_end();
    return rc ? rc : end;
}

/* ---- the end ---- */

static void group_poison(struct tt_group *group, ncclResult_t rc)
{
    for (struct tt_plan *plan = group->plans; plan; plan = plan->next_in_group) {
        if (!tt_plan_pin(plan)) continue;
        if (plan->comm->config.blocking == 0) tt_comm_show(plan->comm, rc, group->why);
        tt_plan_unpin(plan);
    }
    for (struct tt_job *job = group->jobs; job; job = job->next) {
        if (!job->blocking && job->plan) tt_plan_show(job->plan, rc, group->why);
    }
}

/* While it runs the group is not the thread's: a plugin's callback may open one of its own. */
static __attribute__((noinline)) ncclResult_t group_finish(struct tt_group *group)
{
    ncclResult_t rc = ncclSuccess;
    tt_own_group = NULL;
    if (group->repeats) rc = tt_group_stop_repeating(group);
    if (group->error) {
        rc = group->error;
    } else if (rc) {
        tt_error_take(group->why, sizeof(group->why));
    }
    tt_group_report(&group->events, group->events_plan, tt_events_group_ends);
    if (rc) {
        group_poison(group, rc);
    } else if (group->jobs && group->any_background && !group->must_block) {
        struct tt_group_events events = group->events;
        struct tt_plan *events_plan = group->events_plan;
        if (events_plan) tt_plan_hold(events_plan);
        if (!tt_own_group) pthread_setspecific(tt_comm_plans()->group_end.key, NULL);
        rc = tt_group_run_in_thread(group); /* frees it */
        tt_group_report(&events, events_plan, tt_events_group_over);
        if (events_plan) tt_plan_drop(events_plan);
        return rc;
    } else {
        rc = tt_group_run(group);
        if (rc) group_poison(group, rc);
    }
    tt_group_report(&group->events, group->events_plan, tt_events_group_over);
    group_return(group);
    return rc;
}

/* It was launched again, and failed or met another group. */
static __attribute__((noinline)) ncclResult_t group_repeated(struct tt_group *group,
                                                             ncclResult_t rc)
{
    if (rc) {
        tt_error_take(group->why, sizeof(group->why));
        group_poison(group, rc);
    }
    group_return(group);
    return rc;
}

static __attribute__((noinline)) ncclResult_t no_group(const char *func)
{
    return tt_fail(ncclInvalidUsage, "%s: no group is open in this thread", func);
}

/* hot */
ncclResult_t tt_group_end(void)
{
    struct tt_group *group = tt_own_group;
    if (!group || group->depth == 0) return no_group("ncclGroupEnd");
    if (--group->depth > 0) return ncclSuccess;
    if (!group->repeats) return group_finish(group);
    ncclResult_t rc = ncclSuccess;
    tt_own_group = NULL;
    if (!repeat(group, &rc)) return group_finish(group);
    return group->repeats ? group_repeated(group, rc) : ncclSuccess;
}

ncclResult_t tt_group_simulate(ncclSimInfo_t *info)
{
    struct tt_group *group = tt_own_group;
    if (!group || group->depth == 0) return no_group("ncclGroupSimulateEnd");
    if (--group->depth > 0) return ncclSuccess;
    if (info && (info->size < offsetof(ncclSimInfo_t, version) || info->magic != SIM_INFO_MAGIC)) {
        group->error =
            tt_fail(ncclInvalidArgument,
                    "ncclGroupSimulateEnd: info with size %zu and magic %#x was not set "
                    "from NCCL_SIM_INFO_INITIALIZER",
                    info->size, info->size < offsetof(ncclSimInfo_t, version) ? 0u : info->magic);
    }
    group->simulate = info;
    if (info) group->must_block = true; /* `info` is the caller's only until we return */
    return group_finish(group);
}
