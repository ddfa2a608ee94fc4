/* Events. A record on an idle stream is a time and nothing else; on a busy one it is a mark in the
 * queue. */
#include "graph.h"
#include "slab.h"
#include "stream.h"

#include "base/clock.h"

#include <stdlib.h>

enum { EVENT_MAGIC = 0x6576656e, MAX_EVENTS = 1 << 20 };

struct CUevent_st {
    uint32_t magic;
    unsigned flags;
    int device;
    pthread_mutex_t lock;
    bool recorded;
    uint64_t time_nsec;                  /* of a record that was reached at once */
    struct host_mark *mark;              /* counted; NULL: reached */
    struct host_capture_place *captured; /* owned; latest record was captured */
};

static struct host_slab events = {PTHREAD_MUTEX_INITIALIZER, NULL, 128, MAX_EVENTS, 0, NULL, 0};
_Static_assert(sizeof(struct CUevent_st) <= 128, "an event fits its place");

static bool is_event(const struct CUevent_st *event)
{
    return host_slab_holds(&events, event, EVENT_MAGIC);
}

int tuttiHostEventCreate(unsigned flags, struct CUevent_st **event_out)
{
    const unsigned known = TT_EVENT_BLOCKING | TT_EVENT_NO_TIMING | TT_EVENT_INTERPROCESS;
    if (flags & ~known) return HOST_INVALID_VALUE;
    if ((flags & TT_EVENT_INTERPROCESS) && !(flags & TT_EVENT_NO_TIMING)) return HOST_INVALID_VALUE;
    struct CUevent_st *event = host_slab_take(&events);
    if (!event) return HOST_OUT_OF_MEMORY;
    event->flags = flags;
    event->device = host_thread.device;
    pthread_mutex_init(&event->lock, NULL);
    host_slab_enliven(event, EVENT_MAGIC);
    *event_out = event;
    return HOST_OK;
}

static void forget_record(struct CUevent_st *event)
{
    host_mark_drop(event->mark);
    host_capture_place_drop(event->captured);
    event->mark = NULL;
    event->captured = NULL;
}

int tuttiHostEventDestroy(struct CUevent_st *event)
{
    if (!is_event(event)) return HOST_BAD_HANDLE;
    forget_record(event);
    pthread_mutex_destroy(&event->lock);
    host_slab_give(&events, event);
    return HOST_OK;
}

static int record_captured(struct CUevent_st *event, struct CUstream_st *stream)
{
    struct host_capture_place *place = host_capture_place(stream);
    if (!place) return HOST_CAPTURE_INVALIDATED;
    forget_record(event);
    event->captured = place;
    event->recorded = true;
    return HOST_OK;
}

static int record_live(struct CUevent_st *event, struct CUstream_st *stream)
{
    struct host_mark *mark = NULL;
    bool now = host_stream_claim_idle(stream);
    if (now) {
        host_stream_release(stream);
    } else {
        mark = host_mark_create(2);
        struct host_op op = {.kind = HOST_OP_MARK, .mark = mark};
        if (!mark) return HOST_OUT_OF_MEMORY;
        int rc = host_stream_append(stream, &op);
        if (rc) {
            free(mark);
            return rc;
        }
    }
    forget_record(event);
    event->mark = mark;
    event->recorded = true;
    if (now && !(event->flags & TT_EVENT_NO_TIMING)) event->time_nsec = tt_now_nsec();
    return HOST_OK;
}

int tuttiHostEventRecord(struct CUevent_st *event, struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!is_event(event) || !stream) return HOST_BAD_HANDLE;
    if (stream->device != event->device) return HOST_BAD_HANDLE;
    pthread_mutex_lock(&event->lock);
    bool capturing = atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
    int rc = capturing ? record_captured(event, stream) : record_live(event, stream);
    pthread_mutex_unlock(&event->lock);
    return rc;
}

/* Drops a mark that was reached, so that later looks are cheap. Lock held. */
static bool reached(struct CUevent_st *event)
{
    if (!event->mark) return true;
    if (!atomic_load_explicit(&event->mark->reached, memory_order_acquire)) return false;
    event->time_nsec = event->mark->time_nsec;
    host_mark_drop(event->mark);
    event->mark = NULL;
    return true;
}

static int state_of(struct CUevent_st *event)
{
    pthread_mutex_lock(&event->lock);
    int rc = event->captured ? HOST_CAPTURED_EVENT : reached(event) ? HOST_OK : HOST_NOT_READY;
    pthread_mutex_unlock(&event->lock);
    return rc;
}

int tuttiHostEventQuery(struct CUevent_st *event)
{
    if (!is_event(event)) return HOST_BAD_HANDLE;
    int rc = state_of(event);
    if (rc != HOST_NOT_READY) return rc;
    tuttiHostHelp();
    return state_of(event);
}

static bool event_done(void *arg)
{
    return state_of(arg) != HOST_NOT_READY;
}

int tuttiHostEventSynchronize(struct CUevent_st *event)
{
    if (!is_event(event)) return HOST_BAD_HANDLE;
    if (state_of(event) == HOST_NOT_READY) host_wait_until(event_done, event, NULL);
    return state_of(event);
}

int tuttiHostEventElapsed(float *msec, struct CUevent_st *start, struct CUevent_st *end)
{
    if (!is_event(start) || !is_event(end)) return HOST_BAD_HANDLE;
    if ((start->flags | end->flags) & TT_EVENT_NO_TIMING) return HOST_BAD_HANDLE;
    if (!start->recorded || !end->recorded) return HOST_BAD_HANDLE;
    int rc = state_of(start);
    if (!rc) rc = state_of(end);
    if (rc) return rc;
    *msec = (float)((double)((int64_t)end->time_nsec - (int64_t)start->time_nsec) * 1e-6);
    return HOST_OK;
}

int tuttiHostStreamWaitEvent(struct CUstream_st *handle, struct CUevent_st *event)
{
    struct CUstream_st *stream = host_stream_find(handle);
    struct host_mark *mark = NULL;
    int rc = HOST_OK;
    if (!is_event(event) || !stream) return HOST_BAD_HANDLE;
    pthread_mutex_lock(&event->lock);
    if (event->captured) {
        rc = host_capture_join(stream, event->captured);
    } else if (atomic_load_explicit(&stream->capture, memory_order_relaxed)) {
        if (event->recorded && !reached(event)) rc = HOST_CAPTURE_ISOLATION;
    } else if (!reached(event)) {
        mark = event->mark;
        atomic_fetch_add(&mark->refs, 1);
    }
    pthread_mutex_unlock(&event->lock);
    if (!mark) return rc;
    struct host_op op = {.kind = HOST_OP_WAIT, .mark = mark};
    rc = host_stream_append(stream, &op);
    if (rc) host_mark_drop(mark);
    return rc;
}

/* ---- events as items of graphs ---- */

struct event_item {
    struct tt_item item;
    struct CUevent_st *event; /* borrowed; looked at only when it is alive */
    bool wait;
};

static void reach_now(struct CUevent_st *event)
{
    pthread_mutex_lock(&event->lock);
    forget_record(event);
    event->recorded = true;
    event->time_nsec = tt_now_nsec();
    pthread_mutex_unlock(&event->lock);
}

static enum tt_step event_step(struct tt_item *item, enum tt_item_call call)
{
    struct event_item *stands = (struct event_item *)item;
    if (call == TT_ITEM_RELEASE) {
        free(stands);
        return TT_STEP_DONE;
    }
    if (!is_event(stands->event)) return TT_STEP_DONE;
    if (stands->wait) return event_done(stands->event) ? TT_STEP_DONE : TT_STEP_WAIT;
    reach_now(stands->event);
    return TT_STEP_DONE;
}

bool host_event_alive(const struct CUevent_st *event)
{
    return is_event(event);
}

struct tt_item *host_event_item(struct CUevent_st *event, bool wait)
{
    struct event_item *stands = calloc(1, sizeof(*stands));
    if (!stands) return NULL;
    stands->item.step = event_step;
    stands->event = event;
    stands->wait = wait;
    return &stands->item;
}

static int add_event_node(struct CUstream_st *handle, struct CUevent_st *event, bool wait)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!is_event(event) || !stream) return HOST_BAD_HANDLE;
    if (!atomic_load_explicit(&stream->capture, memory_order_relaxed)) return HOST_INVALID_VALUE;
    struct tt_item *item = host_event_item(event, wait);
    if (!item) return HOST_OUT_OF_MEMORY;
    int rc = host_capture_add(stream, &(struct host_op){.kind = HOST_OP_ITEM, .item = item});
    if (rc) {
        event_step(item, TT_ITEM_RELEASE);
        return rc;
    }
    stream->tips[0]->kind = wait ? TT_NODE_WAIT : TT_NODE_RECORD;
    stream->tips[0]->told = (struct tt_node){.kind = stream->tips[0]->kind, .event = event};
    return HOST_OK;
}

int tuttiHostEventRecordExternal(struct CUevent_st *event, struct CUstream_st *stream)
{
    return add_event_node(stream, event, false);
}

int tuttiHostStreamWaitExternal(struct CUstream_st *stream, struct CUevent_st *event)
{
    return add_event_node(stream, event, true);
}
