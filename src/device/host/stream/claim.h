/* The right to run an operation here and now: a thread that finds a stream idle takes its next
 * sequence number and finishes it (stream.h says why that needs no queue). Private to the room. */
#pragma once

#include "device/host/stream/stream.h"

static inline void tt_host_stream_finish(struct CUstream_st *stream, uint64_t seq)
{
    atomic_store_explicit(&stream->line.done, seq, memory_order_release);
    if (atomic_load_explicit(&stream->sleepers, memory_order_relaxed)) tt_host_wake(stream);
}

/* Finish the running operation. Only for the holder of its sequence number. */
static inline void tt_host_stream_release(struct CUstream_st *stream)
{
    tt_host_stream_finish(stream,
                          atomic_load_explicit(&stream->line.done, memory_order_relaxed) + 1);
}

/* True when an operation may run here and now: the stream is idle, and the rules of the legacy
 * stream do not forbid it. The caller then holds the only unfinished sequence number until release
 * or park.                                                                                   hot */
static inline bool tt_host_stream_claim_idle(struct CUstream_st *stream)
{
    uint64_t done = atomic_load_explicit(&stream->line.done, memory_order_acquire);
    uint64_t tail = done;
    if (atomic_load_explicit(&stream->line.tail, memory_order_relaxed) != done) return false;
    if (!atomic_compare_exchange_strong_explicit(&stream->line.tail, &tail, done + 1,
                                                 memory_order_seq_cst, memory_order_relaxed))
        return false;
    if (!stream->ordered || !tt_host_stream_conflicts(stream)) return true;
    tt_host_stream_release(stream);
    return false;
}
