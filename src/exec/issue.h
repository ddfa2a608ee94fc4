/* Taking a position on a stream and the sequence number that goes with it as one step, whatever
 * other threads do: where one thread's call stood first on a stream and another one's launch of a
 * graph first in the queue, each would wait for the other. Private to the room. */
#pragma once

#include "exec/exec.h"

/* Another thread has the lock; takes it. */
void tt_issue_await(struct tt_issue_queue *queue);

/* Held for moments by one thread. */
static inline void tt_issue_lock(struct tt_issue_queue *queue)
{
    if (atomic_exchange_explicit(&queue->issuing, 1, memory_order_acquire)) tt_issue_await(queue);
}

static inline void tt_issue_unlock(struct tt_issue_queue *queue)
{
    atomic_store_explicit(&queue->issuing, 0, memory_order_release);
}

/* The next number. Who calls holds the lock; others only read. */
static inline uint64_t tt_issue_number(struct tt_issue_queue *queue)
{
    uint64_t seq = atomic_load_explicit(&queue->issued, memory_order_relaxed);
    atomic_store_explicit(&queue->issued, seq + 1, memory_order_relaxed);
    return seq;
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
