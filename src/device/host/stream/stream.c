/* Streams: handles, creation, the default ones, the end. */
#include "stream.h"

#include "attributes.h"

#include "device/host/heap/slab.h"
#include "device/host/host.h"
#include "device/host/process/runnable.h"

/* ---- creation ---- */

static struct CUstream_st *make(int device, unsigned flags, int priority,
                                enum tt_host_stream_kind kind)
{
    tt_host_workers_prepare();
    pthread_mutex_lock(&tt_host.streams.lock);
    struct CUstream_st *stream = tt_host_stream_take(device, kind);
    pthread_mutex_unlock(&tt_host.streams.lock);
    if (!stream) return NULL;
    stream->flags = flags;
    stream->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
    stream->id = atomic_fetch_add_explicit(&tt_host.streams.last_id, 1, memory_order_relaxed) + 1;
    stream->next = NULL;
    stream->is_own = false;
    atomic_store_explicit(&stream->life, TT_HOST_LIFE_USED, memory_order_relaxed);
    atomic_store_explicit(&stream->line.magic, TT_HOST_STREAM_MAGIC, memory_order_release);
    return stream;
}

static void end_own(void *arg)
{
    struct CUstream_st *stream = arg;
    tt_host_thread.own_streams = NULL;
    while (stream) {
        struct CUstream_st *next = stream->next;
        tuttiHostStreamDestroy(stream);
        stream = next;
    }
}

static void make_own_key(void)
{
    pthread_key_create(&tt_host.streams.own_key, end_own);
}

/* ---- handles ---- */

static struct CUstream_st *legacy_of(int device)
{
    struct tt_host_device_streams *own = &tt_host.streams.devices[device];
    struct CUstream_st *stream = atomic_load_explicit(&own->legacy, memory_order_acquire);
    if (stream) return stream;
    struct CUstream_st *fresh = make(device, 0, 0, TT_HOST_STREAM_LEGACY);
    if (!fresh) return NULL;
    if (atomic_compare_exchange_strong(&own->legacy, &stream, fresh)) return fresh;
    atomic_store(&fresh->line.magic,
                 0); /* another thread was faster; never reused: it is no ordered one */
    return stream;
}

static struct CUstream_st *own_of(int device)
{
    for (struct CUstream_st *stream = tt_host_thread.own_streams; stream; stream = stream->next) {
        if (stream->device == device) return stream;
    }
    pthread_once(&tt_host.streams.own_once, make_own_key);
    struct CUstream_st *stream = make(device, 0, 0, TT_HOST_STREAM_ORDERED);
    if (!stream) return NULL;
    stream->is_own = true;
    stream->next = tt_host_thread.own_streams;
    tt_host_thread.own_streams = stream;
    pthread_setspecific(tt_host.streams.own_key, stream);
    return stream;
}

struct CUstream_st *tt_host_stream_default(struct CUstream_st *handle)
{
    uintptr_t number = (uintptr_t)handle;
    if (tt_host_thread.device >= tt_host_device_count()) return NULL;
    return number < 2 ? legacy_of(tt_host_thread.device) : own_of(tt_host_thread.device);
}

struct CUstream_st *tt_host_stream_numbered(size_t number)
{
    return tt_host_slab_object(&tt_host.streams.slab, number);
}

bool tt_host_streams_visit(bool (*visit)(struct CUstream_st *stream, void *arg), void *arg)
{
    size_t made = atomic_load_explicit(&tt_host.streams.slab.made, memory_order_acquire);
    for (size_t i = 0; i < made; i++) {
        struct CUstream_st *stream = tt_host_stream_numbered(i);
        if (atomic_load_explicit(&stream->line.magic, memory_order_acquire) ==
                TT_HOST_STREAM_MAGIC &&
            visit(stream, arg))
            return true;
    }
    return false;
}

/* A destroyed stream is of its device until what was put on it is done; buried under the lock. */
static void wait_when_of(struct CUstream_st *stream, void *arg)
{
    const int *device = arg;
    if (tt_host_stream_idle(stream)) return;
    pthread_mutex_lock(&tt_host.streams.lock);
    struct tt_host_position end = {stream->device == *device ? stream : NULL,
                                   atomic_load(&stream->line.tail)};
    pthread_mutex_unlock(&tt_host.streams.lock);
    tt_host_wait_position(&end);
}

void tt_host_streams_wait(int device)
{
    tt_host_busy_visit(wait_when_of, &device);
}

int tuttiHostStreamCreate(unsigned flags, int priority, struct CUstream_st **stream_out)
{
    if (flags & ~(unsigned)TT_STREAM_NON_BLOCKING) return TT_HOST_INVALID_VALUE;
    int rc = tuttiHostReady();
    if (rc) return rc;
    enum tt_host_stream_kind kind =
        flags & TT_STREAM_NON_BLOCKING ? TT_HOST_STREAM_FREE : TT_HOST_STREAM_ORDERED;
    struct CUstream_st *stream = make(tt_host_thread.device, flags, priority, kind);
    if (!stream) return TT_HOST_OUT_OF_MEMORY;
    *stream_out = stream;
    return TT_HOST_OK;
}

/* ---- the end ---- */

int tuttiHostStreamDestroy(struct CUstream_st *handle)
{
    uint32_t alive = TT_HOST_STREAM_MAGIC;
    if ((uintptr_t)handle <= 2 || !tt_host_stream_find(handle)) return tt_host_bad_handle();
    if (handle->legacy || !atomic_compare_exchange_strong(&handle->line.magic, &alive, 0))
        return TT_HOST_BAD_HANDLE;
    if (atomic_load(&handle->capture))
        atomic_load_explicit(&tt_host.captures.ops, memory_order_acquire)->orphan(handle);
    atomic_store(&handle->life, TT_HOST_LIFE_DYING);
    tt_host_stream_retire(handle);
    /* else the thread that finishes its last operation does, or a worker that finds it idle */
    if (atomic_load(&handle->life) == TT_HOST_LIFE_DYING) tt_host_runnable_set(handle);
    return TT_HOST_OK;
}

/* ---- facts ---- */

int tuttiHostStreamFlags(struct CUstream_st *handle, unsigned *flags)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return tt_host_bad_handle();
    *flags = stream->flags;
    return TT_HOST_OK;
}

int tuttiHostStreamPriority(struct CUstream_st *handle, int *priority)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return tt_host_bad_handle();
    *priority = stream->priority;
    return TT_HOST_OK;
}

int tuttiHostStreamPrioritySet(struct CUstream_st *handle, int priority)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream) return tt_host_bad_handle();
    stream->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
    return TT_HOST_OK;
}
