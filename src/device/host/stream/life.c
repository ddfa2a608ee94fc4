/* Places of streams: taken, put back when dead, and the lists of what is in them. A dead stream
 * keeps its sequence numbers, so a thread that still looks at it sees an idle stream.
 *
 * The list of a device's blocking streams is read without a lock. A dead one is taken out and still
 * leads its readers on to what was behind it; comes it back, it is the head of the list and leads
 * them through all of it. So no thread misses a stream that was in the list before it began. */
#include "attributes.h"
#include "stream.h"

/* Lock held, as below. */
static void list_ordered(struct tt_host_device_streams *own, struct CUstream_st *stream)
{
    struct CUstream_st *first = atomic_load_explicit(&own->ordered, memory_order_relaxed);
    stream->prev_ordered = NULL;
    atomic_store_explicit(&stream->next_ordered, first, memory_order_seq_cst);
    if (first) first->prev_ordered = stream;
    atomic_store_explicit(&own->ordered, stream, memory_order_seq_cst);
}

static void unlist_ordered(struct tt_host_device_streams *own, struct CUstream_st *stream)
{
    struct CUstream_st *next = atomic_load_explicit(&stream->next_ordered, memory_order_relaxed);
    struct CUstream_st *prev = stream->prev_ordered;
    if (next) next->prev_ordered = prev;
    atomic_store_explicit(prev ? &prev->next_ordered : &own->ordered, next, memory_order_seq_cst);
}

struct CUstream_st *tt_host_stream_take(int device, enum tt_host_stream_kind kind)
{
    struct tt_host_device_streams *own =
        kind == TT_HOST_STREAM_FREE ? NULL : &tt_host.streams.devices[device];
    struct CUstream_st **dead =
        kind == TT_HOST_STREAM_ORDERED ? &own->dead_ordered : &tt_host.streams.dead;
    struct CUstream_st *stream = kind == TT_HOST_STREAM_LEGACY ? NULL : *dead;
    if (stream) {
        *dead = stream->next;
        stream->device = device;
        if (kind == TT_HOST_STREAM_ORDERED) list_ordered(own, stream);
        return stream;
    }
    stream = tt_host_slab_take_used(&tt_host.streams.slab, sizeof(*stream), TT_HOST_MAX_STREAMS);
    if (!stream) return NULL;
    pthread_mutex_init(&stream->lock, NULL);
    stream->device = device;
    stream->ordered = kind != TT_HOST_STREAM_FREE;
    stream->legacy = kind == TT_HOST_STREAM_LEGACY;
    if (kind == TT_HOST_STREAM_ORDERED) list_ordered(own, stream);
    return stream;
}

static void put_dead(struct CUstream_st *stream)
{
    pthread_mutex_lock(&tt_host.streams.lock);
    struct CUstream_st **dead = stream->ordered
                                    ? &tt_host.streams.devices[stream->device].dead_ordered
                                    : &tt_host.streams.dead;
    if (stream->ordered) unlist_ordered(&tt_host.streams.devices[stream->device], stream);
    stream->next = *dead;
    *dead = stream;
    pthread_mutex_unlock(&tt_host.streams.lock);
}

struct CUstream_st *tt_host_timeline_take(void)
{
    pthread_mutex_lock(&tt_host.streams.lock);
    struct CUstream_st *line = tt_host_stream_take(-1, TT_HOST_STREAM_FREE);
    pthread_mutex_unlock(&tt_host.streams.lock);
    if (line) atomic_store_explicit(&line->life, TT_HOST_LIFE_USED, memory_order_relaxed);
    return line;
}

void tt_host_timeline_give(struct CUstream_st *line)
{
    if (!line) return;
    atomic_store_explicit(&line->life, TT_HOST_LIFE_DEAD, memory_order_relaxed);
    put_dead(line);
}

/* ---- the end ---- */

void tt_host_stream_retire(struct CUstream_st *stream)
{
    uint32_t dying = TT_HOST_LIFE_DYING;
    if (!tt_host_stream_idle(stream)) return;
    if (!atomic_compare_exchange_strong(&stream->life, &dying, TT_HOST_LIFE_DEAD)) return;
    pthread_mutex_lock(&stream->lock);
    tt_host_attributes_free(stream->attributes);
    stream->attributes = NULL;
    pthread_mutex_unlock(&stream->lock);
    put_dead(stream);
}

/* ---- order locks ---- */

static void make_order_locks(void)
{
    for (int d = 0; d < TT_HOST_MAX_DEVICES; d++) {
        pthread_mutex_init(&tt_host.streams.devices[d].order, NULL);
    }
}

pthread_mutex_t *tt_host_order_lock(int device)
{
    pthread_once(&tt_host.streams.once, make_order_locks);
    return &tt_host.streams.devices[device].order;
}
