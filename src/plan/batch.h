/* Groups of messages, or of small collectives, whose work is kept. Private to the room. */
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

struct tt_batch_call { /* what a call is bound for */
    size_t count;      /* these in the order of struct tt_task: compared as few words */
    int32_t func;
    ncclDataType_t type;
    ncclRedOp_t op;
    int32_t peer; /* or root */
    size_t bytes;
    uint32_t reduction; /* type and operator of a collective */
    /* of a kept one */
    enum { TT_PART_BOTH, TT_PART_IN, TT_PART_OUT } part; /* one: the other is another call's */
    struct tt_buffers *buffers;                          /* of its frame; what is compared: */
    const void *const *in;                               /* its parts, or those of `none` */
    void *const *out;
    int nsame; /* so many of the same function come from here on */
    size_t in_bytes, out_bytes;
};

struct tt_batch {
    uint64_t hash;
    int ncalls, nframes;
    struct tt_batch_call *calls; /* owned; in the order of the group */
    struct tt_buffers *buffers;  /* owned; of each frame, and one that no frame has */
    struct tt_buffers none;      /* NULL */
    int first_own;               /* frame: from here on copies within this rank */
    struct tt_looked looked;     /* at buffers */
    bool repeats;                /* calls determine the frames: tt_batch_accepts() */
    bool moved;                  /* buffers are others than the work has */
    struct tt_batch *next;       /* launched after this one; borrowed from the plan; NULL: none */
    struct tt_work *work;        /* owned; NULL: the entry is empty, or */
    bool refused;                /* these are no flat list */
};

/* The work of a group like this one that was launched before, idle and with this group's buffers;
 * the plan's. NULL: the group is to be bound. conn: TT_CONN_P2P messages, TT_CONN_COLL collectives,
 * by next_same_kind. hot */
struct tt_work *tt_batch_find(struct tt_plan *plan, struct tt_group_call *first,
                              enum tt_conn_index conn);
/* Asked after tt_batch_find() had none: collectives like these are not to become one work. They
 * were no flat list, one reads what another writes, one is none to be kept, or there is no room
 * now. */
bool tt_batch_refuses(struct tt_plan *plan, const struct tt_group_call *first);
/* Remember of collectives like these that they cannot be one work. */
void tt_batch_refuse(struct tt_plan *plan, const struct tt_group_call *first);
/* Keep a group that was just bound: *work_out is to be submitted and stays the plan's; NULL when it
 * is not kept: what calls need that a profiler or a capture looks at, and collectives that are not
 * small or of which one reads what an earlier one writes. Errors: ncclSystemError (out of memory).
 */
ncclResult_t tt_batch_keep(struct tt_plan *plan, struct tt_group_call *first,
                           const struct tt_work_spec *spec, struct tt_work **work_out);
/* End what is kept. The calls stay: an open group of another thread may be compared with them. */
void tt_batches_fini(struct tt_plan *plan);
/* Free them, when nobody holds the plan. */
void tt_batches_free(struct tt_plan *plan);

/* ---- groups that come again: their calls are compared as they come ---- */

/* The group just launched was one batch and nothing else: the next time, the same one is expected
 * after the one before. */
void tt_batch_follow(struct tt_plan *plan);
/* A group begins: plan->repeat is the batch that came next the last time, or NULL. hot */
void tt_batch_foresee(struct tt_plan *plan);
/* Is it this call, with the buffers that were noted last? hot */
static inline bool tt_batch_same(const struct tt_batch_call *call, const struct tt_task *task)
{
    return task->count == call->count && (int32_t)task->func == call->func &&
           task->type == call->type && task->op == call->op && task->root == call->peer &&
           task->in == *call->in && task->out == *call->out && !task->options;
}
/* Is the call number k of the batch this one, but for the buffers? Then those are noted. hot */
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
/* Launch plan->repeat with the buffers that were noted; all its calls came, on that stream. False
 * when the group has to be looked at: nothing was done. hot */
bool tt_batch_launch(struct tt_plan *plan, struct CUstream_st *stream, ncclResult_t *rc_out);
/* The call number k of plan->repeat, as it came. */
struct tt_task tt_batch_task(const struct tt_plan *plan, int k, struct CUstream_st *stream);
/* The group was another one after all. */
void tt_batch_misjudged(struct tt_plan *plan);

/* The k-th send of this rank to itself and the k-th receive; send NULL: no more. Pairs are complete
 * where tt_messages_check() said so. */
struct tt_own_pair {
    struct tt_group_call *send, *recv;
};
struct tt_own_pair tt_own_pair_first(struct tt_group_call *first, int rank);
struct tt_own_pair tt_own_pair_next(const struct tt_own_pair *pair, int rank);

/* ---- side_by_side.c ---- */

/* Report the calls of a group to the race checker. Under tuttiHostChecks(). */
void tt_group_look(const struct tt_plan *plan, const struct tt_group_call *first,
                   struct CUstream_st *stream);
/* The same of calls on several communicators and one stream; plans by next_in_group. */
void tt_group_look_across(const struct tt_plan *plans);
