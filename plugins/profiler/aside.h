/* Records that have left their ring and are not written yet (aside.c). Under the process's lock. */
#pragma once

#include "trace.h"

enum { TRACE_ASIDE_RINGS = 8 }; /* as many rings' records have room aside of one */

static inline uint64_t trace_aside_words(void)
{
    return trace_process.ring_words * TRACE_ASIDE_RINGS;
}

/* Where a record stands: in the ring, or aside. Each of its words is at `at & mask`. */
struct trace_place {
    const uint64_t *words; /* borrowed */
    uint64_t at, mask;
};
static inline struct trace_place trace_place_of(const struct trace_ring *ring, uint64_t at)
{
    bool aside = at < atomic_load_explicit(&ring->tail, memory_order_relaxed);
    return (struct trace_place){
        .words = aside ? ring->aside : ring->words,
        .at = at,
        .mask = (aside ? trace_aside_words() : trace_process.ring_words) - 1,
    };
}
static inline uint64_t trace_word_of(const struct trace_place *place, uint64_t k)
{
    return place->words[(place->at + k) & place->mask];
}

/* Move what was not written yet out of the rings that are half full, so that their threads have
 * room again. */
void trace_relieve_rings(void);
/* Give the memory of what has been written since back to the system. */
void trace_reclaim_aside(void);
/* blocks.c: take the record of the ring; returns its words. The block's own ring is the same until
 * trace_block_end(). */
size_t trace_block_add(const struct trace_ring *ring, const struct trace_place *place,
                       uint64_t nsec);
