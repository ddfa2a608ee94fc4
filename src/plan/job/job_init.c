/* The job that meets the others for the first time, and what they learn of a rank that does not
 * come. */
#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"
#include "bootstrap/bootstrap.h"
#include "plan/group/group.h"
#include "plan/group/job.h"

#include <stdlib.h>
#include <string.h>

/* ---- ranks that do not come ---- */

static void decline(const struct tt_comm_request *request, struct tt_bootstrap_decline words)
{
    words.ids = request->ids;
    words.nids = request->nids;
    words.nranks = request->nranks;
    words.rank = request->rank;
    words.thread = request->thread;
    if (request->ids && request->nids > 0) tt_bootstrap_decline(&words);
}

ncclResult_t tt_init_refused(const struct tt_comm_request *request, ncclResult_t rc)
{
    const struct tt_bootstrap_decline words = {.rc = rc, .sentence = tt_last_error()};
    if (rc && rc != ncclInProgress) decline(request, words);
    return rc;
}

ncclResult_t tt_grow_refused_id(const struct tt_comm_request *request, ncclResult_t rc)
{
    const struct tt_bootstrap_decline words = {
        .stray = true, .rc = rc, .sentence = tt_last_error()};
    decline(request, words);
    return rc;
}

void tt_init_dropped(const struct tt_comm_request *request, ncclResult_t rc)
{
    bool aborted = rc && rc != ncclSystemError;
    const struct tt_bootstrap_decline words = {
        .for_good = rc != ncclSuccess,
        .rc = rc ? rc : ncclInvalidUsage,
        .sentence = aborted ? "its init was aborted before it began" : tt_last_error()};
    decline(request, words);
}

/* ---- the job ---- */

struct init_job {
    struct tt_job base;
    struct tt_comm_request request; /* ids points to `ids`; config is not needed any more */
    ncclUniqueId *ids;              /* owned copy */
};

static ncclResult_t init_run(struct tt_job *base)
{
    struct init_job *job = tt_container_of(base, struct init_job, base);
    ncclResult_t rc = tt_comm_init(base->comm, &job->request);
    return rc ? rc : tt_param_check(); /* again: plugins and limits are looked at on the way */
}

static void init_undo(struct tt_job *base)
{
    tt_comm_abort(base->comm, ncclInternalError);
}

static void init_destroy(struct tt_job *base)
{
    struct init_job *job = tt_container_of(base, struct init_job, base);
    if (!base->ran) tt_init_dropped(&job->request, base->rc);
    free(job->ids);
    free(job);
}

static ncclResult_t init_job_create(const struct tt_comm_request *request,
                                    struct init_job **job_out)
{
    struct init_job *job = tt_calloc(1, sizeof(*job));
    ncclUniqueId *ids = tt_calloc((size_t)request->nids, sizeof(*ids));
    if (!job || !ids) {
        free(job);
        free(ids);
        return tt_fail(ncclSystemError, "%s: out of memory", request->func);
    }
    memcpy(ids, request->ids, (size_t)request->nids * sizeof(*ids));
    job->ids = ids;
    job->request = *request;
    job->request.ids = ids;
    job->request.config = NULL;
    job->base = (struct tt_job){.run = init_run, .undo = init_undo, .destroy = init_destroy};
    *job_out = job;
    return ncclSuccess;
}

ncclResult_t tt_job_init(struct tt_comm *comm, const struct tt_comm_request *request, bool runs_now,
                         ncclComm_t *newcomm)
{
    struct init_job *job = NULL;
    ncclResult_t rc = init_job_create(request, &job);
    if (rc) {
        tt_comm_dispose(comm);
        return tt_init_refused(request, rc);
    }
    job->base.comm = comm;
    job->base.blocking = comm->config.blocking != 0;
    if (!runs_now) {
        *newcomm = (ncclComm_t)comm;
        return tt_group_job(&job->base);
    }
    job->base.ran = true;
    rc = init_run(&job->base);
    init_destroy(&job->base);
    if (rc) {
        tt_comm_dispose(comm);
    } else {
        *newcomm = (ncclComm_t)comm;
    }
    return rc;
}
