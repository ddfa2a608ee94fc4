/* A communicator's later life: queries, split, shrink, and its ends. Each change is a job, so that
 * it may wait for GroupEnd or run in the background. */
#include "tutti.h"

#include "api/calls.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"
#include "mem/mem.h"
#include "plugin/tuner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum tt_comm_phase phase_of(const struct tt_comm *comm)
{
    return (enum tt_comm_phase)atomic_load_explicit(&comm->phase, memory_order_acquire);
}

/* ---- checks ---- */

ncclResult_t tt_check_alive(const struct tt_comm *comm, const char *func)
{
    ncclResult_t rc = tt_check_pointer(comm, func, "comm");
    if (!rc && (comm->magic != TT_COMM_MAGIC || phase_of(comm) == TT_COMM_DESTROYED)) {
        rc = tt_fail(ncclInvalidArgument,
                     "%s: comm %p was destroyed or aborted before, or never was a communicator",
                     func, (const void *)comm);
    }
    if (!rc && comm->plan) tt_plan_note_fork(comm->plan);
    return rc;
}

ncclResult_t tt_check_usable(struct tt_comm *comm, const char *func)
{
    ncclResult_t rc = tt_check_alive(comm, func);
    if (rc) return rc;
    tt_plan_busy(comm->plan);
    return tt_comm_check_state(comm, func);
}

ncclResult_t tt_enter(struct tt_comm *comm, const char *func)
{
    ncclResult_t rc = tt_check_alive(comm, func);
    if (rc || tt_plan_pin(comm->plan)) return rc;
    return tt_fail(ncclInvalidArgument, "%s: comm %p is being destroyed or aborted", func,
                   (const void *)comm);
}

/* ---- queries ---- */

static ncclResult_t query(ncclComm_t comm, const void *out, const char *func)
{
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = tt_check_alive(own, func);
    if (!rc) rc = tt_check_pointer(out, func, "the result pointer");
    return rc ? rc : tt_check_usable(own, func);
}

int tuttiTunerUsed(struct ncclComm *comm, struct tuttiTunerUse *use)
{
    struct tt_tuner_stats stats;
    ncclResult_t rc = query(comm, use, "tuttiTunerUsed");
    if (rc) return (int)rc;
    if (use->size != sizeof(*use)) {
        return (int)tt_fail(ncclInvalidArgument, "tuttiTunerUsed: size is %zu, not %zu", use->size,
                            sizeof(*use));
    }
    tt_tuner_stats(((struct tt_comm *)comm)->tuner, &stats);
    *use = (struct tuttiTunerUse){.size = sizeof(*use),
                                  .asked = stats.asked,
                                  .p50_usec = stats.p50_usec,
                                  .max_usec = stats.max_usec,
                                  .sum_usec = stats.sum_usec};
    snprintf(use->name, sizeof(use->name), "%s", stats.name);
    return 0;
}

ncclResult_t pncclCommCount(const ncclComm_t comm, int *count)
{
    ncclResult_t rc = query(comm, count, "ncclCommCount");
    if (!rc) *count = ((struct tt_comm *)comm)->member.nranks;
    return rc;
}

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device)
{
    ncclResult_t rc = query(comm, device, "ncclCommCuDevice");
    if (!rc) *device = ((struct tt_comm *)comm)->member.device;
    return rc;
}

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank)
{
    ncclResult_t rc = query(comm, rank, "ncclCommUserRank");
    if (!rc) *rank = ((struct tt_comm *)comm)->member.rank;
    return rc;
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = tt_check_alive(own, "ncclCommGetAsyncError");
    if (!rc) rc = tt_check_pointer(asyncError, "ncclCommGetAsyncError", "asyncError");
    if (rc) return rc;
    *asyncError = tt_plan_busy(own->plan) ? ncclInProgress : tt_comm_state(own);
    tt_comm_recall(own, *asyncError);
    return ncclSuccess;
}

/* ---- jobs on one communicator ---- */

struct comm_job {
    struct tt_job base;
    struct tt_comm *child; /* owned until it is handed out; other threads' undo reads it */
    _Atomic bool handed_out;
    ncclComm_t *newcomm; /* the caller's */
    struct tt_comm_color color;
    int *exclude; /* owned copy */
    int nexclude, flags;
};

static void comm_job_destroy(struct tt_job *base)
{
    struct comm_job *job = tt_container_of(base, struct comm_job, base);
    if (!job->handed_out) tt_comm_dispose(job->child);
    free(job->exclude);
    free(job);
}

static ncclResult_t comm_job_create(struct tt_comm *comm, ncclResult_t (*run)(struct tt_job *),
                                    struct comm_job **job_out)
{
    struct comm_job *job = tt_calloc(1, sizeof(*job));
    if (!job) return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    job->base = (struct tt_job){.comm = comm,
                                .run = run,
                                .destroy = comm_job_destroy,
                                .blocking = comm->config.blocking != 0};
    *job_out = job;
    return ncclSuccess;
}

static ncclResult_t comm_job_run(struct tt_comm *comm, ncclResult_t (*run)(struct tt_job *),
                                 bool must_block)
{
    struct comm_job *job = NULL;
    ncclResult_t rc = comm_job_create(comm, run, &job);
    if (rc) return tt_group_error(rc);
    job->base.must_block = must_block;
    return tt_group_job(&job->base);
}

/* The job is the only one that uses the communicator from now on; what groups of other threads hold
 * fails with `rc`. False when another thread ends it. */
static ncclResult_t comm_close(struct tt_comm *comm, ncclResult_t rc)
{
    if (tt_plan_close(comm->plan, rc)) return ncclSuccess;
    return tt_fail(ncclInvalidUsage, "rank %d: another thread is ending the communicator",
                   comm->member.rank);
}

/* ---- split and shrink ---- */

static void child_undo(struct tt_job *base)
{
    struct comm_job *job = tt_container_of(base, struct comm_job, base);
    if (job->child && !job->handed_out) tt_comm_abort(job->child, ncclInternalError);
}

/* The child goes to the caller: finished, or half-made and only good for ncclCommAbort. */
static void child_hand_out(struct comm_job *job)
{
    *job->newcomm = (ncclComm_t)job->child;
    job->handed_out = true;
}

static ncclResult_t split_run(struct tt_job *base)
{
    struct comm_job *job = tt_container_of(base, struct comm_job, base);
    ncclResult_t rc = tt_comm_split(base->comm, &job->color, job->child);
    if (!rc && job->child && tt_log_on(TT_LOG_TRACE, TT_LOG_CALL)) {
        tt_trace(TT_LOG_CALL, "ncclCommSplit(%p, %d, %d, %p, %d, %d)", (void *)base->comm,
                 job->color.color, job->color.key, (void *)job->child, job->child->member.rank,
                 job->child->member.nranks);
    }
    child_hand_out(job);
    return rc;
}

static ncclResult_t shrink_run(struct tt_job *base)
{
    struct comm_job *job = tt_container_of(base, struct comm_job, base);
    ncclResult_t rc =
        tt_comm_shrink(base->comm, job->exclude, job->nexclude, job->child, job->flags);
    child_hand_out(job);
    return rc;
}

ncclResult_t tt_child_create(const struct tt_comm_request *wish, struct tt_comm *parent,
                             struct tt_comm **child_out)
{
    struct tt_comm_request request = *wish;
    struct tt_comm *child = NULL;
    request.device = parent->member.device;
    request.inherit = wish->config ? NULL : &parent->config;
    ncclResult_t rc = tt_comm_alloc(&request, &child);
    if (!rc) rc = tt_plan_create(child, &child->plan);
    if (rc) {
        tt_comm_dispose(child);
        return rc;
    }
    *child_out = child;
    return ncclSuccess;
}

/* Its rank and size are known later. */
static ncclResult_t child_create(struct tt_comm *parent, const char *func,
                                 const ncclConfig_t *config, struct tt_comm **child_out)
{
    const struct tt_comm_request request = {.func = func,
                                            .nranks = parent->member.nranks,
                                            .rank = parent->member.rank,
                                            .config = config};
    return tt_child_create(&request, parent, child_out);
}

/* The state of a split or shrink in progress is on the parent; the call itself says ok. */
static ncclResult_t child_job_start(struct comm_job *job, ncclComm_t *newcomm)
{
    job->newcomm = newcomm;
    job->base.undo = child_undo;
    ncclResult_t rc = tt_group_job(&job->base);
    return rc == ncclInProgress ? ncclSuccess : rc;
}

static ncclResult_t split(struct tt_comm *own, int color, int key, ncclComm_t *newcomm,
                          ncclConfig_t *config)
{
    static const char func[] = "ncclCommSplit";
    ncclResult_t rc = tt_check_usable(own, func);
    if (!rc) rc = tt_check_device(func);
    if (rc) return tt_group_error(rc);
    if (color < NCCL_SPLIT_NOCOLOR) {
        return tt_plan_failed(own, tt_fail(ncclInvalidArgument,
                                           "%s: color %d is neither NCCL_SPLIT_NOCOLOR nor from 0 "
                                           "up",
                                           func, color));
    }
    struct comm_job *job = NULL;
    rc = comm_job_create(own, split_run, &job);
    if (!rc && color != NCCL_SPLIT_NOCOLOR) rc = child_create(own, func, config, &job->child);
    if (rc) {
        if (job) comm_job_destroy(&job->base);
        return tt_plan_failed(own, rc);
    }
    job->color =
        (struct tt_comm_color){.number = tt_comm_count_child(own), .color = color, .key = key};
    return child_job_start(job, newcomm);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                            ncclConfig_t *config)
{
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin("CommSplit", -1);
    (void)range;
    static const char func[] = "ncclCommSplit";
    struct tt_comm *own = (struct tt_comm *)comm;
    if (newcomm) *newcomm = NULL;
    ncclResult_t rc = tt_check_pointer(newcomm, func, "newcomm");
    if (!rc) rc = tt_enter(own, func);
    if (rc) return tt_group_error(rc);
    rc = split(own, color, key, newcomm, config);
    tt_plan_unpin(own->plan);
    return rc;
}

static ncclResult_t check_excluded(const struct tt_comm *comm, const int *list, int count)
{
    for (int k = 0; k < count; k++) {
        if (list[k] < 0 || list[k] >= comm->member.nranks) {
            return tt_fail(ncclInvalidArgument,
                           "ncclCommShrink: excludeRanksList[%d] %d is not in 0..%d", k, list[k],
                           comm->member.nranks - 1);
        }
        if (list[k] == comm->member.rank) {
            return tt_fail(ncclInvalidArgument,
                           "ncclCommShrink: excludeRanksList[%d] is the calling rank %d", k,
                           list[k]);
        }
        for (int other = 0; other < k; other++) {
            if (list[other] != list[k]) continue;
            return tt_fail(ncclInvalidArgument,
                           "ncclCommShrink: rank %d is in excludeRanksList twice", list[k]);
        }
    }
    return ncclSuccess;
}

/* The parent failed because of a rank that the child leaves out. */
static bool failed_by_excluded(struct tt_comm *own, const int *list, int count)
{
    ncclResult_t rc = tt_comm_state(own);
    if (!rc || rc == ncclInProgress || !own->bootstrap) return false;
    int rank = tt_bootstrap_error_rank(own->bootstrap);
    for (int k = 0; list && k < count; k++) {
        if (list[k] == rank) return rank >= 0;
    }
    return false;
}

/* With NCCL_SHRINK_ABORT, or from a rank that is left out, an error of the parent is what the
 * caller wants to leave behind. */
static ncclResult_t check_shrink(struct tt_comm *own, const int *list, int count, int flags)
{
    static const char func[] = "ncclCommShrink";
    bool leaves = (flags & NCCL_SHRINK_ABORT) || failed_by_excluded(own, list, count);
    ncclResult_t rc = leaves ? tt_check_alive(own, func) : tt_check_usable(own, func);
    if (!rc) rc = tt_check_pointer(list, func, "excludeRanksList");
    if (!rc && count < 1) {
        rc = tt_fail(ncclInvalidArgument, "%s: excludeRanksCount %d is below 1", func, count);
    }
    return rc ? rc : check_excluded(own, list, count);
}

static ncclResult_t shrink(struct tt_comm *own, const int *list, int count, ncclComm_t *newcomm,
                           ncclConfig_t *config, int flags)
{
    static const char func[] = "ncclCommShrink";
    struct comm_job *job = NULL;
    ncclResult_t rc = check_shrink(own, list, count, flags);
    if (rc) return tt_group_error(rc);
    rc = comm_job_create(own, shrink_run, &job);
    if (!rc) rc = child_create(own, func, config, &job->child);
    if (!rc) {
        size_t bytes = (size_t)count * sizeof(int);
        job->exclude = malloc(bytes);
        if (job->exclude) memcpy(job->exclude, list, bytes);
        if (!job->exclude) rc = tt_fail(ncclSystemError, "%s: out of memory", func);
    }
    if (rc) {
        if (job) comm_job_destroy(&job->base);
        return tt_plan_failed(own, rc);
    }
    job->nexclude = count;
    job->flags = flags;
    return child_job_start(job, newcomm);
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
                             ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin("CommShrink", -1);
    (void)range;
    static const char func[] = "ncclCommShrink";
    struct tt_comm *own = (struct tt_comm *)comm;
    if (newcomm) *newcomm = NULL;
    ncclResult_t rc = tt_check_pointer(newcomm, func, "newcomm");
    if (!rc) rc = tt_enter(own, func);
    if (rc) return tt_group_error(rc);
    rc = shrink(own, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags);
    tt_plan_unpin(own->plan);
    return rc;
}

/* ---- the ends ---- */

void tt_comm_dispose(struct tt_comm *comm)
{
    if (!comm) return;
    tt_plan_destroy(comm->plan);
    tt_registry_destroy(comm->registry);
    comm->registry = NULL;
    tt_comm_free(comm);
}

static ncclResult_t finalize_now(struct tt_comm *comm)
{
    ncclResult_t rc = tt_plan_drain(comm);
    return rc ? rc : tt_comm_finalize(comm);
}

static ncclResult_t finalize_run(struct tt_job *base)
{
    return finalize_now(base->comm);
}

/* Its group was refused before it ran: the communicator is as it was before the call. */
static void finalize_destroy(struct tt_job *base)
{
    int phase = TT_COMM_FINALIZING;
    if (!base->ran && tt_plan_pin(base->plan)) {
        atomic_compare_exchange_strong(&base->comm->phase, &phase, TT_COMM_READY);
        tt_plan_unpin(base->plan);
    }
    comm_job_destroy(base);
}

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin("CommFinalize", -1);
    (void)range;
    static const char func[] = "ncclCommFinalize";
    struct tt_comm *own = (struct tt_comm *)comm;
    if (!comm) return ncclSuccess;
    ncclResult_t rc = tt_check_usable(own, func);
    if (!rc && phase_of(own) != TT_COMM_READY) {
        rc = tt_fail(ncclInvalidArgument, "%s: rank %d: the communicator was %s before", func,
                     own->member.rank, phase_of(own) == TT_COMM_REVOKED ? "revoked" : "finalized");
    }
    if (rc) return tt_group_error(rc);
    struct comm_job *job = NULL;
    rc = comm_job_create(own, finalize_run, &job);
    if (rc) return tt_group_error(rc);
    job->base.destroy = finalize_destroy;
    atomic_store_explicit(&own->phase, TT_COMM_FINALIZING, memory_order_release);
    return tt_group_job(&job->base);
}

/* An error does not keep the communicator alive: everything is freed, the error is returned. */
static ncclResult_t destroy_run(struct tt_job *base)
{
    struct tt_comm *comm = base->comm;
    ncclResult_t rc = comm_close(comm, ncclInvalidUsage);
    if (rc) return rc;
    tt_plan_wait(comm->plan);
    rc = tt_comm_state(comm);
    if (rc) {
        tt_comm_abort(comm, rc);
        tt_plan_drain(comm);
    } else if (phase_of(comm) <= TT_COMM_FINALIZING) { /* what Finalize has not done */
        atomic_store_explicit(&comm->phase, TT_COMM_FINALIZING, memory_order_release);
        rc = finalize_now(comm);
    }
    base->comm = NULL;
    tt_plan_end(comm);
    return rc;
}

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin("CommDestroy", -1);
    (void)range;
    static const char func[] = "ncclCommDestroy";
    struct tt_comm *own = (struct tt_comm *)comm;
    if (!comm) return ncclSuccess;
    ncclResult_t rc = tt_check_alive(own, func);
    if (!rc && (tt_plan_busy(own->plan) || tt_comm_state(own) == ncclInProgress)) {
        rc = tt_fail(ncclInvalidArgument,
                     "%s: rank %d: an earlier call is still in progress; poll "
                     "ncclCommGetAsyncError, or use ncclCommAbort",
                     func, own->member.rank);
    }
    if (rc) return tt_group_error(rc);
    return comm_job_run(own, destroy_run, true);
}

static ncclResult_t abort_run(struct tt_job *base)
{
    struct tt_comm *comm = base->comm;
    if (!tt_plan_close(comm->plan, ncclInternalError)) return ncclSuccess;
    tt_plan_wait(comm->plan);
    tt_plan_drain(comm);
    base->comm = NULL;
    tt_plan_end(comm);
    return ncclSuccess;
}

ncclResult_t pncclCommAbort(ncclComm_t comm)
{
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin("CommAbort", -1);
    (void)range;
    struct tt_comm *own = (struct tt_comm *)comm;
    if (!comm) return ncclSuccess;
    ncclResult_t rc = tt_check_alive(own, "ncclCommAbort");
    struct comm_job *job = NULL;
    if (!rc) rc = comm_job_create(own, abort_run, &job);
    if (rc) return tt_group_error(rc);
    job->base.must_block = job->base.gone_is_ok = true;
    tt_job_hold(&job->base); /* who returns because of the abort may end the communicator first */
    tt_comm_abort(own, ncclInternalError); /* at once: whoever waits in it returns */
    return tt_group_job(&job->base);
}

static ncclResult_t revoke_run(struct tt_job *base)
{
    return tt_comm_revoke(base->comm);
}

ncclResult_t pncclCommRevoke(ncclComm_t comm, int revokeFlags)
{
    static const char func[] = "ncclCommRevoke";
    struct tt_comm *own = (struct tt_comm *)comm;
    if (!comm) return ncclSuccess;
    if (revokeFlags != NCCL_REVOKE_DEFAULT) {
        return tt_fail(ncclInvalidArgument, "%s: revokeFlags %#x has no meaning", func,
                       (unsigned)revokeFlags);
    }
    ncclResult_t rc = tt_check_alive(own, func);
    if (!rc && phase_of(own) >= TT_COMM_FINALIZING) {
        rc = tt_fail(ncclInvalidArgument, "%s: rank %d: the communicator was %s before", func,
                     own->member.rank,
                     phase_of(own) == TT_COMM_REVOKED ? "revoked" : "finalized or destroyed");
    }
    if (rc) return rc;
    if (phase_of(own) == TT_COMM_INIT) return tt_comm_revoke(own); /* at once: the init ends */
    return comm_job_run(own, revoke_run, false);
}

/* ---- the weak twins ---- */

__typeof__(pncclCommCount) ncclCommCount __attribute__((weak, alias("pncclCommCount")));
__typeof__(pncclCommCuDevice) ncclCommCuDevice __attribute__((weak, alias("pncclCommCuDevice")));
__typeof__(pncclCommUserRank) ncclCommUserRank __attribute__((weak, alias("pncclCommUserRank")));
__typeof__(pncclCommGetAsyncError) ncclCommGetAsyncError
    __attribute__((weak, alias("pncclCommGetAsyncError")));
__typeof__(pncclCommSplit) ncclCommSplit __attribute__((weak, alias("pncclCommSplit")));
__typeof__(pncclCommShrink) ncclCommShrink __attribute__((weak, alias("pncclCommShrink")));
__typeof__(pncclCommFinalize) ncclCommFinalize __attribute__((weak, alias("pncclCommFinalize")));
__typeof__(pncclCommDestroy) ncclCommDestroy __attribute__((weak, alias("pncclCommDestroy")));
__typeof__(pncclCommAbort) ncclCommAbort __attribute__((weak, alias("pncclCommAbort")));
__typeof__(pncclCommRevoke) ncclCommRevoke __attribute__((weak, alias("pncclCommRevoke")));
