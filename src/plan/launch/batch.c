/* Groups of sends and receives, and groups of small collectives, that were launched before: their
 * work is kept and only gets new buffers. An entry serves a group whose calls are the same in the
 * same order, but for buffers. Groups with exchanges in them, or that a capture looks at, are bound
 * each time; those that a profiler sees have an entry of their own. */
#include "plan/launch/batch.h"

#include "base/error.h"
#include "base/mem.h"
#include "device/device.h"
#include "plan/launch/launch_cache.h"
#include "plan/plan_state.h"
#include "plugin/profiler/nvtx.h"
#include "plugin/profiler/profiler.h"

#include <stdlib.h>

enum { CALLS_MOST = 1024 }; /* of a kept group */

static struct tt_batch_call call_of(const struct tt_task *task)
{
    bool message = tt_func_is_message(task->func);
    return (struct tt_batch_call){.bytes = task->count * tt_type_bytes(task->type),
                                  .count = task->count,
                                  .type = task->type,
                                  .op = task->op,
                                  .func = (int32_t)task->func,
                                  .peer = task->root,
                                  .reduction = message ? 0 : (uint32_t)task->type << 8 | task->op};
}

/* ---- pairs within this rank ---- */

static struct tt_group_call *next_own(struct tt_group_call *node, enum tt_func func, int rank)
{
    while (node && (node->task.func != func || node->task.root != rank))
        node = node->next_same_kind;
    return node;
}

struct tt_own_pair tt_own_pair_first(struct tt_group_call *first, int rank)
{
    return (struct tt_own_pair){next_own(first, TT_FUNC_SEND, rank),
                                next_own(first, TT_FUNC_RECV, rank)};
}

struct tt_own_pair tt_own_pair_next(const struct tt_own_pair *pair, int rank)
{
    return (struct tt_own_pair){next_own(pair->send->next_same_kind, TT_FUNC_SEND, rank),
                                next_own(pair->recv->next_same_kind, TT_FUNC_RECV, rank)};
}

/* ---- entries ---- */

static bool is_keepable(const struct tt_group_call *node, enum tt_conn_index conn)
{
    const struct tt_task *task = &node->task;
    if (conn == TT_CONN_P2P) return tt_func_is_message(task->func);
    return !node->logged && !task->options && task->op < ncclNumOps;
}

struct batch_key {
    uint64_t hash;
    int ncalls;
    bool watched; /* by a profiler */
};

static bool has_key(const struct tt_batch *batch, const struct batch_key *key)
{
    return batch->hash == key->hash && batch->ncalls == key->ncalls &&
           batch->watched == key->watched;
}

/* The entry for a group; NULL when it is none to be kept. */
static struct tt_batch *batch_entry(struct tt_plan *plan, const struct tt_group_call *first,
                                    enum tt_conn_index conn, struct batch_key *key_out)
{
    uint64_t hash = 0x243f6a8885a308d3ull;
    uint32_t masks = 0;
    int ncalls = 0;
    for (const struct tt_group_call *node = first; node; node = node->next_same_kind, ncalls++) {
        if (!is_keepable(node, conn) || ncalls == CALLS_MOST) return NULL;
        const struct tt_batch_call call = call_of(&node->task);
        hash = (hash ^ call.bytes) * 0x9e3779b97f4a7c15ull;
        hash ^= hash >> 29;
        hash ^= (uint64_t)call.func << 32 ^ (uint64_t)call.reduction << 40 ^ (uint32_t)call.peer;
        hash *= 0x9e3779b97f4a7c15ull;
        masks |= node->mask;
    }
    if (masks) hash ^= 0x13198a2e03707344ull;
    if (!plan->batches) plan->batches = tt_calloc(TT_BATCHES, sizeof(struct tt_batch));
    *key_out = (struct batch_key){hash, ncalls, masks != 0};
    return plan->batches ? &plan->batches[(hash >> 32) % TT_BATCHES] : NULL;
}

/* A collective reads what an earlier one writes: they are not to overlap. */
static bool reads_result(const struct tt_batch *batch)
{
    const char *lo = NULL, *hi = NULL; /* around all results so far */
    for (int k = 0; k < batch->ncalls; k++) {
        const struct tt_batch_call *call = &batch->calls[k];
        const char *in = batch->buffers[k].in, *out = batch->buffers[k].out;
        bool near = hi && call->in_bytes && in < hi && in + call->in_bytes > lo;
        for (int j = 0; near && j < k; j++) {
            const char *result = batch->buffers[j].out;
            if (in < result + batch->calls[j].out_bytes && result < in + call->in_bytes)
                return true;
        }
        if (call->out_bytes == 0) continue;
        if (!hi || out < lo) lo = out;
        if (!hi || out + call->out_bytes > hi) hi = out + call->out_bytes;
    }
    return false;
}

/* Same calls? Their buffers go to the entry, frame by frame: collectives in the order of the calls;
 * messages as messages.c makes them, those to others in the order of the calls, then the pairs
 * within this rank. */
static bool batch_serves(struct tt_batch *batch, const struct tt_plan *plan,
                         struct tt_group_call *first, enum tt_conn_index conn)
{
    const struct tt_batch_call *call = batch->calls;
    int frame = 0, rank = conn == TT_CONN_P2P ? plan->comm->member.rank : -2; /* no root's either */
    batch->moved = true;
    for (struct tt_group_call *node = first; node; node = node->next_same_kind, call++) {
        const struct tt_batch_call own = call_of(&node->task);
        if (own.bytes != call->bytes || own.func != call->func || own.peer != call->peer ||
            own.reduction != call->reduction)
            return false;
        if (own.peer != rank)
            batch->buffers[frame++] = (struct tt_buffers){node->task.in, node->task.out};
        if (batch->watched) node->choice = call->choice;
    }
    if (conn == TT_CONN_COLL) return !reads_result(batch);
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

/* Memory was freed since: a buffer may be gone. */
static bool all_live(struct tt_batch *batch, const struct tt_plan *plan,
                     const struct tt_group_call *first)
{
    const uint64_t frees = atomic_load_explicit(plan->frees, memory_order_relaxed);
    if (batch->looked.frees == frees) return true;
    for (const struct tt_group_call *node = first; node; node = node->next_same_kind) {
        if (!tt_extent_is_live(&node->task)) return false;
    }
    tt_looked_note(&batch->looked, frees);
    return true;
}

struct tt_work *tt_batch_find(struct tt_plan *plan, struct tt_group_call *first,
                              enum tt_conn_index conn)
{
    struct batch_key key;
    struct tt_batch *batch = batch_entry(plan, first, conn, &key);
    if (!batch || !batch->work || !batch->calls || !has_key(batch, &key) ||
        !tt_work_idle(batch->work) || !all_live(batch, plan, first) ||
        !batch_serves(batch, plan, first, conn))
        return NULL;
    tt_work_rebind_each(batch->work, batch->buffers);
    plan->used = batch;
    return batch->work;
}

bool tt_batch_refuses(struct tt_plan *plan, const struct tt_group_call *first)
{
    struct batch_key key;
    const struct tt_batch *batch = batch_entry(plan, first, TT_CONN_COLL, &key);
    if (!batch || (batch->work && !tt_work_idle(batch->work))) return true;
    /* with a work that was not found: their buffers do not let them overlap */
    return (batch->refused || batch->work) && has_key(batch, &key);
}

static void batch_fini(struct tt_batch *batch)
{
    if (batch->work && tt_work_idle(batch->work)) tt_work_destroy(batch->work);
    free(batch->calls);
    free(batch->buffers);
    *batch = (struct tt_batch){.work = NULL};
}

/* ---- groups that come again ---- */

/* Those of the pairs within this rank, which come last. */
static void find_pairs(struct tt_batch *batch, struct tt_group_call *first, int rank)
{
    int frame = batch->first_own;
    struct tt_own_pair pair = tt_own_pair_first(first, rank);
    for (; pair.send && pair.recv; pair = tt_own_pair_next(&pair, rank)) {
        struct tt_batch_call *send = &batch->calls[pair.send->first_frame];
        struct tt_batch_call *recv = &batch->calls[pair.recv->first_frame];
        send->part = TT_PART_IN;
        recv->part = TT_PART_OUT;
        if (send->bytes == 0) continue;
        if (pair.send->task.in == pair.recv->task.out) {
            batch->repeats = false; /* it has no frame */
        } else {
            send->buffers = recv->buffers = &batch->buffers[frame++];
        }
    }
}

/* Note which frame has the buffers of each call: batch_serves() call by call. */
static void find_frames(struct tt_batch *batch, const struct tt_plan *plan,
                        struct tt_group_call *first, enum tt_conn_index conn)
{
    int frame = 0, k = 0, rank = conn == TT_CONN_P2P ? plan->comm->member.rank : -2;
    /* each call of a group has its range, or its events */
    batch->repeats = !tt_nvtx_on() && !batch->watched;
    for (struct tt_group_call *node = first; node; node = node->next_same_kind, k++) {
        int own = node->task.root == rank ? batch->nframes : frame++;
        batch->calls[k].buffers = &batch->buffers[own];
        node->first_frame = k;
    }
    batch->first_own = frame;
    if (conn == TT_CONN_P2P) find_pairs(batch, first, rank);
    for (k = 0; k < batch->ncalls; k++) {
        struct tt_batch_call *call = &batch->calls[k];
        call->in = call->part == TT_PART_OUT ? &batch->none.in : &call->buffers->in;
        call->out = call->part == TT_PART_IN ? &batch->none.out : &call->buffers->out;
    }
}

void tt_batch_follow(struct tt_plan *plan)
{
    if (plan->latest) plan->latest->next = plan->used;
    plan->latest = plan->used;
}

/* hot */
void tt_batch_predict(struct tt_plan *plan)
{
    plan->repeat = NULL;
    if (!plan->latest || plan->checks_pointers || tt_prof_mask(plan->comm->profiler)) return;
    struct tt_batch *batch = plan->latest->next;
    if (batch && batch->work && batch->repeats &&
        batch->looked.frees == atomic_load_explicit(plan->frees, memory_order_relaxed))
        plan->repeat = batch;
}

struct tt_task tt_batch_task(const struct tt_plan *plan, int k, struct CUstream_st *stream)
{
    const struct tt_batch_call *call = &plan->repeat->calls[k];
    const struct tt_buffers *buffers = call->buffers;
    return (struct tt_task){.func = (enum tt_func)call->func,
                            .in = call->part == TT_PART_OUT ? NULL : buffers->in,
                            .out = call->part == TT_PART_IN ? NULL : buffers->out,
                            .count = call->count,
                            .type = call->type,
                            .op = call->op,
                            .root = call->peer,
                            .comm = plan->comm,
                            .stream = stream};
}

/* Do the buffers let the calls be what the work does? */
static bool fits(const struct tt_batch *batch)
{
    if (!tt_func_is_message((enum tt_func)batch->calls[0].func)) return !reads_result(batch);
    for (int f = batch->first_own; f < batch->nframes; f++) {
        if (batch->buffers[f].in == batch->buffers[f].out) return false; /* nothing to copy */
    }
    return true;
}

/* hot */
bool tt_batch_launch(struct tt_plan *plan, struct CUstream_st *stream, ncclResult_t *rc_out)
{
    struct tt_batch *batch = plan->repeat;
    const int ncalls = batch->ncalls;
    if (!tt_work_idle(batch->work) || (batch->moved && !fits(batch)) ||
        tt_prof_mask(plan->comm->profiler))
        return false;
    if (tt_stream_is_default(stream) && tuttiHostGetDevice() != plan->comm->member.device)
        return false;
    if (batch->moved) tt_work_rebind_each(batch->work, batch->buffers);
    enum tt_claim claim = tt_exec_launch(batch->work, stream, rc_out);
    batch->moved = claim != TT_CLAIM_TAKEN; /* exec may change what it queues */
    if (claim > TT_CLAIM_BUSY) return false;
    plan->issued += (uint64_t)ncalls;
    for (int k = 0; k < ncalls; k += batch->calls[k].nsame)
        tt_count_calls(plan, (enum tt_func)batch->calls[k].func, (uint64_t)batch->calls[k].nsame);
    plan->latest = batch;
    return true;
}

void tt_batch_mispredicted(struct tt_plan *plan)
{
    if (plan->latest) plan->latest->next = NULL;
    plan->repeat = NULL;
}

/* ---- keeping ---- */

void tt_batch_refuse(struct tt_plan *plan, const struct tt_group_call *first)
{
    struct batch_key key;
    struct tt_batch *batch = batch_entry(plan, first, TT_CONN_COLL, &key);
    if (!batch || (batch->work && !tt_work_idle(batch->work))) return;
    batch_fini(batch);
    batch->hash = key.hash;
    batch->ncalls = key.ncalls;
    batch->watched = key.watched;
    batch->refused = true;
}

ncclResult_t tt_batch_keep(struct tt_plan *plan, struct tt_group_call *first,
                           const struct tt_work_spec *spec, struct tt_work **work_out)
{
    struct batch_key key = {0};
    int k = 0;
    enum tt_conn_index conn = (enum tt_conn_index)spec->frames[0].conn;
    struct tt_batch *batch = spec->captured ? NULL : batch_entry(plan, first, conn, &key);
    *work_out = NULL;
    if (!batch || (batch->work && !tt_work_idle(batch->work))) return ncclSuccess;
    batch_fini(batch);
    const int ncalls = key.ncalls;
    batch->hash = key.hash;
    batch->ncalls = ncalls;
    batch->watched = key.watched;
    batch->nframes = spec->nframes;
    batch->looked.frees = atomic_load_explicit(plan->frees, memory_order_relaxed);
    batch->calls = tt_calloc((size_t)ncalls, sizeof(*batch->calls));
    batch->buffers = tt_calloc((size_t)spec->nframes + 1, sizeof(*batch->buffers));
    if (!batch->calls || !batch->buffers) {
        batch_fini(batch);
        return tt_fail(ncclSystemError, "messages: out of memory for a group of %d", ncalls);
    }
    for (const struct tt_group_call *node = first; node; node = node->next_same_kind, k++) {
        struct tt_batch_call *call = &batch->calls[k];
        *call = call_of(&node->task);
        call->choice = node->choice;
        tt_buffer_bytes(&node->task, &call->in_bytes, &call->out_bytes);
    }
    for (k = ncalls - 1; k >= 0; k--) {
        bool more = k + 1 < ncalls && batch->calls[k + 1].func == batch->calls[k].func;
        batch->calls[k].nsame = more ? batch->calls[k + 1].nsame + 1 : 1;
    }
    find_frames(batch, plan, first, conn);
    struct tt_work_spec kept = *spec;
    kept.kept = true;
    ncclResult_t rc = tt_work_create(&kept, &batch->work);
    if (rc) {
        batch_fini(batch);
        return rc;
    }
    if (conn == TT_CONN_COLL && !tt_work_is_flat(batch->work)) {
        tt_work_destroy(batch->work);
        batch->work = NULL;
        batch->refused = true;
    }
    if (conn == TT_CONN_P2P || (batch->work && batch_serves(batch, plan, first, conn)))
        *work_out = batch->work;
    return ncclSuccess;
}

void tt_batches_fini(struct tt_plan *plan)
{
    for (int k = 0; plan->batches && k < TT_BATCHES; k++) {
        struct tt_batch *batch = &plan->batches[k];
        if (batch->work && tt_work_idle(batch->work)) tt_work_destroy(batch->work);
        batch->work = NULL;
    }
}

void tt_batches_free(struct tt_plan *plan)
{
    for (int k = 0; plan->batches && k < TT_BATCHES; k++) {
        free(plan->batches[k].calls);
        free(plan->batches[k].buffers);
    }
    free(plan->batches);
    plan->batches = plan->latest = plan->used = plan->repeat = NULL;
}
