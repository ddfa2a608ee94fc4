/* A communicator's later life: queries, split, shrink, and its ends. Each change is a job of plan/,
 * so that it may wait for GroupEnd or run in the background. */
#include "tutti.h"

#include "api/calls.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"
#include "mem/mem.h"
#include "plugin/tuner/tuner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* tt_check_alive(), and pin it: it is not destroyed before the caller's tt_plan_unpin(). */
static ncclResult_t enter(struct tt_comm *comm, const char *func)
{
    ncclResult_t rc = tt_check_alive(comm, func);
    if (rc || tt_plan_pin(comm->plan)) return rc;
    return tt_comm_ended(comm, func);
}

ncclResult_t tt_check_usable(struct tt_comm *comm, const char *func)
{
    ncclResult_t rc = enter(comm, func);
    if (rc) return rc;
    tt_plan_busy(comm->plan);
    rc = tt_comm_check_state(comm, func);
    tt_plan_unpin(comm->plan);
    return rc;
}

/* What a tool is shown of a communicator that begins or ends. */
static void note_life(struct tt_nvtx_life *life, const struct tt_comm *comm)
{
    life->comm = comm->member.comm_id;
    life->nranks = comm->member.nranks;
    life->rank = comm->member.rank;
    life->device = comm->member.device;
}

void tt_life_begun(struct tt_nvtx_life *life, ncclResult_t rc, const ncclComm_t *newcomm)
{
    if (!rc && newcomm && *newcomm && tt_group_depth() == 0)
        note_life(life, (const struct tt_comm *)*newcomm);
}

/* ---- queries ---- */

/* Pinned on success. */
static ncclResult_t query(struct tt_comm *comm, const void *out, const char *func)
{
    ncclResult_t rc = enter(comm, func);
    if (rc) return rc;
    rc = tt_check_pointer(out, func, "the result pointer");
    if (!rc) rc = tt_check_usable(comm, func);
    if (rc) tt_plan_unpin(comm->plan);
    return rc;
}

int tuttiTunerUsed(struct ncclComm *comm, struct tuttiTunerUse *use)
{
    struct tt_tuner_stats stats;
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = query(own, use, "tuttiTunerUsed");
    if (rc) return (int)rc;
    tt_tuner_stats(own->tuner, &stats);
    tt_plan_unpin(own->plan);
    if (use->size != sizeof(*use)) {
        return (int)tt_fail(ncclInvalidArgument, "tuttiTunerUsed: size is %zu, not %zu", use->size,
                            sizeof(*use));
    }
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
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = query(own, count, "ncclCommCount");
    if (rc) return rc;
    *count = own->member.nranks;
    tt_plan_unpin(own->plan);
    return ncclSuccess;
}

ncclResult_t pncclCommCuDevice(const ncclComm_t comm, int *device)
{
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = query(own, device, "ncclCommCuDevice");
    if (rc) return rc;
    *device = own->member.device;
    tt_plan_unpin(own->plan);
    return ncclSuccess;
}

ncclResult_t pncclCommUserRank(const ncclComm_t comm, int *rank)
{
    struct tt_comm *own = (struct tt_comm *)comm;
    ncclResult_t rc = query(own, rank, "ncclCommUserRank");
    if (rc) return rc;
    *rank = own->member.rank;
    tt_plan_unpin(own->plan);
    return ncclSuccess;
}

ncclResult_t pncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *asyncError)
{
    static const char func[] = "ncclCommGetAsyncError";
    struct tt_comm *own = (struct tt_comm *)comm;
    if (!comm) {
        return tt_fail(ncclInvalidArgument,
                       "%s: comm is NULL: a non-blocking ncclCommSplit or ncclCommShrink sets "
                       "newcomm when it is done, which ncclCommGetAsyncError of its parent says; a "
                       "rank of NCCL_SPLIT_NOCOLOR has none",
                       func);
    }
    ncclResult_t rc = tt_check_alive(own, func);
    if (!rc) rc = tt_check_pointer(asyncError, func, "asyncError");
    if (rc) return rc;
    bool busy = tt_plan_busy(own->plan);
    bool pinned = tt_plan_pin(own->plan);
    rc = tt_comm_async_error(own, busy, pinned, func, asyncError);
    if (pinned) tt_plan_unpin(own->plan);
    return rc;
}

/* ---- split and shrink ---- */

ncclResult_t tt_child_create(const struct tt_comm_request *asked, struct tt_comm *parent,
                             struct tt_comm **child_out)
{
    struct tt_comm_request request = *asked;
    struct tt_comm *child = NULL;
    request.device = parent->member.device;
    request.inherit = asked->config ? NULL : &parent->config;
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
    struct tt_child child = {.parent = own, .newcomm = newcomm, .color = color, .key = key};
    if (color != NCCL_SPLIT_NOCOLOR) rc = child_create(own, func, config, &child.comm);
    return rc ? tt_plan_failed(own, rc) : tt_job_split(&child);
}

ncclResult_t pncclCommSplit(ncclComm_t comm, int color, int key, ncclComm_t *newcomm,
                            ncclConfig_t *config)
{
    struct tt_nvtx_life life = {.kind = TT_NVTX_SPLIT, .color = color, .key = key};
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin_life("CommSplit", -1, &life);
    static const char func[] = "ncclCommSplit";
    struct tt_comm *own = (struct tt_comm *)comm;
    if (newcomm) *newcomm = NULL;
    ncclResult_t rc = tt_check_pointer(newcomm, func, "newcomm");
    if (!rc) rc = enter(own, func);
    if (rc) return tt_group_error(rc);
    life.parent = own->member.comm_id;
    life.device = own->member.device;
    rc = split(own, color, key, newcomm, config);
    tt_plan_unpin(own->plan);
    if (range.open) tt_life_begun(&life, rc, newcomm);
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
    if (!rc && (flags & ~NCCL_SHRINK_ABORT) && tt_param_bool("TUTTI_STRICT")) {
        rc = tt_fail(ncclInvalidArgument,
                     "%s: shrinkFlags %#x has bits without a meaning (%#x), which NCCL ignores "
                     "(TUTTI_STRICT)",
                     func, (unsigned)flags, (unsigned)(flags & ~NCCL_SHRINK_ABORT));
    }
    return rc ? rc : check_excluded(own, list, count);
}

static ncclResult_t shrink(struct tt_comm *own, const int *list, int count, ncclComm_t *newcomm,
                           ncclConfig_t *config, int flags)
{
    static const char func[] = "ncclCommShrink";
    struct tt_child child = {
        .parent = own, .newcomm = newcomm, .exclude = list, .nexclude = count, .flags = flags};
    ncclResult_t rc = check_shrink(own, list, count, flags);
    if (rc) return tt_group_error(rc);
    rc = child_create(own, func, config, &child.comm);
    return rc ? tt_plan_failed(own, rc) : tt_job_shrink(&child);
}

ncclResult_t pncclCommShrink(ncclComm_t comm, int *excludeRanksList, int excludeRanksCount,
                             ncclComm_t *newcomm, ncclConfig_t *config, int shrinkFlags)
{
    struct tt_nvtx_life life = {.kind = TT_NVTX_SHRINK, .nexcluded = excludeRanksCount};
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin_life("CommShrink", -1, &life);
    static const char func[] = "ncclCommShrink";
    struct tt_comm *own = (struct tt_comm *)comm;
    if (newcomm) *newcomm = NULL;
    ncclResult_t rc = tt_check_pointer(newcomm, func, "newcomm");
    if (!rc) rc = enter(own, func);
    if (rc) return tt_group_error(rc);
    life.device = own->member.device;
    rc = shrink(own, excludeRanksList, excludeRanksCount, newcomm, config, shrinkFlags);
    tt_plan_unpin(own->plan);
    if (range.open) tt_life_begun(&life, rc, newcomm);
    return rc;
}

/* ---- the ends ---- */

ncclResult_t pncclCommFinalize(ncclComm_t comm)
{
    struct tt_nvtx_life life = {.kind = TT_NVTX_FINALIZE};
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin_life("CommFinalize", -1, &life);
    (void)range;
    static const char func[] = "ncclCommFinalize";
    struct tt_comm *own = (struct tt_comm *)comm;
    if (!comm) return ncclSuccess;
    ncclResult_t rc = tt_check_usable(own, func);
    if (!rc) note_life(&life, own);
    if (!rc && phase_of(own) != TT_COMM_READY) {
        rc = tt_fail(ncclInvalidArgument, "%s: rank %d: the communicator was %s before", func,
                     own->member.rank, phase_of(own) == TT_COMM_REVOKED ? "revoked" : "finalized");
    }
    return rc ? tt_group_error(rc) : tt_job_finalize(own);
}

ncclResult_t pncclCommDestroy(ncclComm_t comm)
{
    struct tt_nvtx_life life = {.kind = TT_NVTX_INIT};
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin_life("CommDestroy", -1, &life);
    (void)range;
    static const char func[] = "ncclCommDestroy";
    struct tt_comm *own = (struct tt_comm *)comm;
    if (!comm) return ncclSuccess;
    ncclResult_t rc = tt_check_alive(own, func);
    if (!rc) note_life(&life, own);
    if (!rc && (tt_plan_busy(own->plan) || tt_comm_state(own) == ncclInProgress)) {
        rc = tt_fail(ncclInvalidArgument,
                     "%s: rank %d: an earlier call is still in progress; poll "
                     "ncclCommGetAsyncError, or use ncclCommAbort",
                     func, own->member.rank);
    }
    if (!rc && own->process != getpid()) (void)tt_comm_check_state(own, func); /* says why */
    return rc ? tt_group_error(rc) : tt_job_destroy(own);
}

ncclResult_t pncclCommAbort(ncclComm_t comm)
{
    struct tt_nvtx_life life = {.kind = TT_NVTX_INIT};
    struct tt_nvtx_range range __attribute__((cleanup(tt_nvtx_end))) =
        tt_nvtx_begin_life("CommAbort", -1, &life);
    (void)range;
    struct tt_comm *own = (struct tt_comm *)comm;
    if (!comm) return ncclSuccess;
    ncclResult_t rc = tt_check_alive(own, "ncclCommAbort");
    if (!rc) note_life(&life, own);
    return rc ? tt_group_error(rc) : tt_job_abort(own);
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
    return tt_job_revoke(own);
}

/* ---- the weak aliases ---- */

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
