/* Calls between GroupStart and GroupEnd become launched work: cache, choice, binding, order. */
#pragma once

#include "base/member.h"
#include "nccl.h"
#include "program/program.h"
#include "tune/tune.h"

#include <stdbool.h>
#include <stddef.h>

struct tt_comm;
struct tt_plan; /* a communicator's launch cache, program cache and order; opaque */

struct CUevent_st;
struct tt_registry;

struct tt_call_options { /* of one collective (ncclCollConfig_t), checked */
    struct tt_tune_request request;
    uint64_t profiler_tag;
    struct CUevent_st *launch_event; /* recorded in front of the operation; borrowed; NULL: none */
};

struct tt_task { /* one call */
    struct {     /* its arguments, without holes, which would have to be filled */
        const void *in;
        void *out;
        size_t count; /* elements, of what the public function says */
        enum tt_func func;
        ncclDataType_t type;
        ncclRedOp_t op; /* ncclSum when nothing is reduced */
        int root;       /* -1 when there is none; peer for send and receive */
    };
    struct tt_comm *comm;
    struct CUstream_st *stream;
    const struct tt_call_options *options; /* borrowed until tt_plan_add() returns; NULL: none */
};

/* Make the plan of a communicator that was allocated (not yet ready: its state is asked before).
 * *plan_out  the caller's; comm is borrowed and must outlive it
 * Errors: ncclSystemError (out of memory). */
ncclResult_t tt_plan_create(struct tt_comm *comm, struct tt_plan **plan_out);
/* Keep the communicator until tt_plan_unpin(): who ends it waits. False when it has ended. */
bool tt_plan_pin(struct tt_plan *plan);
void tt_plan_unpin(struct tt_plan *plan);
/* In a child of fork, which has none of the threads that ran jobs and groups: forget what they
 * held, so that nobody waits for them. The communicator is only good for its end there. */
void tt_plan_note_fork(struct tt_plan *plan);

/* The communicator ends: no other thread's group or job begins to use it, those that do are waited
 * for. One job on it is the caller's own. What groups still hold fails with `rc` when they end.
 * False when somebody closed it before. */
bool tt_plan_close(struct tt_plan *plan, ncclResult_t rc);
/* Free a closed communicator with its plan and registry: now, or at a later call of this function
 * or the next one when works on streams that stand still, or graphs, refer to it. */
void tt_plan_end(struct tt_comm *comm);
void tt_plan_free_ended(void);
/* Free it; a group in the background is waited for. The communicator's works are done and its
 * transport still lives. Groups that hold calls on it learn that it is gone. Accepts NULL. */
void tt_plan_destroy(struct tt_plan *plan);

/* Bytes of the send and receive buffer that this rank uses (0: the pointer is not looked at). */
void tt_buffer_bytes(const struct tt_task *task, size_t *in_bytes_out, size_t *out_bytes_out);

/* Take a call: check its communicator and its arguments (these not if the same call was made
 * before), log it, and append it to the thread's group or, outside of groups, launch it: inline
 * when the stream is idle. The one way in for operations. `name` is the public one without "nccl",
 * static text. Errors: ncclInvalidArgument, ncclInvalidUsage naming the culprit; what launching
 * gives; tt_plan_failed() is done. hot */
ncclResult_t tt_plan_add(const struct tt_task *task, const char *name);
/* A call on a communicator failed: GroupEnd will return it, and a non-blocking communicator shows
 * it, as in NCCL. Returns rc. */
ncclResult_t tt_plan_failed(struct tt_comm *comm, ncclResult_t rc);

/* Wait until all launched work of the communicator is done and no graph holds any. */
ncclResult_t tt_plan_drain(struct tt_comm *comm);

/* ---- groups ---- */

/* True while a group of this communicator runs in the background. When it ended: joins its thread.
 */
bool tt_plan_busy(struct tt_plan *plan);
/* Wait for that group. */
void tt_plan_wait(struct tt_plan *plan);

/* Open a group of the calling thread, or one more inside it. Errors: ncclSystemError (memory). */
ncclResult_t tt_group_start(void);
/* Close the innermost; the outermost runs what was collected: jobs may block, operations do not.
 * ncclInProgress: non-blocking communicators, the group goes on in the background. Errors:
 * ncclInvalidUsage when none is open, else the first failure of a call, job or launch. */
ncclResult_t tt_group_end(void);
/* The same, but operations are only predicted: info->estimatedTime in microseconds, untouched when
 * nothing is known. `info` may be NULL: then it is tt_group_end(). */
ncclResult_t tt_group_simulate(ncclSimInfo_t *info);
/* Groups open in the calling thread, one inside the other. */
int tt_group_depth(void);
/* A call inside a group failed: GroupEnd will return it (the latest wins) and drop everything; a
 * non-blocking communicator of the group shows it with the sentence `why`. error: with what the
 * thread said last. */
void tt_group_refuse(ncclResult_t rc, const char *why);
ncclResult_t tt_group_error(ncclResult_t rc);

/* User operators: a scalar times each input, then the sum. One thread at a time per communicator.
 * scalar  one element of `type`; copied now (host) or read when operations run (device)
 * Errors: ncclInternalError for a type without size, ncclSystemError (out of memory). */
ncclResult_t tt_redop_create(struct tt_comm *comm, const void *scalar, ncclDataType_t type,
                             ncclScalarResidence_t residence, ncclRedOp_t *op_out);
/* Calls that were made with it keep their copy. Errors: ncclInvalidArgument when it is unknown. */
ncclResult_t tt_redop_destroy(struct tt_comm *comm, ncclRedOp_t op);

/* ---- jobs: what else a group may hold ----
 *
 * They run at the outermost GroupEnd, or at once when no group is open, in threads of their own
 * when there is more than one or a communicator is non-blocking. Each returns what the call of that
 * name returns. Arguments were checked. */

struct tt_comm_request;

/* Settings without effect are reported, and under TUTTI_STRICT an error. */
ncclResult_t tt_settings_check(void);
/* Meet the others. It is handed out at once, with `runs_now` after the init, which runs in the call
 * itself whatever its mode; then it is freed on failure. ids are copied, the config was read. */
ncclResult_t tt_job_init(struct tt_comm *comm, const struct tt_comm_request *request, bool runs_now,
                         ncclComm_t *newcomm);
/* An init or grow of the request never joins its bootstrap: its root is told, so that nobody
 * waits for it. The call only returns `rc`, which is returned; the caller may call again. */
ncclResult_t tt_init_refused(const struct tt_comm_request *request, ncclResult_t rc);
/* The same of a new rank whose id is of no grow: the process that made the id looks for the grow
 * that waits for this rank. */
ncclResult_t tt_grow_refused_id(const struct tt_comm_request *request, ncclResult_t rc);
/* What becomes of a parent: its child was allocated and is handed out when it is made. */
struct tt_child {
    struct tt_comm *parent; /* borrowed */
    struct tt_comm *comm;   /* the job's; NULL: this rank has no part */
    ncclComm_t *newcomm;    /* the caller's */
    int color, key;         /* split */
    const int *exclude;     /* shrink: copied */
    int nexclude, flags;
};
ncclResult_t tt_job_split(const struct tt_child *child);
ncclResult_t tt_job_shrink(const struct tt_child *child);
/* parent NULL: a new rank. request->ids NULL: the rank that has made an id sends it. */
ncclResult_t tt_job_grow(struct tt_comm *parent, struct tt_comm *child,
                         const struct tt_comm_request *request, ncclComm_t *newcomm);
ncclResult_t tt_job_finalize(struct tt_comm *comm);
ncclResult_t tt_job_destroy(struct tt_comm *comm);
ncclResult_t tt_job_abort(struct tt_comm *comm);
ncclResult_t tt_job_revoke(struct tt_comm *comm);
struct tt_window_call { /* of ncclCommWindowRegister */
    void *buff;
    size_t bytes;
    int flags;
    ncclWindow_t *win;
};
ncclResult_t tt_job_window(struct tt_comm *comm, const struct tt_window_call *call);
/* Free a communicator that nobody else knows, with its plan and registry. Accepts NULL. */
void tt_comm_dispose(struct tt_comm *comm);
/* The registry of its memory, made at first use. */
ncclResult_t tt_comm_registry(struct tt_comm *comm, struct tt_registry **registry_out);
