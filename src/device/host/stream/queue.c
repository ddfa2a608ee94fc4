/* Claiming, queueing and running, and CUDA's order between the legacy default stream and the
 * blocking ones of its device.
 *
 * Legacy rules. An operation of the legacy stream runs after everything present in blocking
 * streams, and theirs after everything present in it. Both sides first take their sequence number
 * and look at each other then (sequentially consistent), so of two that come at once at least one
 * sees the other. A thread that finds something in its way while it holds an idle stream's
 * sequence number gives that up as an empty operation and queues; queueing on both sides is
 * serialised by a lock per device. So waits cannot form a cycle. */
#include "claim.h"

#include "device/host/heap/slab.h"

#include <linux/futex.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CHUNK_SLOTS = 36, CHUNK_BYTES = 4096, MAX_CHUNKS = 1 << 20, TURNS = 64 };

struct tt_host_chunk {
    uint32_t magic; /* of the slab; unused */
    struct tt_host_chunk *_Atomic next;
    struct tt_host_slot slots[CHUNK_SLOTS];
};
_Static_assert(sizeof(struct tt_host_chunk) <= CHUNK_BYTES, "a chunk fits a page");

/* ---- the legacy rules ---- */

static bool blocks_others(const struct CUstream_st *stream)
{
    return !tt_host_stream_idle(stream) ||
           atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
}

bool tt_host_stream_conflicts(const struct CUstream_st *stream)
{
    if (!stream->legacy) {
        const struct CUstream_st *legacy = atomic_load_explicit(
            &tt_host.streams.devices[stream->device].legacy, memory_order_seq_cst);
        return legacy && !tt_host_stream_idle(legacy);
    }
    const struct CUstream_st *other = tt_host_ordered_streams(stream->device);
    for (; other; other = other->next_ordered) {
        if (blocks_others(other)) return true;
    }
    return false;
}

/* Add where the stream ends, unless that is reached. *room: of positions; 0: none are there yet. */
static bool add_position(struct tt_host_positions **positions, size_t *room,
                         struct CUstream_st *stream)
{
    const struct tt_host_position end = {
        stream, atomic_load_explicit(&stream->line.tail, memory_order_seq_cst)};
    if (tt_host_position_reached(&end)) return true;
    if ((*positions)->count == *room) {
        size_t more = *room ? 2 * *room : 8;
        struct tt_host_positions *all =
            realloc(*positions, sizeof(**positions) + more * sizeof((*positions)->positions[0]));
        if (!all) return false;
        *positions = all;
        *room = more;
    }
    (*positions)->positions[(*positions)->count++] = end;
    return true;
}

/* What the next operation has to wait for, and the thread that asks for the stream itself, too. */
static int collect(struct CUstream_st *stream, bool itself,
                   struct tt_host_positions **positions_out)
{
    struct tt_host_positions *positions = calloc(1, sizeof(*positions));
    size_t room = 0;
    bool good = positions && (!itself || add_position(&positions, &room, stream));
    struct CUstream_st *other = stream->legacy ? tt_host_ordered_streams(stream->device)
                                               : tt_host_legacy_stream(stream->device);
    for (; good && other;
         other = atomic_load_explicit(&other->next_ordered, memory_order_seq_cst)) {
        good = add_position(&positions, &room, other);
    }
    if (!good) {
        free(positions);
        return TT_HOST_OUT_OF_MEMORY;
    }
    *positions_out = positions;
    return TT_HOST_OK;
}

static int refuse_captured(const struct CUstream_st *legacy)
{
    int rc = TT_HOST_OK;
    struct CUstream_st *other = tt_host_ordered_streams(legacy->device);
    for (; other; other = other->next_ordered) {
        if (!atomic_load_explicit(&other->capture, memory_order_relaxed)) continue;
        atomic_load_explicit(&tt_host.captures.ops, memory_order_acquire)->invalidate(other);
        rc = TT_HOST_CAPTURE_IMPLICIT;
    }
    return rc;
}

int tt_host_legacy_ends(struct CUstream_st *legacy, struct tt_host_positions **positions_out)
{
    int rc = refuse_captured(legacy);
    return rc ? rc : collect(legacy, true, positions_out);
}

/* ---- claiming ---- */

void tt_host_wake(struct CUstream_st *stream)
{
    atomic_fetch_add_explicit(&stream->wake_count, 1, memory_order_release);
    syscall(SYS_futex, &stream->wake_count, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

static int publish_parked(struct CUstream_st *stream)
{
    uint64_t seq = atomic_load_explicit(&stream->line.done, memory_order_relaxed) + 1;
    stream->parked.after = NULL;
    atomic_store_explicit(&stream->parked.seq, seq, memory_order_release);
    tt_host_runnable_set(stream);
    return TT_HOST_OK;
}

int tt_host_stream_park(struct CUstream_st *stream, const struct tt_host_op *op)
{
    stream->parked.op = *op;
    return publish_parked(stream);
}

int tt_host_stream_park_call(struct CUstream_st *stream, void (*fn)(void *), void *arg)
{
    stream->parked.op.kind = TT_HOST_OP_CALL; /* the rest of the union may stay as it was */
    stream->parked.op.call.fn = fn;
    stream->parked.op.call.arg = arg;
    return publish_parked(stream);
}

/* ---- appending ---- */

static struct tt_host_chunk *new_chunk(struct CUstream_st *stream)
{
    struct tt_host_chunk *chunk =
        atomic_exchange_explicit(&stream->spare, NULL, memory_order_acquire);
    if (!chunk) chunk = tt_host_slab_take(&tt_host.chunks, CHUNK_BYTES, MAX_CHUNKS);
    if (chunk) atomic_store_explicit(&chunk->next, NULL, memory_order_relaxed);
    return chunk;
}

/* The next empty slot, or NULL. The stream's lock is held. */
static struct tt_host_slot *reserve(struct CUstream_st *stream)
{
    if (!stream->tail_chunk || stream->tail_index == CHUNK_SLOTS) {
        struct tt_host_chunk *chunk = new_chunk(stream);
        if (!chunk) return NULL;
        if (stream->tail_chunk) {
            atomic_store_explicit(&stream->tail_chunk->next, chunk, memory_order_release);
        } else {
            atomic_store_explicit(&stream->head, chunk, memory_order_release);
        }
        stream->tail_chunk = chunk;
        stream->tail_index = 0;
    }
    return &stream->tail_chunk->slots[stream->tail_index++];
}

/* Both locks are held, the order lock only for an ordered stream. */
static int fill(struct CUstream_st *stream, const struct tt_host_op *op,
                struct tt_host_position *position_out)
{
    int rc = TT_HOST_OK;
    struct tt_host_slot *slot = reserve(stream);
    if (!slot) return TT_HOST_OUT_OF_MEMORY;
    uint64_t seq = atomic_fetch_add_explicit(&stream->line.tail, 1, memory_order_seq_cst) + 1;
    slot->after = NULL;
    if (stream->ordered && tt_host_stream_conflicts(stream))
        rc = collect(stream, false, &slot->after);
    slot->op = *op;
    if (rc) { /* the sequence number is given and must come to its end */
        slot->op.kind = TT_HOST_OP_EMPTY;
    }
    atomic_store_explicit(&slot->seq, seq, memory_order_release);
    if (position_out) *position_out = (struct tt_host_position){stream, seq};
    return rc;
}

int tt_host_stream_append_at(struct CUstream_st *stream, const struct tt_host_op *op,
                             struct tt_host_position *position_out)
{
    pthread_mutex_t *order = stream->ordered ? tt_host_order_lock(stream->device) : NULL;
    int rc = stream->legacy ? refuse_captured(stream) : TT_HOST_OK;
    if (rc) return rc;
    if (order) pthread_mutex_lock(order);
    pthread_mutex_lock(&stream->lock);
    rc = fill(stream, op, position_out);
    pthread_mutex_unlock(&stream->lock);
    if (order) pthread_mutex_unlock(order);
    tt_host_runnable_set(stream);
    return rc;
}

int tt_host_stream_end_ordered(struct CUstream_st *stream, struct tt_host_position *position_out)
{
    static const struct tt_host_op empty = {.kind = TT_HOST_OP_EMPTY};
    if (tt_host_stream_conflicts(stream))
        return tt_host_stream_append_at(stream, &empty, position_out);
    uint64_t tail = atomic_load_explicit(&stream->line.tail, memory_order_seq_cst);
    *position_out = (struct tt_host_position){stream, tail};
    return TT_HOST_OK;
}

/* ---- running ---- */

/* The operation with this sequence number, or NULL while it is under way or not published yet. */
static struct tt_host_slot *head_slot(struct CUstream_st *stream, uint64_t seq)
{
    if (atomic_load_explicit(&stream->parked.seq, memory_order_acquire) == seq)
        return &stream->parked;
    struct tt_host_chunk *chunk = atomic_load_explicit(&stream->head, memory_order_acquire);
    if (chunk && stream->head_index == CHUNK_SLOTS) {
        struct tt_host_chunk *next = atomic_load_explicit(&chunk->next, memory_order_acquire);
        if (!next) return NULL;
        atomic_store_explicit(&stream->head, next, memory_order_relaxed);
        stream->head_index = 0;
        chunk = atomic_exchange_explicit(&stream->spare, chunk, memory_order_acq_rel);
        if (chunk) tt_host_slab_give(&tt_host.chunks, chunk);
        chunk = next;
    }
    if (!chunk) return NULL;
    struct tt_host_slot *slot = &chunk->slots[stream->head_index];
    return atomic_load_explicit(&slot->seq, memory_order_acquire) == seq ? slot : NULL;
}

/* True when the positions before it are reached; else *blocker_out is the first one that is not. */
static bool may_begin(struct tt_host_slot *slot, struct tt_host_position *blocker_out)
{
    for (size_t i = 0; slot->after && i < slot->after->count; i++) {
        if (tt_host_position_reached(&slot->after->positions[i])) continue;
        *blocker_out = slot->after->positions[i];
        return false;
    }
    if (slot->after) free(slot->after);
    slot->after = NULL;
    return true;
}

/* One step of the head. */
static enum tt_step run_head(struct CUstream_st *stream, uint64_t calls_upto,
                             struct tt_host_position *blocker_out)
{
    uint64_t seq = atomic_load_explicit(&stream->line.done, memory_order_acquire) + 1;
    struct tt_host_slot *slot = head_slot(stream, seq);
    if (!slot || !may_begin(slot, blocker_out)) return TT_STEP_WAIT;
    enum tt_step step = tt_host_op_step(&slot->op, seq <= calls_upto);
    if (step == TT_STEP_WAIT && slot->op.kind == TT_HOST_OP_WAIT) *blocker_out = slot->op.position;
    if (step != TT_STEP_DONE) return step;
    tt_host_op_drop(&slot->op);
    if (slot != &stream->parked) stream->head_index++;
    atomic_store_explicit(&slot->seq, 0, memory_order_relaxed);
    tt_host_stream_finish(stream, seq);
    return TT_STEP_DONE;
}

bool tt_host_stream_run(struct CUstream_st *stream, uint64_t calls_upto,
                        struct tt_host_position *blocker_out)
{
    bool did = false;
    uint32_t none = 0;
    if (tt_host_stream_idle(stream) ||
        atomic_load_explicit(&stream->running, memory_order_relaxed) != 0 ||
        !atomic_compare_exchange_strong_explicit(&stream->running, &none, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    for (int turn = 0; turn < TURNS && !tt_host_share_spent(); turn++) {
        enum tt_step step = run_head(stream, calls_upto, blocker_out);
        if (step != TT_STEP_WAIT) did = true;
        if (step != TT_STEP_DONE || tt_host_stream_idle(stream)) break;
    }
    atomic_store_explicit(&stream->running, 0, memory_order_release);
    if (atomic_load_explicit(&stream->life, memory_order_relaxed) == TT_HOST_LIFE_DYING)
        tt_host_stream_retire(stream);
    return did;
}
