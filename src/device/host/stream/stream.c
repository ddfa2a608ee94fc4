/* Streams: handles, creation, the default ones, the end. A dead stream keeps its tickets, so
 * whoever still looks at it sees an idle stream.
 *
 * The list of a device's blocking streams is read without a lock. A dead one is taken out and still
 * leads its readers on to what was behind it; comes it back, it is the head of the list and leads
 * them through all of it. So nobody misses a stream that was in the list before he began. */
#include "stream.h"

#include "attributes.h"

#include "device/host/graph/capture.h"
#include "device/host/host.h"
#include "device/host/memory/runnable.h"
#include "device/host/memory/slab.h"

/* ---- creation ---- */

enum kind { KIND_FREE, KIND_ORDERED, KIND_LEGACY };

/* Lock held, as below. */
static void list_ordered(struct host_device_streams *own, struct CUstream_st *stream)
{
    struct CUstream_st *first = atomic_load_explicit(&own->ordered, memory_order_relaxed);
    stream->prev_ordered = NULL;
    atomic_store_explicit(&stream->next_ordered, first, memory_order_seq_cst);
    if (first) first->prev_ordered = stream;
    atomic_store_explicit(&own->ordered, stream, memory_order_seq_cst);
}

static void unlist_ordered(struct host_device_streams *own, struct CUstream_st *stream)
{
    struct CUstream_st *next = atomic_load_explicit(&stream->next_ordered, memory_order_relaxed);
    struct CUstream_st *prev = stream->prev_ordered;
    if (next) next->prev_ordered = prev;
    atomic_store_explicit(prev ? &prev->next_ordered : &own->ordered, next, memory_order_seq_cst);
}

static struct CUstream_st *take(int device, enum kind kind)
{
    struct host_device_streams *own = kind == KIND_FREE ? NULL : &tt_host.streams.devices[device];
    struct CUstream_st **dead = kind == KIND_ORDERED ? &own->dead_ordered : &tt_host.streams.dead;
    struct CUstream_st *stream = kind == KIND_LEGACY ? NULL : *dead;
    if (stream) {
        *dead = stream->next;
        stream->device = device;
        if (kind == KIND_ORDERED) list_ordered(own, stream);
        return stream;
    }
    stream = host_slab_take_used(&tt_host.streams.places, sizeof(*stream), HOST_MAX_STREAMS);
    if (!stream) return NULL;
    pthread_mutex_init(&stream->lock, NULL);
    stream->device = device;
    stream->ordered = kind != KIND_FREE;
    stream->legacy = kind == KIND_LEGACY;
    if (kind == KIND_ORDERED) list_ordered(own, stream);
    return stream;
}

static struct CUstream_st *make(int device, unsigned flags, int priority, enum kind kind)
{
    pthread_mutex_lock(&tt_host.streams.lock);
    struct CUstream_st *stream = take(device, kind);
    pthread_mutex_unlock(&tt_host.streams.lock);
    if (!stream) return NULL;
    stream->flags = flags;
    stream->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
    stream->id = atomic_fetch_add_explicit(&tt_host.streams.last_id, 1, memory_order_relaxed) + 1;
    stream->next = NULL;
    stream->is_own = false;
    atomic_store_explicit(&stream->life, HOST_LIFE_USED, memory_order_relaxed);
    atomic_store_explicit(&stream->magic, HOST_STREAM_MAGIC, memory_order_release);
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

struct CUstream_st *host_timeline_take(void)
{
    pthread_mutex_lock(&tt_host.streams.lock);
    struct CUstream_st *line = take(-1, KIND_FREE);
    pthread_mutex_unlock(&tt_host.streams.lock);
    if (line) atomic_store_explicit(&line->life, HOST_LIFE_USED, memory_order_relaxed);
    return line;
}

void host_timeline_give(struct CUstream_st *line)
{
    if (!line) return;
    atomic_store_explicit(&line->life, HOST_LIFE_DEAD, memory_order_relaxed);
    put_dead(line);
}

static void make_order_locks(void)
{
    for (int d = 0; d < HOST_MAX_DEVICES; d++) {
        pthread_mutex_init(&tt_host.streams.devices[d].order, NULL);
    }
}

static void end_own(void *arg)
{
    struct CUstream_st *stream = arg;
    host_thread.own_streams = NULL;
    while (stream) {
        struct CUstream_st *next = stream->next;
        tuttiHostStreamDestroy(stream);
        stream = next;
    }
}

static void make_own_key(void)
{
    pthread_key_create(&tt_host.streams.own_key, end_own);
    make_order_locks();
}

pthread_mutex_t *host_order_lock(int device)
{
    pthread_once(&tt_host.streams.once, make_own_key);
    return &tt_host.streams.devices[device].order;
}

/* ---- handles ---- */

static struct CUstream_st *legacy_of(int device)
{
    struct host_device_streams *own = &tt_host.streams.devices[device];
    struct CUstream_st *stream = atomic_load_explicit(&own->legacy, memory_order_acquire);
    if (stream) return stream;
    struct CUstream_st *fresh = make(device, 0, 0, KIND_LEGACY);
    if (!fresh) return NULL;
    if (atomic_compare_exchange_strong(&own->legacy, &stream, fresh)) return fresh;
    atomic_store(&fresh->magic,
                 0); /* another thread was faster; never reused: it is no ordered one */
    return stream;
}

static struct CUstream_st *own_of(int device)
{
    for (struct CUstream_st *stream = host_thread.own_streams; stream; stream = stream->next) {
        if (stream->device == device) return stream;
    }
    pthread_once(&tt_host.streams.once, make_own_key);
    struct CUstream_st *stream = make(device, 0, 0, KIND_ORDERED);
    if (!stream) return NULL;
    stream->is_own = true;
    stream->next = host_thread.own_streams;
    host_thread.own_streams = stream;
    pthread_setspecific(tt_host.streams.own_key, stream);
    return stream;
}

struct CUstream_st *host_stream_default(struct CUstream_st *handle)
{
    uintptr_t number = (uintptr_t)handle;
    if (host_thread.device >= host_device_count()) return NULL;
    return number < 2 ? legacy_of(host_thread.device) : own_of(host_thread.device);
}

struct CUstream_st *host_stream_numbered(size_t number)
{
    return host_slab_object(&tt_host.streams.places, number);
}

bool host_streams_visit(bool (*visit)(struct CUstream_st *stream, void *arg), void *arg)
{
    size_t made = atomic_load_explicit(&tt_host.streams.places.made, memory_order_acquire);
    for (size_t i = 0; i < made; i++) {
        struct CUstream_st *stream = host_stream_numbered(i);
        if (atomic_load_explicit(&stream->magic, memory_order_acquire) == HOST_STREAM_MAGIC &&
            visit(stream, arg))
            return true;
    }
    return false;
}

/* A destroyed stream is of its device until what was put on it is done; buried under the lock. */
static void wait_when_of(struct CUstream_st *stream, void *arg)
{
    const int *device = arg;
    if (host_stream_idle(stream)) return;
    pthread_mutex_lock(&tt_host.streams.lock);
    struct host_place end = {stream->device == *device ? stream : NULL, atomic_load(&stream->tail)};
    pthread_mutex_unlock(&tt_host.streams.lock);
    host_wait_place(&end);
}

void host_streams_wait(int device)
{
    host_busy_visit(wait_when_of, &device);
}

int tuttiHostStreamCreate(unsigned flags, int priority, struct CUstream_st **stream_out)
{
    if (flags & ~(unsigned)TT_STREAM_NON_BLOCKING) return HOST_INVALID_VALUE;
    int rc = tuttiHostReady();
    if (rc) return rc;
    enum kind kind = flags & TT_STREAM_NON_BLOCKING ? KIND_FREE : KIND_ORDERED;
    struct CUstream_st *stream = make(host_thread.device, flags, priority, kind);
    if (!stream) return HOST_OUT_OF_MEMORY;
    *stream_out = stream;
    return HOST_OK;
}

/* ---- the end ---- */

void host_stream_bury(struct CUstream_st *stream)
{
    uint32_t dying = HOST_LIFE_DYING;
    if (!host_stream_idle(stream)) return;
    if (!atomic_compare_exchange_strong(&stream->life, &dying, HOST_LIFE_DEAD)) return;
    pthread_mutex_lock(&stream->lock);
    host_attributes_free(stream->attributes);
    stream->attributes = NULL;
    pthread_mutex_unlock(&stream->lock);
    put_dead(stream);
}

int tuttiHostStreamDestroy(struct CUstream_st *handle)
{
    uint32_t alive = HOST_STREAM_MAGIC;
    if ((uintptr_t)handle <= 2 || !host_stream_find(handle)) return host_bad_handle();
    if (handle->legacy || !atomic_compare_exchange_strong(&handle->magic, &alive, 0))
        return HOST_BAD_HANDLE;
    if (atomic_load(&handle->capture)) host_capture_orphan(handle);
    atomic_store(&handle->life, HOST_LIFE_DYING);
    host_stream_bury(handle);
    /* else whoever finishes its last operation does, or a worker that finds it idle */
    if (atomic_load(&handle->life) == HOST_LIFE_DYING) host_runnable_set(handle);
    return HOST_OK;
}

/* ---- facts ---- */

int tuttiHostStreamFlags(struct CUstream_st *handle, unsigned *flags)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    *flags = stream->flags;
    return HOST_OK;
}

int tuttiHostStreamPriority(struct CUstream_st *handle, int *priority)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    *priority = stream->priority;
    return HOST_OK;
}

int tuttiHostStreamPrioritySet(struct CUstream_st *handle, int priority)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return host_bad_handle();
    stream->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
    return HOST_OK;
}
