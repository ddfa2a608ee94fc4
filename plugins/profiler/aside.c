/* Making lines of records takes longer than making records, so in a burst the writer first moves
 * them from a ring into a larger place of the same order, and its thread goes on. That place
 * belongs to the ring, is as large as TRACE_ASIDE_RINGS rings, and takes memory during a burst
 * only. */
#include "aside.h"

#include <string.h>
#include <sys/mman.h>

enum { MOST_ASIDE_BYTES = 128 << 20 }; /* of all rings */

static bool has_aside(struct trace_ring *ring)
{
    struct trace_process *all = &trace_process;
    size_t bytes = trace_aside_words() * sizeof(ring->aside[0]);
    if (ring->aside) return true;
    if (all->aside_bytes + bytes > MOST_ASIDE_BYTES) return false;
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    ring->aside = memory;
    all->aside_bytes += bytes;
    return true;
}

/* Words between two places that count on, in pieces that end with either circle. */
static void move_words(struct trace_ring *ring, uint64_t at, uint64_t until)
{
    uint64_t room = trace_process.ring_words, aside_room = trace_aside_words();
    while (at < until) {
        uint64_t from = at & (room - 1), to = at & (aside_room - 1);
        uint64_t count = until - at; /* a circle of the ring never ends behind one of the other */
        if (count > room - from) count = room - from;
        memcpy(&ring->aside[to], &ring->words[from], count * sizeof(ring->words[0]));
        at += count;
    }
}

void trace_relieve_rings(void)
{
    struct trace_process *all = &trace_process;
    for (int i = 0; i < TRACE_RINGS; i++) {
        struct trace_ring *ring = atomic_load_explicit(&all->rings[i], memory_order_acquire);
        if (!ring) continue;
        /* Not `head`, which its thread would have to fetch again with its next record. */
        uint64_t marked = atomic_load_explicit(&ring->marked, memory_order_relaxed);
        uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
        if (marked < tail || marked - tail <= all->ring_words / 2) continue;
        uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire); /* as push */
        if (head - ring->done > trace_aside_words() || !has_aside(ring)) continue;
        move_words(ring, tail, head);
        ring->aside_touched = true;
        all->asides++;
        /* pairs with push: the words were read */
        atomic_store_explicit(&ring->tail, head, memory_order_release);
    }
}

void trace_reclaim_aside(void)
{
    struct trace_process *all = &trace_process;
    for (int i = 0; i < TRACE_RINGS; i++) {
        struct trace_ring *ring = atomic_load_explicit(&all->rings[i], memory_order_acquire);
        if (!ring || !ring->aside_touched) continue;
        if (ring->done < atomic_load_explicit(&ring->tail, memory_order_relaxed)) continue;
        (void)madvise(ring->aside, trace_aside_words() * sizeof(ring->aside[0]), MADV_DONTNEED);
        ring->aside_touched = false;
    }
}
