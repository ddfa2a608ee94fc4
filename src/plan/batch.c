/* Groups of sends and receives that were launched before: their work is kept and only gets new
 * buffers. An entry serves a group whose calls are the same in the same order, but for buffers.
 * Groups with exchanges in them, or that a profiler or a capture looks at, are bound each time. */
#include "plan/batch.h"

#include "base/error.h"
#include "base/mem.h"
#include "plan/plan_state.h"

#include <stdlib.h>

enum { CALLS_MOST = 1024 }; /* of a kept group */

struct tt_batch_call { /* what a message is bound for */
    size_t bytes;
    int32_t func, peer;
};

struct tt_batch {
    uint64_t hash;
    int ncalls, nframes;
    struct tt_batch_call *calls; /* owned; in the order of the group */
    struct tt_buffers *buffers;  /* owned; of each frame */
    struct tt_work *work;        /* owned; NULL: the entry is empty */
};

static struct tt_batch_call call_of(const struct tt_task *task)
{
    return (struct tt_batch_call){.bytes = task->count * tt_type_bytes(task->type),
                                  .func = (int32_t)task->func,
                                  .peer = task->root};
}

/* ---- pairs within this rank ---- */

static struct tt_group_call *next_own(struct tt_group_call *node, enum tt_func func, int rank)
{
    while (node && (node->task.func != func || node->task.root != rank))
        node = node->next_message;
    return node;
}

struct tt_own_pair tt_own_pair_first(struct tt_group_call *first, int rank)
{
    return (struct tt_own_pair){next_own(first, TT_FUNC_SEND, rank),
                                next_own(first, TT_FUNC_RECV, rank)};
}

struct tt_own_pair tt_own_pair_next(const struct tt_own_pair *pair, int rank)
{
    return (struct tt_own_pair){next_own(pair->send->next_message, TT_FUNC_SEND, rank),
                                next_own(pair->recv->next_message, TT_FUNC_RECV, rank)};
}

/* ---- entries ---- */

/* The entry for a group; NULL when it is none to be kept. */
static struct tt_batch *batch_entry(struct tt_plan *plan, const struct tt_group_call *first,
                                    uint64_t *hash_out, int *ncalls_out)
{
    uint64_t hash = 0x243f6a8885a308d3ull;
    int ncalls = 0;
    for (const struct tt_group_call *node = first; node; node = node->next_message, ncalls++) {
        if (node->mask || !tt_func_is_message(node->task.func) || ncalls == CALLS_MOST) return NULL;
        const struct tt_batch_call call = call_of(&node->task);
        hash = (hash ^ call.bytes) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
        hash = (hash ^ (uint64_t)call.func << 32 ^ (uint32_t)call.peer) * 0x9e3779b97f4a7c15ull;
    }
    if (!plan->batches) plan->batches = tt_calloc(TT_BATCHES, sizeof(struct tt_batch));
    *hash_out = hash;
    *ncalls_out = ncalls;
    return plan->batches ? &plan->batches[(hash >> 32) % TT_BATCHES] : NULL;
}

/* Same calls? Their buffers go to the entry, frame by frame as messages.c makes them: the messages
 * to others in the order of the calls, then the pairs within this rank. */
static bool batch_serves(struct tt_batch *batch, const struct tt_plan *plan,
                         struct tt_group_call *first)
{
    const struct tt_batch_call *call = batch->calls;
    int frame = 0, rank = plan->comm->member.rank;
    for (const struct tt_group_call *node = first; node; node = node->next_message, call++) {
        const struct tt_batch_call own = call_of(&node->task);
        if (own.bytes != call->bytes || own.func != call->func || own.peer != call->peer)
            return false;
        if (own.peer != rank)
            batch->buffers[frame++] = (struct tt_buffers){node->task.in, node->task.out};
    }
    struct tt_own_pair pair = tt_own_pair_first(first, rank);
    for (; pair.send && pair.recv; pair = tt_own_pair_next(&pair, rank)) {
        const void *in = pair.send->task.in;
        void *out = pair.recv->task.out;
        if (call_of(&pair.send->task).bytes == 0) continue;
        if (in == out || frame == batch->nframes) return false; /* nothing to copy this time */
        batch->buffers[frame++] = (struct tt_buffers){in, out};
    }
    return frame == batch->nframes;
}

struct tt_work *tt_batch_find(struct tt_plan *plan, struct tt_group_call *first)
{
    uint64_t hash = 0;
    int ncalls = 0;
    struct tt_batch *batch = batch_entry(plan, first, &hash, &ncalls);
    if (!batch || !batch->work || !batch->calls || batch->hash != hash || batch->ncalls != ncalls ||
        !tt_work_idle(batch->work) || !batch_serves(batch, plan, first))
        return NULL;
    tt_work_rebind_each(batch->work, batch->buffers);
    return batch->work;
}

static void batch_fini(struct tt_batch *batch)
{
    if (batch->work && tt_work_idle(batch->work)) tt_work_destroy(batch->work);
    free(batch->calls);
    free(batch->buffers);
    *batch = (struct tt_batch){.work = NULL};
}

ncclResult_t tt_batch_keep(struct tt_plan *plan, const struct tt_group_call *first,
                           const struct tt_work_spec *spec, struct tt_work **work_out)
{
    uint64_t hash = 0;
    int ncalls = 0;
    struct tt_batch *batch = spec->captured ? NULL : batch_entry(plan, first, &hash, &ncalls);
    *work_out = NULL;
    if (!batch || (batch->work && !tt_work_idle(batch->work))) return ncclSuccess;
    batch_fini(batch);
    batch->hash = hash;
    batch->ncalls = ncalls;
    batch->nframes = spec->nframes;
    batch->calls = tt_calloc((size_t)ncalls, sizeof(*batch->calls));
    batch->buffers = tt_calloc((size_t)spec->nframes, sizeof(*batch->buffers));
    if (!batch->calls || !batch->buffers) {
        batch_fini(batch);
        return tt_fail(ncclSystemError, "messages: out of memory for a group of %d", ncalls);
    }
    int k = 0;
    for (const struct tt_group_call *node = first; node; node = node->next_message)
        batch->calls[k++] = call_of(&node->task);
    struct tt_work_spec kept = *spec;
    kept.kept = true;
    ncclResult_t rc = tt_work_create(&kept, &batch->work);
    if (rc) {
        batch_fini(batch);
        return rc;
    }
    *work_out = batch->work;
    return ncclSuccess;
}

void tt_batches_fini(struct tt_plan *plan)
{
    for (int k = 0; plan->batches && k < TT_BATCHES; k++)
        batch_fini(&plan->batches[k]);
    free(plan->batches);
    plan->batches = NULL;
}
