/* How far a stream has come: what memory, which lies below streams, needs to know of one. A stream
 * begins with its timeline; stream/stream.h says who writes it. Private to the room. */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct CUstream_st;

struct tt_host_timeline {
    _Atomic uint32_t magic; /* of the slab */
    _Atomic uint64_t tail;  /* the last sequence number that was given */
    _Atomic uint64_t done;  /* the last one that is finished */
};

struct tt_host_position {
    struct CUstream_st *stream; /* borrowed for ever; NULL: nowhere, always reached */
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
