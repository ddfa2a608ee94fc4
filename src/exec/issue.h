/* The lock under which a call takes its position on a stream and its sequence number in one step.
 * Otherwise a call of one thread could be first on a stream, and a graph launch of another thread
 * first in the issue queue: they would wait for each other. Private to the room. */
#pragma once

#include "exec/exec.h"

/* Wait for the lock, which another thread has, and take it. */
void tt_issue_await(struct tt_issue_queue *queue);

/* Take the lock; it is only held for short times. */
static inline void tt_issue_lock(struct tt_issue_queue *queue)
{
    if (atomic_exchange_explicit(&queue->issuing, 1, memory_order_acquire)) tt_issue_await(queue);
}

static inline void tt_issue_unlock(struct tt_issue_queue *queue)
{
    atomic_store_explicit(&queue->issuing, 0, memory_order_release);
}

/* Take the next sequence number. The caller holds the lock; other threads only read. */
static inline uint64_t tt_issue_number(struct tt_issue_queue *queue)
{
    uint64_t seq = atomic_load_explicit(&queue->issued, memory_order_relaxed);
    atomic_store_explicit(&queue->issued, seq + 1, memory_order_relaxed);
    return seq;
}

/* Note on which stream that operation is. The entry of another one that has not ended stays: it is
 * the older. A thread's own default stream (2) has a handle that other threads' have, too. */
static inline void tt_issue_note(struct tt_issue_queue *queue, uint64_t seq,
                                 const struct CUstream_st *stream)
{
    struct tt_issue_place *place = &queue->places[seq % TT_ISSUE_PLACES];
    const uint64_t number = atomic_load_explicit(&place->number, memory_order_relaxed);
    if (number > atomic_load_explicit(&queue->served, memory_order_relaxed)) return;
    if ((uintptr_t)stream == 2) return;
    atomic_store_explicit(&place->stream, stream, memory_order_relaxed);
    /* pairs with the acquire load of tt_issue_head_stream() */
    atomic_store_explicit(&place->number, seq + 1, memory_order_release);
}

/* The same lock for a launch of a graph, once for each of its items; there is one launch at a time
 * in the process (device.h). */
static inline void tt_issue_hold(struct tt_issue_queue *queue)
{
    if (queue->nheld == 0) tt_issue_lock(queue);
    queue->nheld++;
}

static inline void tt_issue_let(struct tt_issue_queue *queue)
{
    if (--queue->nheld == 0) tt_issue_unlock(queue);
}
