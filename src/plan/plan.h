/* Turns calls between GroupStart and GroupEnd into launched work: launch cache, choice of
 * algorithm, binding of buffers and edges, issue order. */
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
    struct {     /* its arguments, without padding, so that they are copied as whole words */
        const void *in;
        void *out;
        size_t count; /* elements, as the public function counts them */
        enum tt_func func;
        ncclDataType_t type;
        ncclRedOp_t op; /* ncclSum when nothing is reduced */
        int root;       /* -1 when there is none; peer for send and receive */
    };
    struct tt_comm *comm;
    struct CUstream_st *stream;
    const struct tt_call_options *options; /* borrowed until tt_plan_add() returns; NULL: none */
};

/* Make the plan of a communicator that was allocated; it need not be ready.
 * *plan_out  the caller's; comm is borrowed and must outlive it
 * Errors: ncclSystemError (out of memory). */
ncclResult_t tt_plan_create(struct tt_comm *comm, struct tt_plan **plan_out);
/* Keep the communicator alive until tt_plan_unpin(): a thread that ends it waits. False when it has
 * ended. */
bool tt_plan_pin(struct tt_plan *plan);
void tt_plan_unpin(struct tt_plan *plan);
/* In a child of fork, where the threads that ran jobs and groups do not exist: forget what they
 * held, so that no wait for them hangs. The child may only end the communicator. */
void tt_plan_note_fork(struct tt_plan *plan);

/* Begin the end of the communicator: no other thread's group or job may begin to use it. Waits for
 * those that use it now, but not for the caller's own job. Calls that groups still hold fail with
 * `rc` when the groups end. False when it was closed before. */
bool tt_plan_close(struct tt_plan *plan, ncclResult_t rc);
/* Free a closed communicator with its plan and registry. While graphs, or works on streams that
 * stand still, refer to it, it stays and is freed by a later call of one of these two functions. */
void tt_plan_end(struct tt_comm *comm);
void tt_plan_free_ended(void);
/* Free the plan. Waits for a group in the background. The communicator's works must be done and its
 * transport must still exist. Groups that hold calls on it learn that it is gone. Accepts NULL. */
void tt_plan_destroy(struct tt_plan *plan);

/* Bytes of the send and receive buffer that this rank uses (0: the pointer is not looked at). */
void tt_buffer_bytes(const struct tt_task *task, size_t *in_bytes_out, size_t *out_bytes_out);

/* Take a call: the one entry for operations. Checks the communicator, and the arguments unless the
 * same call was made before; logs the call; appends it to the thread's group, or launches it when
 * no group is open (inline when the stream is idle).
 * name  the public name without "nccl"; static text
 * Errors: ncclInvalidArgument or ncclInvalidUsage naming the argument, and those of launching;
 * tt_plan_failed() was called then. hot */
ncclResult_t tt_plan_add(const struct tt_task *task, const char *name);
/* Note that a call on a communicator failed: GroupEnd will return `rc`, and ncclCommGetAsyncError
 * of a non-blocking communicator, as in NCCL. Returns rc. */
ncclResult_t tt_plan_failed(struct tt_comm *comm, ncclResult_t rc);

/* Wait until all launched work of the communicator is done and no graph holds any. */
ncclResult_t tt_plan_drain(struct tt_comm *comm);

/* ---- groups ---- */

/* True while a group of this communicator runs in the background. Joins its thread if it ended. */
bool tt_plan_busy(struct tt_plan *plan);
/* Wait for that group. */
void tt_plan_wait(struct tt_plan *plan);

/* Open a group of the calling thread, or one more inside it. Errors: ncclSystemError (memory). */
ncclResult_t tt_group_start(void);
/* Close the innermost group. The outermost runs what was collected: jobs may block, operations do
 * not. ncclInProgress: the group goes on in the background (non-blocking communicators).
 * Errors: ncclInvalidUsage when none is open, else the first failure of a call, job or launch. */
ncclResult_t tt_group_end(void);
/* The same, but operations are only predicted: info->estimatedTime in microseconds, untouched when
 * nothing is known. `info` may be NULL: then it is tt_group_end(). */
ncclResult_t tt_group_simulate(ncclSimInfo_t *info);
/* Groups open in the calling thread, one inside the other. */
int tt_group_depth(void);
/* Note that a call inside a group failed: GroupEnd will drop the group and return `rc` (the latest
 * one); a non-blocking communicator of the group shows it with the sentence `why`.
 * tt_group_error() does the same with the thread's last error as the sentence, and returns rc. */
void tt_group_refuse(ncclResult_t rc, const char *why);
ncclResult_t tt_group_error(ncclResult_t rc);

/* User operators: a scalar times each input, then the sum. One thread at a time per communicator.
 * scalar  one element of `type`; copied now (host) or read when operations run (device)
 * Errors: ncclInternalError for a type without size, ncclSystemError (out of memory). */
ncclResult_t tt_redop_create(struct tt_comm *comm, const void *scalar, ncclDataType_t type,
                             ncclScalarResidence_t residence, ncclRedOp_t *op_out);
/* Destroy the operator; calls made with it keep a copy. Errors: ncclInvalidArgument: unknown. */
ncclResult_t tt_redop_destroy(struct tt_comm *comm, ncclRedOp_t op);

/* ---- jobs: what else a group may hold ----
 *
 * Jobs run at the outermost GroupEnd, or at once when no group is open. They run in threads of
 * their own when there are several or a communicator is non-blocking. tt_job_X() returns what
 * ncclCommX() returns. Arguments were checked by the caller. */

struct tt_comm_request;

/* Initialise the communicator. *newcomm is set at once, before the init has run.
 * runs_now  run the init in this call, whatever the mode; *newcomm is set after it, and after a
 *           failure the communicator is freed
 * The request's ids are copied; its config was read by tt_comm_alloc(). */
ncclResult_t tt_job_init(struct tt_comm *comm, const struct tt_comm_request *request, bool runs_now,
                         ncclComm_t *newcomm);
/* An init or grow with this request was refused with `rc` before it joined its bootstrap: tell the
 * root, so that no rank waits for this one. The caller may try again. Returns rc. */
ncclResult_t tt_init_refused(const struct tt_comm_request *request, ncclResult_t rc);
/* Its job never ran; with `rc` if it was ended, ncclSuccess if its group was refused. */
void tt_init_dropped(const struct tt_comm_request *request, ncclResult_t rc);
/* The same for a new rank whose id belongs to no grow: the process that made the id looks for the
 * grow that waits for this rank. */
ncclResult_t tt_grow_refused_id(const struct tt_comm_request *request, ncclResult_t rc);
struct tt_child {           /* of a Split or Shrink */
    struct tt_comm *parent; /* borrowed */
    struct tt_comm *comm;   /* allocated; owned by the job; NULL: this rank has no part */
    ncclComm_t *newcomm;    /* the caller's; set when the child is made */
    int color, key;         /* split */
    const int *exclude;     /* shrink: copied */
    int nexclude, flags;
};
ncclResult_t tt_job_split(const struct tt_child *child);
ncclResult_t tt_job_shrink(const struct tt_child *child);
/* parent NULL: a new rank. request->ids NULL: another rank made the id and sends it. */
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
/* Free a communicator that was never handed out, with its plan and registry. Accepts NULL. */
void tt_comm_dispose(struct tt_comm *comm);
/* The communicator's registry of memory, which it owns; made at first use.
 * Errors: ncclSystemError (out of memory). */
ncclResult_t tt_comm_registry(struct tt_comm *comm, struct tt_registry **registry_out);
