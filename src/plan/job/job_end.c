/* Jobs that end a communicator, or its use. */
#include "base/error.h"
#include "base/mem.h"
#include "mem/mem.h"
#include "plan/group/group.h"
#include "plan/group/job.h"

#include <stdlib.h>

static void plain_destroy(struct tt_job *job)
{
    free(job);
}

static ncclResult_t plain_create(struct tt_comm *comm, ncclResult_t (*run)(struct tt_job *),
                                 struct tt_job **job_out)
{
    struct tt_job *job = tt_calloc(1, sizeof(*job));
    if (!job) return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    *job = (struct tt_job){
        .comm = comm, .run = run, .destroy = plain_destroy, .blocking = comm->config.blocking != 0};
    *job_out = job;
    return ncclSuccess;
}

/* The job is the only one that uses the communicator from now on; what groups of other threads hold
 * fails with `rc`. False when another thread ends it. */
static ncclResult_t comm_close(struct tt_comm *comm, ncclResult_t rc)
{
    if (tt_plan_close(comm->plan, rc)) return ncclSuccess;
    return tt_fail(ncclInvalidUsage, "rank %d: another thread is ending the communicator",
                   comm->member.rank);
}

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
    ncclResult_t rc = finalize_now(base->comm);
    tt_comm_recall(base->comm, rc);
    return rc;
}

/* Its group was refused before it ran: the communicator is as it was before the call. */
static void finalize_destroy(struct tt_job *base)
{
    int phase = TT_COMM_FINALIZING;
    if (!base->ran && tt_plan_pin(base->plan)) {
        atomic_compare_exchange_strong(&base->comm->phase, &phase, TT_COMM_READY);
        tt_plan_unpin(base->plan);
    }
    plain_destroy(base);
}

/* An error does not keep the communicator alive: everything is freed, the error is returned. */
static ncclResult_t destroy_run(struct tt_job *base)
{
    struct tt_comm *comm = base->comm;
    ncclResult_t rc = comm_close(comm, ncclInvalidUsage);
    if (rc) return rc;
    tt_plan_wait(comm->plan);
    const bool ignored = atomic_load_explicit(&comm->phase, memory_order_acquire) != TT_COMM_INIT &&
                         !atomic_load(&comm->aborted); /* a failure, if there is one */
    rc = tt_comm_state(comm);
    if (rc) {
        tt_comm_abort(comm, rc);
        tt_plan_drain(comm);
        tt_comm_recall(comm, rc);
    } else if (atomic_load_explicit(&comm->phase, memory_order_acquire) <=
               TT_COMM_FINALIZING) { /* what Finalize has not done */
        atomic_store_explicit(&comm->phase, TT_COMM_FINALIZING, memory_order_release);
        rc = finalize_now(comm);
        tt_comm_recall(comm, rc);                       /* the abort is no reason of this call's */
        if (rc == ncclTimeout) tt_comm_abort(comm, rc); /* its graphs are still there */
    }
    if (rc && ignored) tt_comm_note_broken();
    base->comm = NULL;
    tt_plan_end(comm);
    return rc;
}

static ncclResult_t abort_run(struct tt_job *base)
{
    struct tt_comm *comm = base->comm;
    if (!tt_plan_close(comm->plan, ncclInternalError)) return ncclSuccess;
    tt_plan_wait(comm->plan);
    /* what has finalized has drained, and does not wait for works of those that share its queue */
    if (atomic_load(&comm->phase) != TT_COMM_FINALIZED) tt_plan_drain(comm);
    base->comm = NULL;
    tt_plan_end(comm);
    return ncclSuccess;
}

static ncclResult_t revoke_run(struct tt_job *base)
{
    return tt_comm_revoke(base->comm);
}

ncclResult_t tt_job_finalize(struct tt_comm *comm)
{
    struct tt_job *job = NULL;
    ncclResult_t rc = plain_create(comm, finalize_run, &job);
    if (rc) return tt_group_error(rc);
    job->destroy = finalize_destroy;
    atomic_store_explicit(&comm->phase, TT_COMM_FINALIZING, memory_order_release);
    return tt_group_job(job);
}

ncclResult_t tt_job_destroy(struct tt_comm *comm)
{
    struct tt_job *job = NULL;
    ncclResult_t rc = plain_create(comm, destroy_run, &job);
    if (rc) return tt_group_error(rc);
    job->must_block = true;
    return tt_group_job(job);
}

ncclResult_t tt_job_abort(struct tt_comm *comm)
{
    struct tt_job *job = NULL;
    ncclResult_t rc = plain_create(comm, abort_run, &job);
    if (rc) return tt_group_error(rc);
    job->must_block = job->gone_is_ok = true;
    tt_job_hold(
        job); /* a thread that returns because of the abort may end the communicator first */
    tt_comm_abort(comm, ncclInternalError); /* at once: threads that wait in it return */
    return tt_group_job(job);
}

ncclResult_t tt_job_revoke(struct tt_comm *comm)
{
    struct tt_job *job = NULL;
    ncclResult_t rc = plain_create(comm, revoke_run, &job);
    return rc ? tt_group_error(rc) : tt_group_job(job);
}
