/* Jobs of groups: calls that are no operations but must run at the outermost GroupEnd (init, split,
 * finalize, ...). Private to the room; plan.h has a function for each. */
#pragma once

#include "base/error.h"
#include "plan/plan.h"

/* run() may block. Jobs of one group run in threads of their own when there is more than one or
 * when a communicator is non-blocking. */
struct tt_job {
    struct tt_job *next;
    struct tt_comm *comm;   /* its state shows ncclInProgress, then the result; NULL: none */
    struct tt_comm *parent; /* jobs with the same parent run one after the other; NULL: none */
    struct tt_plan *plan, *parent_plan; /* kept while the job exists, set by tt_job_hold() */
    ncclResult_t (*run)(struct tt_job *job);
    void (*undo)(struct tt_job *job); /* another job of the group failed: may be NULL */
    void (*destroy)(struct tt_job *job);
    bool blocking;   /* the communicator's mode; a group must not mix them */
    bool must_block; /* destroy and abort: the whole group runs in the caller */
    bool gone_is_ok; /* abort: nothing is left to do when another thread ended the communicator */
    bool ran;        /* run() was called */
    ncclResult_t rc; /* result of run(); set by the group, as is */
    char why[TT_WHY_BYTES]; /* the sentence of a failure */
};

/* Keep the plans of the job's communicators until it is destroyed. tt_group_job() does it, unless
 * it was done before. */
void tt_job_hold(struct tt_job *job);

/* Queue the job, or run it when no group is open. Takes ownership. Returns what the API call
 * returns. */
ncclResult_t tt_group_job(struct tt_job *job);
