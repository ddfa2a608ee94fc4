/* Streams: creation, claim, queue, and CUDA's order between the legacy default stream and blocking
 * streams. */
#include "stream.h"

#include "slab.h"

#include "base/arch/arch.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { STREAM_MAGIC = 0x73747265, MAX_STREAMS = 65536 };

static struct host_slab streams = {PTHREAD_MUTEX_INITIALIZER,
                                   NULL,
                                   (sizeof(struct CUstream_st) + 63) / 64 * 64,
                                   MAX_STREAMS,
                                   0,
                                   NULL,
                                   0};
static _Atomic uint64_t next_id = 1;
_Atomic uint32_t host_busy_streams;

struct defaults {
    struct CUstream_st *_Atomic legacy[HOST_MAX_DEVICES];
    pthread_mutex_t lock;
};
static struct defaults defaults = {.lock = PTHREAD_MUTEX_INITIALIZER};

static __thread struct CUstream_st *own_default; /* of this thread and its device at first use */

/* ---- creation ---- */

static struct CUstream_st *make(int device, unsigned flags, int priority)
{
    struct CUstream_st *stream = host_slab_take(&streams);
    if (!stream) return NULL;
    stream->device = device;
    stream->flags = flags;
    stream->priority = priority < -5 ? -5 : priority > 0 ? 0 : priority;
    stream->id = atomic_fetch_add(&next_id, 1);
    pthread_mutex_init(&stream->lock, NULL);
    host_slab_enliven(stream, STREAM_MAGIC);
    return stream;
}

static struct CUstream_st *legacy_of(int device)
{
    struct CUstream_st *stream =
        atomic_load_explicit(&defaults.legacy[device], memory_order_acquire);
    if (stream) return stream;
    pthread_mutex_lock(&defaults.lock);
    stream = atomic_load_explicit(&defaults.legacy[device], memory_order_acquire);
    if (!stream) {
        stream = make(device, 0, 0);
        if (stream) stream->legacy = true;
        atomic_store_explicit(&defaults.legacy[device], stream, memory_order_release);
    }
    pthread_mutex_unlock(&defaults.lock);
    return stream;
}

struct CUstream_st *host_stream_find(struct CUstream_st *handle)
{
    uintptr_t number = (uintptr_t)handle;
    if (number > 2) return host_slab_holds(&streams, handle, STREAM_MAGIC) ? handle : NULL;
    if (host_thread.device >= host_device_count()) return NULL;
    if (number < 2) return legacy_of(host_thread.device);
    if (!own_default || own_default->device != host_thread.device)
        own_default = make(host_thread.device, 0, 0);
    return own_default;
}

int tuttiHostStreamCreate(unsigned flags, int priority, struct CUstream_st **stream_out)
{
    if (flags & ~(unsigned)TT_STREAM_NON_BLOCKING) return HOST_INVALID_VALUE;
    if (!host_device_count()) return HOST_NO_DEVICE;
    *stream_out = make(host_thread.device, flags, priority);
    return *stream_out ? HOST_OK : HOST_OUT_OF_MEMORY;
}

static void bury(struct CUstream_st *stream)
{
    host_capture_leave(stream);
    pthread_mutex_destroy(&stream->lock);
    host_slab_give(&streams, stream);
}

int tuttiHostStreamDestroy(struct CUstream_st *handle)
{
    if ((uintptr_t)handle <= 2) return HOST_BAD_HANDLE;
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream || stream->dying) return HOST_BAD_HANDLE;
    if (atomic_load(&stream->capture)) host_capture_invalidate(stream);
    pthread_mutex_lock(&stream->lock);
    stream->dying = true;
    bool working = stream->head != NULL; /* whoever runs the last operation buries it */
    pthread_mutex_unlock(&stream->lock);
    if (working) return HOST_OK;
    while (!host_stream_claim(stream)) {
        sched_yield(); /* its last user is about to let go */
    }
    bury(stream);
    return HOST_OK;
}

/* ---- claim ---- */

bool host_stream_claim(struct CUstream_st *stream)
{
    uint32_t idle = 0;
    return atomic_compare_exchange_strong_explicit(&stream->claimed, &idle, 1, memory_order_acquire,
                                                   memory_order_relaxed);
}

void host_stream_release(struct CUstream_st *stream)
{
    atomic_store_explicit(&stream->claimed, 0, memory_order_release);
}

bool host_stream_idle(const struct CUstream_st *stream)
{
    return atomic_load_explicit(&stream->pending, memory_order_acquire) == 0 &&
           atomic_load_explicit(&stream->claimed, memory_order_acquire) == 0;
}

static bool is_blocking(const struct CUstream_st *stream)
{
    return !(stream->flags & TT_STREAM_NON_BLOCKING);
}

struct legacy_question {
    const struct CUstream_st *asker;
    bool busy;
};

static bool blocking_busy(struct CUstream_st *stream, void *arg)
{
    struct legacy_question *question = arg;
    bool same = stream != question->asker && stream->device == question->asker->device &&
                is_blocking(stream);
    question->busy = question->busy || (same && !host_stream_idle(stream));
    return question->busy;
}

/* Does an operation of this stream have to wait for another stream by the legacy rules? */
static bool legacy_conflict(struct CUstream_st *stream)
{
    if (!is_blocking(stream) || !atomic_load_explicit(&host_busy_streams, memory_order_relaxed))
        return false;
    struct legacy_question question = {stream, false};
    if (stream->legacy) {
        host_streams_visit(blocking_busy, &question);
        return question.busy;
    }
    struct CUstream_st *legacy =
        atomic_load_explicit(&defaults.legacy[stream->device], memory_order_acquire);
    return legacy && legacy != stream && !host_stream_idle(legacy);
}

bool host_stream_claim_idle(struct CUstream_st *stream)
{
    if (atomic_load_explicit(&stream->pending, memory_order_relaxed) || !host_stream_claim(stream))
        return false;
    if (!atomic_load_explicit(&stream->pending, memory_order_acquire) && !legacy_conflict(stream))
        return true;
    host_stream_release(stream);
    return false;
}

/* ---- queue ---- */

static void count_up(struct CUstream_st *stream)
{
    if (atomic_fetch_add(&stream->pending, 1) == 0) atomic_fetch_add(&host_busy_streams, 1);
}

static void count_down(struct CUstream_st *stream)
{
    if (atomic_fetch_sub(&stream->pending, 1) == 1) atomic_fetch_sub(&host_busy_streams, 1);
}

static int push(struct CUstream_st *stream, const struct host_op *op, bool at_head)
{
    struct host_op *copy = malloc(sizeof(*copy));
    if (!copy) return HOST_OUT_OF_MEMORY;
    *copy = *op;
    pthread_mutex_lock(&stream->lock);
    copy->next = at_head ? stream->head : NULL;
    if (at_head) {
        stream->head = copy;
        if (!stream->tail) stream->tail = copy;
    } else {
        if (stream->tail) stream->tail->next = copy;
        if (!stream->head) stream->head = copy;
        stream->tail = copy;
    }
    count_up(stream);
    pthread_mutex_unlock(&stream->lock);
    return HOST_OK;
}

int host_stream_mark(struct CUstream_st *stream, struct host_mark **mark_out)
{
    *mark_out = NULL;
    if (host_stream_idle(stream)) return HOST_OK;
    struct host_mark *mark = host_mark_create(2);
    if (!mark) return HOST_OUT_OF_MEMORY;
    struct host_op op = {.kind = HOST_OP_MARK, .mark = mark};
    if (push(stream, &op, false)) {
        free(mark);
        return HOST_OUT_OF_MEMORY;
    }
    *mark_out = mark;
    return HOST_OK;
}

struct legacy_order {
    struct CUstream_st *waiter;
    int rc;
};

static bool wait_for(struct CUstream_st *stream, void *arg)
{
    struct legacy_order *order = arg;
    struct host_mark *mark = NULL;
    if (stream == order->waiter || stream->device != order->waiter->device || !is_blocking(stream))
        return false;
    order->rc = host_stream_mark(stream, &mark);
    if (mark && !order->rc) {
        struct host_op op = {.kind = HOST_OP_WAIT, .mark = mark};
        order->rc = push(order->waiter, &op, false);
        if (order->rc) host_mark_drop(mark);
    }
    return order->rc != HOST_OK;
}

static int order_by_legacy(struct CUstream_st *stream)
{
    struct legacy_order order = {stream, HOST_OK};
    if (!legacy_conflict(stream)) return HOST_OK;
    if (stream->legacy) {
        host_streams_visit(wait_for, &order);
    } else {
        wait_for(atomic_load(&defaults.legacy[stream->device]), &order);
    }
    return order.rc;
}

int host_stream_append(struct CUstream_st *stream, const struct host_op *op)
{
    int rc = order_by_legacy(stream);
    if (!rc) rc = push(stream, op, false);
    if (!rc) host_worker_arm();
    return rc;
}

int host_stream_park(struct CUstream_st *stream, const struct host_op *op)
{
    int rc = push(stream, op, true);
    host_stream_release(stream);
    host_worker_arm();
    return rc;
}

static struct host_op *head_of(struct CUstream_st *stream)
{
    pthread_mutex_lock(&stream->lock);
    struct host_op *op = stream->head;
    pthread_mutex_unlock(&stream->lock);
    return op;
}

/* The head is done: take it out. True when the stream was destroyed and this was its last
 * operation. */
static bool finish_head(struct CUstream_st *stream, struct host_op *op)
{
    pthread_mutex_lock(&stream->lock);
    stream->head = op->next;
    if (!stream->head) stream->tail = NULL;
    bool last = stream->dying && !stream->head;
    pthread_mutex_unlock(&stream->lock);
    host_op_drop(op);
    free(op);
    count_down(stream);
    return last;
}

enum tt_step host_stream_run(struct CUstream_st *stream, bool calls)
{
    bool progress = false;
    if (!atomic_load_explicit(&stream->pending, memory_order_relaxed) || !host_stream_claim(stream))
        return TT_STEP_WAIT;
    for (struct host_op *op = head_of(stream); op; op = head_of(stream)) {
        enum tt_step step = host_op_step(op, calls);
        if (step != TT_STEP_WAIT) progress = true;
        if (step != TT_STEP_DONE) break;
        if (finish_head(stream, op)) {
            bury(stream);
            return TT_STEP_PROGRESS;
        }
    }
    host_stream_release(stream);
    return progress ? TT_STEP_PROGRESS : TT_STEP_WAIT;
}

bool host_streams_visit(bool (*visit)(struct CUstream_st *stream, void *arg), void *arg)
{
    pthread_mutex_lock(&streams.lock);
    size_t made = streams.made;
    char *base = streams.base;
    pthread_mutex_unlock(&streams.lock);
    for (size_t i = 0; i < made; i++) {
        struct CUstream_st *stream =
            (struct CUstream_st *)(void *)(base + i * streams.object_bytes);
        if (host_slab_holds(&streams, stream, STREAM_MAGIC) && visit(stream, arg)) return true;
    }
    return false;
}

/* ---- facts ---- */

int tuttiHostStreamFlags(struct CUstream_st *handle, unsigned *flags)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return HOST_BAD_HANDLE;
    *flags = stream->flags;
    return HOST_OK;
}

int tuttiHostStreamPriority(struct CUstream_st *handle, int *priority)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream) return HOST_BAD_HANDLE;
    *priority = stream->priority;
    return HOST_OK;
}
