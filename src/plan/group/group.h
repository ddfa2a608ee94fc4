/* The group of a thread: group.c collects its calls, group_end.c ends it, group_run.c runs it, in
 * that thread or in the background. Private to plan/. */
#pragma once

#include "plan/plan_state.h"

#include <stdatomic.h>
#include <stdbool.h>

struct tt_job;

/* ---- uses.c: threads that use a plan ---- */

/* Keep the plan's storage. The communicator must be alive. */
void tt_plan_hold(struct tt_plan *plan);
/* Drop a hold. */
void tt_plan_drop(struct tt_plan *plan);
/* tt_plan_unpin() and tt_plan_drop() in one step. */
void tt_plan_unpin_and_drop(struct tt_plan *plan);
/* As tt_plan_pin(), with an error that is reported. Errors: the plan's closed_rc. */
ncclResult_t tt_plan_pin_or_fail(struct tt_plan *plan);
/* Set the state of the plan's communicator, if it is alive, to `rc` with the sentence `why`. The
 * caller has a hold. */
void tt_plan_show(struct tt_plan *plan, ncclResult_t rc, const char *why);

/* True when the communicator's end has begun. hot */
static inline bool tt_plan_closed(const struct tt_plan *plan)
{
    /* pairs with the release of the thread that closed it */
    return atomic_load_explicit(&plan->uses, memory_order_acquire) & TT_PLAN_CLOSED;
}

/* Report that another thread uses the plan, which the caller has pinned. Errors: ncclInvalidUsage.
 */
ncclResult_t tt_plan_contended(const struct tt_plan *plan);

/* Mark the plan as in use by this thread. This is no lock: two threads must not use a communicator
 * at the same time, and this detects most of such mistakes. A thread that ends the communicator at
 * the same time is either seen here, or waits for tt_plan_exit(); tt_plan_close() orders both
 * sides. False: its communicator is being ended, or another thread uses it. hot */
static inline bool tt_plan_enter(struct tt_plan *plan)
{
    if (atomic_load_explicit(&plan->inside, memory_order_relaxed)) return false;
    atomic_store_explicit(&plan->inside, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst); /* pairs with tt_fence_threads() */
    if (!tt_plan_closed(plan)) return true;
    atomic_store_explicit(&plan->inside, 0, memory_order_relaxed);
    return false;
}

/* The same for a caller that has a pin: the thread that ends the communicator waits for that. */
static inline ncclResult_t tt_plan_enter_pinned(struct tt_plan *plan)
{
    if (atomic_load_explicit(&plan->inside, memory_order_relaxed)) return tt_plan_contended(plan);
    atomic_store_explicit(&plan->inside, 1, memory_order_relaxed);
    return ncclSuccess;
}

static inline void tt_plan_exit(struct tt_plan *plan)
{
    /* pairs with the acquire load of the thread that closes the plan */
    atomic_store_explicit(&plan->inside, 0, memory_order_release);
}

/* ---- group.c ---- */

#define TT_GROUP_NODES 16    /* calls of a group that need no allocation */
#define TT_GROUP_SPARES 1000 /* of more calls are kept for the next group */

struct tt_group {
    int depth;
    ncclResult_t error;     /* of a call inside; the latest wins */
    char why[TT_WHY_BYTES]; /* the sentence of the error, or of what ended the group */
    bool any_blocking, any_background, must_block;
    struct tt_job *jobs, **jobs_tail; /* owned list */
    struct tt_plan *plans;            /* by communicator id */
    int nnodes;
    struct tt_group_call nodes[TT_GROUP_NODES];
    struct tt_group_call *overflow; /* owned list by next_owned */
    struct tt_group_call *spare;    /* the same, unused */
    int nspares;
    ncclSimInfo_t *simulate; /* borrowed; NULL: launch */
    struct tt_group_events events;
    struct tt_plan *events_plan; /* whose profiler has them; in `plans` */
    /* while the group is like an earlier one of one communicator, nothing else is collected */
    struct tt_plan *repeats; /* its plan, in `plans`; NULL: calls are collected */
    const struct tt_batch_call *first_call, *next_call, *end_call; /* of repeats->repeat: the calls
                                                    from next_call to end_call may follow */
    struct tt_comm *repeat_comm; /* of all its calls; borrowed, and only compared */
    struct CUstream_st *repeat_stream;
};

extern _Thread_local struct tt_group *tt_own_group /* the calling thread's; NULL: none yet */
    __attribute__((tls_model("initial-exec")));

/* Append a checked call to the thread's open group.
 * known   it is in the launch cache
 * logged  operations are logged
 * Errors: ncclInvalidUsage (another thread has a group open on the communicator), ncclSystemError
 * (out of memory). */
ncclResult_t tt_group_append(const struct tt_task *task, bool known, bool logged);
/* True when the call is the first one of a group that was launched before, with the same buffers.
 * The call is then noted, and the calls that follow are only compared. False: append it. hot */
bool tt_group_begin_same(struct tt_group *group, const struct tt_task *task);
/* The same, but the buffers may differ. The caller has entered the plan. hot */
bool tt_group_begin_repeating(struct tt_group *group, const struct tt_task *task);
/* Stop comparing: the group's calls are appended from now on. */
static inline void tt_group_forget_repeats(struct tt_group *group)
{
    group->repeats = NULL;
    group->first_call = group->next_call = group->end_call = NULL;
}
/* A call differs from that group: append the calls that were noted. */
ncclResult_t tt_group_stop_repeating(struct tt_group *group);
/* Call `report` for the profiler that has the group's events, if its communicator still lives. */
void tt_group_report(struct tt_group_events *events, struct tt_plan *plan,
                     void (*report)(struct tt_group_events *events));
/* Destroy the job, and drop the holds that it had on plans. */
void tt_job_drop(struct tt_job *job);
/* Forget what the group collected. */
void tt_group_clear(struct tt_group *group);
/* The same, and free it. */
void tt_group_destroy(struct tt_group *group);

/* ---- background.c: groups that run in the background ---- */

struct tt_background {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t ended;
    bool done, joined;
    int users;              /* communicators that still point here */
    struct tt_group *group; /* owned by the thread until done */
};

/* The plan's communicator shows ncclInProgress until the group has ended. Only the thread that
 * closed the group calls it. */
void tt_background_attach(struct tt_background *background, struct tt_plan *plan);
/* Drop one use; the last one frees. */
void tt_background_release(struct tt_background *background);

/* ---- group_run.c ---- */

/* Run the jobs, then the calls of a closed group: jobs in the caller when there is one, in threads
 * when there are more. Returns the first failure in the list's order; each job's own result is in
 * job->rc, a failure's sentence in group->why. */
ncclResult_t tt_group_run(struct tt_group *group);
/* The same in a new thread (in the caller when there is none); the communicators show
 * ncclInProgress. Owns the group from now on. Returns ncclInProgress. Errors: ncclSystemError (out
 * of memory). */
ncclResult_t tt_group_run_in_thread(struct tt_group *group);

/* ---- global_check.c: NCCL_CHECK_MODE=DEBUG_GLOBAL, for callers that have entered the plans ----
 */

/* True when collectives of this communicator are compared before they begin. */
static inline bool tt_global_check_wanted(const struct tt_plan *plan)
{
    return plan->checks_ranks && !plan->comm->no_global && plan->comm->member.nranks > 1;
}

/* Note the collectives of a group's plans (by next_in_group), and take those with count 0 out of
 * their lists, so a plan may be left without any call. Errors: ncclSystemError (out of memory). */
ncclResult_t tt_global_check_collect(struct tt_plan *plans);
/* Compare what was noted with all other ranks, of all communicators at once, as one thread may
 * have several ranks of one. Blocks until all ranks have made these calls, 10 s at most: then it
 * warns, and they begin without it.
 * Errors: ncclInvalidUsage (different calls), ncclInvalidArgument (a buffer that does not lie at
 * the same place of a symmetric window), at all ranks; ncclRemoteError. */
ncclResult_t tt_global_check_group(struct tt_plan *plans);
/* Both for a call outside of groups; a message is compared with nothing. */
ncclResult_t tt_global_check_call(struct tt_plan *plan, const struct tt_task *task);
void tt_global_check_destroy(struct tt_global_check *check); /* accepts NULL */
