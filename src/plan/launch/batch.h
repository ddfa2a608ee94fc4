/* Works that are kept for groups of messages, or of small collectives, which the program launches
 * again and again. Private to the room. */
#pragma once

#include "nccl.h"
#include "plan/plan_state.h"

#include <stdbool.h>

struct CUstream_st;
struct tt_task;
struct tt_group_call;
struct tt_plan;
struct tt_work;
struct tt_work_spec;

struct tt_batch_call { /* one call of a batch */
    size_t count;      /* arguments, in the order of struct tt_task, so that they compare fast */
    int32_t func;
    ncclDataType_t type;
    ncclRedOp_t op;
    int32_t peer; /* or root */
    size_t bytes;
    uint32_t reduction; /* type and operator of a collective */
    /* when the batch is kept: */
    enum { TT_PART_BOTH, TT_PART_IN, TT_PART_OUT } part; /* which buffers of the frame it has */
    struct tt_buffers *buffers;                          /* of its frame */
    const void *const *in; /* what a call's buffers are compared with: parts of `buffers`, or
                              of `none` */
    void *const *out;
    int nsame;                    /* number of calls of the same function from this one on */
    struct tt_tune_choice choice; /* of a collective, for its events */
    size_t in_bytes, out_bytes;
};

struct tt_batch {
    uint64_t hash;
    int ncalls, nframes;
    bool watched;                /* a profiler sees its calls */
    struct tt_batch_call *calls; /* owned; in the order of the group */
    struct tt_buffers *buffers;  /* owned; of each frame, and one that no frame has */
    struct tt_buffers none;      /* NULL */
    int first_own;               /* frame: from here on copies within this rank */
    struct tt_looked looked;     /* at buffers */
    bool repeats;                /* calls determine the frames: tt_batch_accepts() */
    bool moved;                  /* `buffers` differ from those that the work has */
    struct tt_batch *next;       /* launched after this one; borrowed from the plan; NULL: none */
    struct tt_work *work;        /* owned; NULL: the entry is empty, or `refused` */
    bool refused;                /* such calls did not form a flat list */
};

/* Find the kept work of an equal group that was launched before, and give it this group's buffers.
 * Returns the work, which the plan owns; NULL: there is none that is idle, so bind the group.
 * first  calls of the group, linked by next_same_kind
 * conn   TT_CONN_P2P: messages; TT_CONN_COLL: collectives. hot */
struct tt_work *tt_batch_find(struct tt_plan *plan, struct tt_group_call *first,
                              enum tt_conn_index conn);
/* True when collectives like these must not become one work: earlier ones did not form a flat list,
 * one reads what another writes, one must not be kept, or there is no free entry. Called after
 * tt_batch_find() returned NULL. */
bool tt_batch_refuses(struct tt_plan *plan, const struct tt_group_call *first);
/* Remember that collectives like these cannot be one work. */
void tt_batch_refuse(struct tt_plan *plan, const struct tt_group_call *first);
/* Keep a group that was just bound, for the next time.
 * *work_out  to be submitted; owned by the plan. NULL when the group is not kept: a capture sees
 *            its calls, or collectives are not small, or one reads what an earlier one writes
 * Errors: ncclSystemError (out of memory). */
ncclResult_t tt_batch_keep(struct tt_plan *plan, struct tt_group_call *first,
                           const struct tt_work_spec *spec, struct tt_work **work_out);
/* Destroy the kept works. Their calls stay, since another thread's open group may be compared with
 * them. */
void tt_batches_fini(struct tt_plan *plan);
/* Free the calls too, when the plan has no hold. */
void tt_batches_free(struct tt_plan *plan);

/* ---- groups that come again: their calls are compared as they come ---- */

/* Note that the group just launched was exactly one batch: it will be expected after the batch that
 * was launched before it. */
void tt_batch_follow(struct tt_plan *plan);
/* At the start of a group, predict which batch it will be, in plan->repeat: the one that followed
 * the latest batch the last time, or NULL. hot */
void tt_batch_predict(struct tt_plan *plan);
/* True when the task is that call with the same buffers as the last time. hot */
static inline bool tt_batch_same(const struct tt_batch_call *call, const struct tt_task *task)
{
    return task->count == call->count && (int32_t)task->func == call->func &&
           task->type == call->type && task->op == call->op && task->root == call->peer &&
           task->in == *call->in && task->out == *call->out && !task->options;
}
/* True when the task is call number k of the batch, apart from its buffers, which are noted. hot */
static inline bool tt_batch_accepts(struct tt_batch *batch, int k, const struct tt_task *task)
{
    const struct tt_batch_call *call = &batch->calls[k];
    if (k >= batch->ncalls || task->count != call->count || (int32_t)task->func != call->func ||
        task->type != call->type || task->op != call->op || task->root != call->peer ||
        task->options)
        return false;
    if ((!task->in && call->in_bytes) || (!task->out && call->out_bytes)) return false;
    if (task->in == task->out && task->func == TT_FUNC_ALLTOALL) return false; /* in_place.c */
    struct tt_buffers *buffers = call->buffers;
    if (call->part != TT_PART_OUT && buffers->in != task->in) {
        buffers->in = task->in;
        batch->moved = true;
    }
    if (call->part != TT_PART_IN && buffers->out != task->out) {
        buffers->out = task->out;
        batch->moved = true;
    }
    return true;
}
/* Launch plan->repeat with the buffers that were noted, after all its calls came on that stream.
 * False: nothing was done, launch the group in the usual way. hot */
bool tt_batch_launch(struct tt_plan *plan, struct CUstream_st *stream, ncclResult_t *rc_out);
/* Call number k of plan->repeat, with the buffers that were noted. */
struct tt_task tt_batch_task(const struct tt_plan *plan, int k, struct CUstream_st *stream);
/* Note that the group was not the expected one. */
void tt_batch_mispredicted(struct tt_plan *plan);

/* The k-th send of this rank to itself and the k-th receive; send NULL: no more. Pairs are complete
 * once tt_messages_check() has succeeded. */
struct tt_own_pair {
    struct tt_group_call *send, *recv;
};
struct tt_own_pair tt_own_pair_first(struct tt_group_call *first, int rank);
struct tt_own_pair tt_own_pair_next(const struct tt_own_pair *pair, int rank);

/* ---- side_by_side.c ---- */

/* Report the calls of a group to the race checker. Call it only when tuttiHostChecks(). */
void tt_group_look(const struct tt_plan *plan, const struct tt_group_call *first,
                   struct CUstream_st *stream);
/* The same for calls on several communicators and one stream; plans linked by next_in_group. */
void tt_group_look_across(const struct tt_plan *plans);
