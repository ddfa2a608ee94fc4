/* Progress of a stream, for memory/, which must not depend on streams: a stream struct begins with
 * its timeline. Which thread writes it: stream/stream.h. Private to the room. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct CUstream_st;

struct tt_host_timeline {
    _Atomic uint32_t magic; /* of the slab */
    _Atomic uint64_t tail;  /* sequence number of the last queued operation */
    _Atomic uint64_t done;  /* of the last finished one */
};

struct tt_host_position {
    struct CUstream_st *stream; /* borrowed; never unmapped. NULL: always reached */
    uint64_t seq;
};

static inline struct tt_host_timeline *tt_host_timeline_of(const struct CUstream_st *stream)
{
    return (struct tt_host_timeline *)(uintptr_t)stream;
}

static inline bool tt_host_position_reached(const struct tt_host_position *position)
{
    return !position->stream || atomic_load_explicit(&tt_host_timeline_of(position->stream)->done,
                                                     memory_order_acquire) >= position->seq;
}

static inline bool tt_host_timeline_idle(const struct tt_host_timeline *line)
{
    uint64_t done = atomic_load_explicit(&line->done, memory_order_acquire);
    return atomic_load_explicit(&line->tail, memory_order_seq_cst) == done;
}
