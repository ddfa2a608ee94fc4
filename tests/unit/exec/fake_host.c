/* See fake_host.h. */
#include "fake_host.h"

#include <stdatomic.h>

static char *memory_base;
static size_t memory_bytes;
static _Atomic size_t memory_used;
static struct CUstream_st *helped;

void fake_host_memory(char *base, size_t bytes)
{
    memory_base = base;
    memory_bytes = bytes;
    atomic_store(&memory_used, 0);
}

void fake_host_help(struct CUstream_st *stream)
{
    helped = stream;
}

int tuttiHostMalloc(int device, size_t bytes, void **ptr_out)
{
    (void)device;
    size_t at = atomic_fetch_add(&memory_used, bytes);
    if (at + bytes > memory_bytes) return 2;
    *ptr_out = memory_base + at;
    return 0;
}

int tuttiHostFree(void *ptr)
{
    (void)ptr;
    return 0;
}

bool tuttiHostHelp(void)
{
    return helped && fake_stream_step(helped);
}

bool fake_stream_idle(const struct CUstream_st *stream)
{
    return stream->head == stream->tail;
}

bool fake_stream_step(struct CUstream_st *stream)
{
    if (fake_stream_idle(stream)) return false;
    struct tt_item *item = stream->queue[stream->head % FAKE_QUEUE];
    enum tt_step step = item->step(item, TT_ITEM_STEP);
    if (step != TT_STEP_DONE) return step == TT_STEP_PROGRESS;
    stream->head++;
    item->step(item, TT_ITEM_RELEASE);
    return true;
}

void fake_stream_drop(struct CUstream_st *stream)
{
    while (!fake_stream_idle(stream)) {
        struct tt_item *item = stream->queue[stream->head++ % FAKE_QUEUE];
        item->step(item, TT_ITEM_RELEASE);
    }
}

int tuttiHostSubmit(struct CUstream_st *stream, struct tt_item *item, bool allow_inline)
{
    (void)allow_inline;
    if (stream->refuse) return stream->refuse;
    stream->queue[stream->tail++ % FAKE_QUEUE] = item;
    return 0;
}

void tuttiHostClaimPark(struct CUstream_st *stream, struct tt_item *item)
{
    tuttiHostSubmit(stream, item, false);
}

bool tuttiHostOversubscribed(void)
{
    return true; /* one pass */
}

int tuttiHostControlAlloc(size_t bytes, void **ptr_out)
{
    (void)bytes;
    (void)ptr_out;
    return 2;
}

void tuttiHostControlFree(void *ptr, size_t bytes)
{
    (void)ptr;
    (void)bytes;
}
