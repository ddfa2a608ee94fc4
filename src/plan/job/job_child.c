/* Jobs that make a communicator of another one: split, shrink and grow. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "plan/group/group.h"
#include "plan/group/job.h"

#include <stdlib.h>
#include <string.h>

struct child_job {
    struct tt_job base;
    struct tt_comm *child; /* owned until it is handed out; other threads' undo reads it */
    _Atomic bool handed_out;
    ncclComm_t *newcomm; /* the caller's */
    struct tt_comm_color color;
    int *exclude; /* owned copy */
    int nexclude, flags;
};

static void child_destroy(struct tt_job *base)
{
    struct child_job *job = tt_container_of(base, struct child_job, base);
    if (!job->handed_out) tt_comm_dispose(job->child);
    free(job->exclude);
    free(job);
}

static void child_undo(struct tt_job *base)
{
    struct child_job *job = tt_container_of(base, struct child_job, base);
    if (job->child && !job->handed_out) tt_comm_abort(job->child, ncclInternalError);
}

/* The child goes to the caller: finished, or half-made and only good for ncclCommAbort. */
static void child_hand_out(struct child_job *job)
{
    *job->newcomm = (ncclComm_t)job->child;
    job->handed_out = true;
}

static ncclResult_t split_run(struct tt_job *base)
{
    struct child_job *job = tt_container_of(base, struct child_job, base);
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
    struct child_job *job = tt_container_of(base, struct child_job, base);
    ncclResult_t rc =
        tt_comm_shrink(base->comm, job->exclude, job->nexclude, job->child, job->flags);
    child_hand_out(job);
    return rc;
}

/* The child is the job's from now on. The state of a split or shrink in progress is on the parent;
 * the call itself says ok. */
static ncclResult_t child_start(const struct tt_child *child, ncclResult_t (*run)(struct tt_job *))
{
    struct tt_comm *parent = child->parent;
    struct child_job *job = tt_calloc(1, sizeof(*job));
    size_t bytes = (size_t)child->nexclude * sizeof(int);
    int *exclude = bytes ? malloc(bytes) : NULL;
    if (!job || (bytes && !exclude)) {
        free(exclude);
        free(job);
        tt_comm_dispose(child->comm);
        return tt_plan_failed(
            parent, tt_fail(ncclSystemError, "rank %d: out of memory", parent->member.rank));
    }
    if (bytes) memcpy(exclude, child->exclude, bytes);
    *job = (struct child_job){.child = child->comm,
                              .newcomm = child->newcomm,
                              .exclude = exclude,
                              .nexclude = child->nexclude,
                              .flags = child->flags};
    if (run == split_run) {
        job->color = (struct tt_comm_color){
            .number = tt_comm_count_child(parent), .color = child->color, .key = child->key};
    }
    job->base = (struct tt_job){.comm = parent,
                                .run = run,
                                .undo = child_undo,
                                .destroy = child_destroy,
                                .blocking = parent->config.blocking != 0};
    ncclResult_t rc = tt_group_job(&job->base);
    return rc == ncclInProgress ? ncclSuccess : rc;
}

ncclResult_t tt_job_split(const struct tt_child *child)
{
    return child_start(child, split_run);
}

ncclResult_t tt_job_shrink(const struct tt_child *child)
{
    return child_start(child, shrink_run);
}

/* ---- grow ---- */

struct grow_job {
    struct tt_job base; /* parent NULL: a new rank */
    bool has_id;
    uint64_t number; /* of the parent's children */
    ncclUniqueId id;
    struct tt_comm_request request; /* of a new rank */
};

static ncclResult_t grow_run(struct tt_job *base)
{
    struct grow_job *job = tt_container_of(base, struct grow_job, base);
    ncclResult_t rc = ncclSuccess;
    if (base->parent) {
        const ncclUniqueId *id = job->has_id ? &job->id : NULL;
        if (!tt_plan_pin(base->parent_plan)) {
            rc = tt_fail(ncclInvalidArgument,
                         "ncclCommGrow: comm %p is being destroyed or aborted, or was before",
                         (const void *)base->parent);
            if (id) tt_init_dropped(&job->request, ncclInternalError);
            return rc;
        }
        job->request.parent = base->parent;
        rc = tt_comm_grow_take(base->parent, base->comm, job->number, id, &job->request, &job->id);
    }
    if (!rc) rc = tt_comm_init(base->comm, &job->request);
    if (base->parent) tt_plan_unpin(base->parent_plan);
    return rc;
}

static void grow_undo(struct tt_job *base)
{
    tt_comm_abort(base->comm, ncclInternalError);
}

static void grow_destroy(struct tt_job *base)
{
    struct grow_job *job = tt_container_of(base, struct grow_job, base);
    if (!base->ran && job->has_id) tt_init_dropped(&job->request, base->rc);
    free(job);
}

ncclResult_t tt_job_grow(struct tt_comm *parent, struct tt_comm *child,
                         const struct tt_comm_request *request, ncclComm_t *newcomm)
{
    ncclUniqueId own;
    struct grow_job *job = tt_calloc(1, sizeof(*job));
    if (!job) {
        tt_comm_dispose(child);
        return tt_fail(ncclSystemError, "%s: out of memory", request->func);
    }
    job->request = *request;
    job->request.config = NULL;
    job->request.ids = &job->id;
    job->has_id = request->ids != NULL;
    if (job->has_id) job->id = *request->ids;
    job->base = (struct tt_job){.comm = child,
                                .parent = parent,
                                .run = grow_run,
                                .undo = grow_undo,
                                .destroy = grow_destroy,
                                .blocking = child->config.blocking != 0};
    if (parent) {
        bool made = tt_comm_grow_made(parent, request->ids, &own);
        if (made && !job->has_id) job->id = own;
        job->has_id = job->has_id || made;
        job->number = tt_comm_count_child(parent);
    }
    *newcomm = (ncclComm_t)child;
    ncclResult_t rc = tt_group_job(&job->base);
    return rc == ncclInProgress ? ncclSuccess : rc;
}
