/* A thread's group: calls and jobs between GroupStart and GroupEnd. All of it is thread-local. */
#include "plan/group/group.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "plan/bind/events.h"
#include "plan/bind/operator.h"
#include "plan/group/job.h"
#include "plan/launch/batch.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Thread_local struct tt_group *tt_own_group __attribute__((tls_model("initial-exec")));

/* Call `report` for the profiler that has the group's events, if its communicator still lives. */
void tt_group_report(struct tt_group_events *events, struct tt_plan *plan,
                     void (*report)(struct tt_group_events *events))
{
    if (!plan || !tt_plan_pin(plan)) return;
    report(events);
    plan->group_api = events->group_api;
    tt_plan_unpin(plan);
}

/* How many calls of an earlier group have come again. */
static int repeated_calls(const struct tt_group *group)
{
    return (int)(group->next_call - group->first_call); /* the plan may have ended */
}

/* `who` ends inside its group: report what it collected and what will not run. Not of one in which
 * a call has failed: nothing of it would have run, and a thread that gives up then need not end it.
 */
static void report_open(const struct tt_group *group, const char *who)
{
    char first[128] = "";
    int ncalls = repeated_calls(group), njobs = 0;
    if (group->error) return;
    for (const struct tt_job *job = group->jobs; job; job = job->next)
        njobs++;
    for (struct tt_plan *plan = group->plans; plan; plan = plan->next_in_group) {
        bool repeats = plan == group->repeats;
        if (!*first && (plan->first || repeats) && tt_plan_pin(plan)) {
            enum tt_func func =
                repeats ? tt_batch_task(plan, 0, NULL).func : plan->first->task.func;
            snprintf(first, sizeof(first), ", first %s of rank %d of communicator %#lx",
                     tt_func_name(func), plan->comm->member.rank,
                     (unsigned long)plan->comm->member.comm_id);
            tt_plan_unpin(plan);
        }
        for (const struct tt_group_call *call = plan->first; call; call = call->next)
            ncalls++;
    }
    tt_warn("%s inside a group that it had opened (depth %d): a ncclGroupEnd is missing; %d "
            "operation(s)%s and %d other call(s) (Init, Split, Destroy ...) never run",
            who, group->depth, ncalls, first, njobs);
}

/* The thread ends, perhaps inside its group: the communicators are free for other groups. */
static void group_abandon(void *arg)
{
    struct tt_group *group = arg;
    tt_own_group = NULL;
    if (group->depth > 0) report_open(group, "a thread ended");
    tt_group_report(&group->events, group->events_plan, tt_events_group_over);
    tt_group_destroy(group);
}

/* At exit keys have no destructors. */
__attribute__((destructor)) static void report_at_exit(void)
{
    if (tt_own_group && tt_own_group->depth > 0) report_open(tt_own_group, "the program ended");
}

static void group_key_make(void)
{
    pthread_key_create(&tt_comm_plans()->group_end.key, group_abandon);
}

static __attribute__((noinline)) struct tt_group *group_make(void)
{
    struct tt_group *group = tt_calloc(1, sizeof(*group));
    if (!group) return NULL;
    pthread_once(&tt_comm_plans()->group_end.once, group_key_make);
    pthread_setspecific(tt_comm_plans()->group_end.key, group);
    group->jobs_tail = &group->jobs;
    tt_own_group = group;
    return group;
}

void tt_job_hold(struct tt_job *job)
{
    if (job->plan || job->parent_plan) return;
    if (job->comm) job->plan = job->comm->plan;
    if (job->parent) job->parent_plan = job->parent->plan;
    if (job->plan) tt_plan_hold(job->plan);
    if (job->parent_plan) tt_plan_hold(job->parent_plan);
}

void tt_job_drop(struct tt_job *job)
{
    struct tt_plan *plan = job->plan, *parent_plan = job->parent_plan;
    job->destroy(job);
    if (plan) tt_plan_drop(plan);
    if (parent_plan) tt_plan_drop(parent_plan);
}

/* Forget everything collected, ready for the next group. Jobs were run or are dropped here. */
void tt_group_clear(struct tt_group *group)
{
    while (group->jobs) {
        struct tt_job *job = group->jobs;
        group->jobs = job->next;
        tt_job_drop(job);
    }
    while (group->overflow) {
        struct tt_group_call *node = group->overflow;
        group->overflow = node->next_owned;
        if (group->nspares == TT_GROUP_SPARES) {
            free(node);
            continue;
        }
        node->next_owned = group->spare;
        group->spare = node;
        group->nspares++;
    }
    for (struct tt_plan *plan = group->plans; plan;) {
        struct tt_plan *next = plan->next_in_group;
        if (tt_plan_pin(plan)) {
            atomic_store_explicit(&plan->comm->member.grouped, false, memory_order_relaxed);
            tt_plan_unpin(plan);
        }
        plan->group = NULL;
        plan->first = plan->last = NULL;
        plan->next_in_group = NULL;
        tt_plan_drop(plan);
        plan = next;
    }
    group->plans = NULL;
    group->jobs_tail = &group->jobs;
    group->nnodes = 0;
    group->error = ncclSuccess;
    group->why[0] = 0;
    group->any_blocking = group->any_background = group->must_block = false;
    group->simulate = NULL;
    group->events = (struct tt_group_events){0};
    group->events_plan = NULL;
    tt_group_forget_repeats(group);
}

void tt_group_destroy(struct tt_group *group)
{
    tt_group_clear(group);
    while (group->spare) {
        struct tt_group_call *node = group->spare;
        group->spare = node->next_owned;
        free(node);
    }
    free(group);
}

int tt_group_depth(void)
{
    return tt_own_group ? tt_own_group->depth : 0;
}

ncclResult_t tt_group_start(void)
{
    struct tt_group *group = tt_own_group ? tt_own_group : group_make();
    if (!group) return tt_fail(ncclSystemError, "ncclGroupStart: out of memory");
    group->depth++;
    return ncclSuccess;
}

void tt_group_refuse(ncclResult_t rc, const char *why)
{
    if (!tt_own_group || tt_own_group->depth == 0) return;
    tt_own_group->error = rc;
    snprintf(tt_own_group->why, sizeof(tt_own_group->why), "%s", why);
}

ncclResult_t tt_group_error(ncclResult_t rc)
{
    char why[TT_WHY_BYTES];
    if (rc == ncclSuccess || rc == ncclInProgress) return rc;
    tt_error_take(why, sizeof(why)); /* also outside of groups: it is no later failure's */
    tt_group_refuse(rc, why);
    return rc;
}

/* ---- calls ---- */

static struct tt_group_call *node_take(struct tt_group *group)
{
    struct tt_group_call *node = group->spare;
    if (group->nnodes < TT_GROUP_NODES) {
        node = &group->nodes[group->nnodes++];
    } else {
        if (node) {
            group->spare = node->next_owned;
            group->nspares--;
        } else {
            node = tt_calloc(1, sizeof(*node));
        }
        if (!node) return NULL;
        node->next_owned = group->overflow;
        group->overflow = node;
    }
    node->next = node->next_same_kind = NULL;
    node->group_api = node->api_event = node->op_event = NULL;
    node->mask = 0;
    node->known = node->ready = false;
    node->staged = NULL;
    node->bundle_bytes = 0;
    node->nops = 0;
    return node;
}

static inline void join_first(struct tt_group *group, struct tt_plan *plan)
{
    tt_plan_hold(plan);
    plan->group = group;
    plan->group_order = plan->comm->member.comm_id;
    plan->first = plan->last = NULL;
    plan->next_in_group = NULL;
    group->plans = plan;
    atomic_store_explicit(&plan->comm->member.grouped, true, memory_order_relaxed);
    *(plan->comm->config.blocking == 0 ? &group->any_background : &group->any_blocking) = true;
}

/* Communicators of a group are launched in the order of their ids, which is the same on all ranks:
 * with the order of the calls, two that share streams could wait for each other, as a rank without
 * a message in the first of them meets that communicator later. */
static ncclResult_t group_join(struct tt_group *group, struct tt_plan *plan)
{
    if (plan->group == group) return ncclSuccess;
    if (plan->group) {
        return tt_fail(ncclInvalidUsage,
                       "rank %d of communicator %#lx: another thread has a group open on it; calls "
                       "on one communicator must come from one thread at a time",
                       plan->comm->member.rank, (unsigned long)plan->comm->member.comm_id);
    }
    tt_plan_hold(plan);
    plan->group = group;
    plan->group_order = plan->comm->member.comm_id;
    plan->first = plan->last = NULL;
    struct tt_plan **at = &group->plans;
    while (*at && (*at)->group_order <= plan->group_order) {
        at = &(*at)->next_in_group;
    }
    plan->next_in_group = *at;
    *at = plan;
    atomic_store_explicit(&plan->comm->member.grouped, true, memory_order_relaxed);
    if (plan->comm->config.blocking == 0) {
        group->any_background = true;
    } else {
        group->any_blocking = true;
    }
    return ncclSuccess;
}

static ncclResult_t collect(struct tt_group *group, const struct tt_task *task, bool known,
                            bool logged)
{
    struct tt_plan *plan = task->comm->plan;
    ncclResult_t rc = group_join(group, plan);
    if (rc) return rc;
    struct tt_group_call *node = node_take(group);
    if (!node) return tt_fail(ncclSystemError, "ncclGroup: out of memory for a call");
    node->task = *task;
    node->known = known;
    node->logged = logged;
    if (task->options) {
        node->options = *task->options;
        node->task.options = &node->options;
    }
    rc = tt_operator_reduction(plan, task, &node->reduction);
    if (rc) return rc;
    const bool empty = task->count == 0 && !tt_func_is_message(task->func); /* global_check.c */
    if (plan->comm->profiler && !empty)
        tt_events_call(plan, &group->events, group->depth + 1, node);
    if (group->events.profiler && !group->events_plan) {
        group->events_plan = plan;
        plan->group_api = group->events.group_api;
    }
    if (plan->last) {
        plan->last->next = node;
    } else {
        plan->first = node;
    }
    plan->last = node;
    return ncclSuccess;
}

/* ---- groups like earlier ones ---- */

/* This one is not: collect the calls that were noted. */
ncclResult_t tt_group_stop_repeating(struct tt_group *group)
{
    struct tt_plan *plan = group->repeats;
    int ncalls = repeated_calls(group);
    tt_group_forget_repeats(group);
    if (!plan) return ncclSuccess;
    plan->issued += (uint64_t)ncalls;
    ncclResult_t rc = tt_plan_pin_or_fail(plan);
    if (rc) return rc;
    rc = tt_comm_check(plan->comm, "a call in a group");
    for (int k = 0; k < ncalls && !rc; k++) {
        const struct tt_task task = tt_batch_task(plan, k, group->repeat_stream);
        rc = collect(group, &task, false, false);
    }
    tt_batch_mispredicted(plan);
    tt_plan_unpin(plan);
    return rc;
}

static inline void expect_calls(struct tt_group *group, const struct tt_task *task)
{
    struct tt_plan *plan = task->comm->plan;
    group->repeats = plan;
    group->repeat_comm = task->comm;
    group->repeat_stream = task->stream;
    group->first_call = plan->repeat->calls;
    group->next_call = group->first_call + 1;
    group->end_call = plan->repeat->calls + plan->repeat->ncalls;
}

/* The caller is in the plan. */
static inline bool begin_same(struct tt_group *group, struct tt_plan *plan,
                              const struct tt_task *task)
{
    if (plan->group) return false;
    tt_batch_predict(plan);
    if (!plan->repeat || !tt_batch_same(plan->repeat->calls, task) ||
        tt_log_on(TT_LOG_INFO, TT_LOG_COLL | TT_LOG_CALL | TT_LOG_TUNING))
        return false;
    join_first(group, plan);
    expect_calls(group, task);
    return true;
}

bool tt_group_begin_same(struct tt_group *group, const struct tt_task *task)
{
    struct tt_comm *comm = task->comm;
    if (group->plans || group->jobs || !comm || comm->magic != TT_COMM_MAGIC) return false;
    struct tt_plan *plan = comm->plan;
    if (!tt_plan_enter(plan)) return false;
    const bool same = tt_comm_is_usual(comm) && begin_same(group, plan, task);
    tt_plan_exit(plan);
    return same;
}

bool tt_group_begin_repeating(struct tt_group *group, const struct tt_task *task)
{
    struct tt_plan *plan = task->comm->plan;
    if (group->plans || group->jobs || plan->group) return false;
    tt_batch_predict(plan);
    if (!plan->repeat || !tt_batch_accepts(plan->repeat, 0, task) ||
        tt_log_on(TT_LOG_INFO, TT_LOG_COLL | TT_LOG_CALL | TT_LOG_TUNING))
        return false;
    if (group_join(group, plan)) return false; /* said again by who appends */
    expect_calls(group, task);
    return true;
}

ncclResult_t tt_group_append(const struct tt_task *task, bool known, bool logged)
{
    ncclResult_t rc = tt_own_group->repeats ? tt_group_stop_repeating(tt_own_group) : ncclSuccess;
    return rc ? rc : collect(tt_own_group, task, known, logged);
}
