/* Events. A record is a position in a stream; with timing also a moment, which a busy stream notes
 * when it gets there. Nothing is allocated, except by captures. */
#include "device/host/stream/event.h"

#include "reset.h"

#include "base/system/clock.h"
#include "device/host/check/check.h"
#include "device/host/graph/capture.h"
#include "device/host/graph/graph.h"
#include "device/host/host.h"
#include "device/host/memory/ipc.h"

/* cell: NULL, or what makes it an interprocess event; the event's then. */
static struct CUevent_st *make(unsigned flags, struct tt_host_cell *cell, bool imported)
{
    struct CUevent_st *event =
        tt_host_slab_take_used(&tt_host.events, TT_HOST_EVENT_BYTES, TT_HOST_EVENTS_MOST);
    if (!event) return NULL;
    tt_host_spinlock_lock(&event->spinlock);
    event->flags = flags;
    event->device = tt_host_thread.device;
    event->recorded = false;
    event->position = (struct tt_host_position){NULL, 0};
    event->number++;
    event->cell = cell;
    event->cell_number = 0;
    event->imported = imported;
    tt_host_spinlock_unlock(&event->spinlock);
    atomic_store_explicit(&event->magic, TT_HOST_EVENT_MAGIC, memory_order_release);
    return event;
}

int tuttiHostEventCreate(unsigned flags, struct CUevent_st **event_out)
{
    const unsigned known = TT_EVENT_BLOCKING | TT_EVENT_NO_TIMING | TT_EVENT_INTERPROCESS;
    bool shared = flags & TT_EVENT_INTERPROCESS;
    if (flags & ~known) return TT_HOST_INVALID_VALUE;
    if (shared && !(flags & TT_EVENT_NO_TIMING)) return TT_HOST_INVALID_VALUE;
    int rc = tuttiHostReady();
    if (rc) return rc;
    struct tt_host_cell *cell = shared ? tt_host_cell_take() : NULL;
    if (shared && !cell) return TT_HOST_OUT_OF_MEMORY;
    struct CUevent_st *event = make(flags, cell, false);
    if (!event) {
        if (cell) tt_host_cell_give(cell);
        return TT_HOST_OUT_OF_MEMORY;
    }
    *event_out = event;
    return TT_HOST_OK;
}

int tuttiHostEventPlain(const struct CUevent_st *event)
{
    if (!tt_host_event_holds(event)) return tt_host_bad_handle();
    return event->flags == TT_EVENT_NO_TIMING ||
                   event->flags == (TT_EVENT_NO_TIMING | TT_EVENT_BLOCKING)
               ? TT_HOST_OK
               : TT_HOST_INVALID_VALUE;
}

int tuttiHostEventDestroy(struct CUevent_st *event)
{
    uint32_t alive = TT_HOST_EVENT_MAGIC;
    if (tt_host_forked() || !tt_host_event_holds(event) ||
        !atomic_compare_exchange_strong(&event->magic, &alive, 0))
        return tt_host_bad_handle();
    if (tt_host_checks()) tt_host_check_forget(event);
    tt_host_spinlock_lock(&event->spinlock);
    tt_host_event_uncapture(event);
    event->number++;
    struct tt_host_cell *cell = event->imported ? NULL : event->cell;
    event->cell = NULL;
    tt_host_spinlock_unlock(&event->spinlock);
    if (cell) tt_host_cell_give(cell);
    tt_host_slab_give(&tt_host.events, event);
    return TT_HOST_OK;
}

void tt_host_events_reset(int device)
{
    size_t made = atomic_load_explicit(&tt_host.events.made, memory_order_acquire);
    for (size_t i = 0; i < made; i++) {
        struct CUevent_st *event = tt_host_slab_object(&tt_host.events, i);
        if (tt_host_event_holds(event) && event->device == device) tuttiHostEventDestroy(event);
    }
}

/* ---- recording ---- */

static int record_captured(struct CUevent_st *event, struct CUstream_st *stream)
{
    struct tt_host_capture_position *position = tt_host_capture_position(stream);
    if (!position) return TT_HOST_OUT_OF_MEMORY;
    tt_host_event_uncapture(event);
    event->captured = position;
    event->recorded = true;
    return TT_HOST_OK;
}

/* The moment is now when the stream is idle, else it is noted in stream order. */
static int record_timed(struct CUevent_st *event, struct CUstream_st *stream,
                        struct tt_host_position *position)
{
    int rc = tt_host_stream_end(stream, position);
    if (rc) return rc;
    if (tt_host_position_reached(position)) {
        event->time_nsec = tt_now_nsec();
        return TT_HOST_OK;
    }
    struct tt_host_op op = {.kind = TT_HOST_OP_RECORD, .record = {event, event->number}};
    return tt_host_stream_append_at(stream, &op, position);
}

/* Other processes see the record by its number in the cell. */
static int record_shared(struct CUevent_st *event, struct CUstream_st *stream,
                         struct tt_host_position *position)
{
    int rc = tt_host_stream_end(stream, position);
    if (rc) return rc;
    uint64_t number = atomic_fetch_add(&event->cell->recorded, 1) + 1;
    event->cell_number = number;
    if (tt_host_position_reached(position)) {
        tt_host_cell_reach(event->cell, number);
        return TT_HOST_OK;
    }
    struct tt_host_op op = {.kind = TT_HOST_OP_REACH, .reach = {event->cell, number}};
    rc = tt_host_stream_append_at(stream, &op, position);
    if (rc) tt_host_cell_reach(event->cell, number);
    return rc;
}

static int record_live(struct CUevent_st *event, struct CUstream_st *stream)
{
    struct tt_host_position position;
    int rc;
    event->number++;
    if (event->cell) {
        rc = record_shared(event, stream, &position);
    } else if (event->flags & TT_EVENT_NO_TIMING) {
        rc = tt_host_stream_end(stream, &position);
    } else {
        rc = record_timed(event, stream, &position);
    }
    if (rc) return rc;
    tt_host_event_uncapture(event);
    event->position = position;
    event->recorded = true;
    return TT_HOST_OK;
}

/* The usual record: no capture, no timing, no other process, no rules of the legacy stream. */
static inline bool record_plain(struct CUevent_st *event, struct CUstream_st *stream)
{
    tt_host_spinlock_lock(&event->spinlock);
    bool plain = !event->cell && !event->captured && (event->flags & TT_EVENT_NO_TIMING) &&
                 !atomic_load_explicit(&stream->capture, memory_order_relaxed) &&
                 !(stream->ordered && tt_host_stream_conflicts(stream));
    if (plain) {
        uint64_t tail = atomic_load_explicit(&stream->line.tail, memory_order_seq_cst);
        event->number++;
        event->position = (struct tt_host_position){stream, tail};
        event->recorded = true;
    }
    tt_host_spinlock_unlock(&event->spinlock);
    return plain;
}

static __attribute__((noinline)) int record(struct CUevent_st *event, struct CUstream_st *handle)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!stream || !tt_host_event_holds(event)) return tt_host_bad_handle();
    if (stream->device != event->device) return TT_HOST_BAD_HANDLE;
    tt_host_spinlock_lock(&event->spinlock);
    bool capturing = atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
    int rc = capturing ? record_captured(event, stream) : record_live(event, stream);
    tt_host_spinlock_unlock(&event->spinlock);
    return rc;
}

/* hot */
int tuttiHostEventRecord(struct CUevent_st *event, struct CUstream_st *handle)
{
    struct CUstream_st *stream = tt_host_stream_glance(handle);
    bool plain = stream && tt_host_event_holds(event) && stream->device == event->device &&
                 record_plain(event, stream);
    int rc = plain ? TT_HOST_OK : record(event, handle);
    if (tt_host_checks() && !rc)
        tt_host_check_record(event, tt_host_stream_find(handle), event->cell != NULL);
    return rc;
}

/* ---- asking and waiting ---- */

/* 0: *position_out and *shared_out are those of the latest record; 907 captured. */
static int position_of(struct CUevent_st *event, struct tt_host_position *position_out,
                       struct tt_host_shared_position *shared_out)
{
    tt_host_spinlock_lock(&event->spinlock);
    int rc = event->captured ? TT_HOST_CAPTURED_EVENT : TT_HOST_OK;
    if (rc) tt_host_capture_position_spoil(event->captured);
    tt_host_event_latest(event, position_out, shared_out);
    tt_host_spinlock_unlock(&event->spinlock);
    return rc;
}

/* The latest record was in this process and outside of captures, and is reached. */
static bool is_past(struct CUevent_st *event)
{
    tt_host_spinlock_lock(&event->spinlock);
    bool past = !event->captured && !event->cell && tt_host_position_reached(&event->position);
    tt_host_spinlock_unlock(&event->spinlock);
    return past;
}

/* The latest record was made by another process. */
static bool is_elsewhere(struct CUevent_st *event)
{
    struct tt_host_position position;
    struct tt_host_shared_position shared;
    tt_host_spinlock_lock(&event->spinlock);
    tt_host_event_latest(event, &position, &shared);
    tt_host_spinlock_unlock(&event->spinlock);
    return shared.cell != NULL;
}

static __attribute__((noinline)) int query(struct CUevent_st *event)
{
    struct tt_host_position position;
    struct tt_host_shared_position shared;
    if (tt_host_forked() || !tt_host_event_holds(event)) return tt_host_bad_handle();
    int rc = position_of(event, &position, &shared);
    if (rc) return rc;
    if (tt_host_position_reached(&position) && tt_host_shared_reached(&shared)) return TT_HOST_OK;
    return tt_host_ask_position(&position) && tt_host_shared_reached(&shared) ? TT_HOST_OK
                                                                              : TT_HOST_NOT_READY;
}

/* hot */
int tuttiHostEventQuery(struct CUevent_st *event)
{
    int rc = !tt_host_forked() && tt_host_event_holds(event) && is_past(event) ? TT_HOST_OK
                                                                               : query(event);
    if (tt_host_checks() && !rc) tt_host_check_passed(event, is_elsewhere(event));
    return rc;
}

int tuttiHostEventSynchronize(struct CUevent_st *event)
{
    struct tt_host_position position;
    struct tt_host_shared_position shared;
    if (tt_host_forked() || !tt_host_event_holds(event)) return tt_host_bad_handle();
    int rc = position_of(event, &position, &shared);
    if (!rc && tt_host_thread.in_host_fn) return TT_HOST_NOT_PERMITTED;
    if (rc) return rc;
    tt_host_wait_position(&position);
    if (!tt_host_shared_reached(&shared)) tt_host_wait_cell(shared.cell, shared.number);
    if (tt_host_checks()) tt_host_check_passed(event, shared.cell != NULL);
    return TT_HOST_OK;
}

/* 0: *nsec_out is when it was reached; 400, 600, 907. */
static int time_of(struct CUevent_st *event, uint64_t *nsec_out)
{
    int rc = TT_HOST_OK;
    if (!tt_host_event_holds(event) || (event->flags & TT_EVENT_NO_TIMING))
        return tt_host_bad_handle();
    tt_host_spinlock_lock(&event->spinlock);
    if (!event->recorded) {
        rc = TT_HOST_BAD_HANDLE;
    } else if (event->captured) {
        rc = TT_HOST_CAPTURED_EVENT;
    } else if (!tt_host_position_reached(&event->position)) {
        rc = TT_HOST_NOT_READY;
    }
    *nsec_out = event->time_nsec;
    tt_host_spinlock_unlock(&event->spinlock);
    return rc;
}

int tuttiHostEventElapsed(float *msec, struct CUevent_st *start, struct CUevent_st *end)
{
    uint64_t from = 0;
    uint64_t to = 0;
    if (!tt_host_event_holds(start) || !tt_host_event_holds(end)) return tt_host_bad_handle();
    if (start->device != end->device) return TT_HOST_BAD_HANDLE; /* clocks are their devices' */
    int rc = time_of(start, &from);
    if (!rc || rc == TT_HOST_NOT_READY) {
        int other = time_of(end, &to);
        if (other && !(rc && other == TT_HOST_NOT_READY)) rc = other;
    }
    if (rc) return rc;
    *msec = (float)((double)((int64_t)to - (int64_t)from) * 1e-6);
    if (tt_host_checks()) { /* both are reached, or there was no answer */
        tt_host_check_passed(start, is_elsewhere(start));
        tt_host_check_passed(end, is_elsewhere(end));
    }
    return TT_HOST_OK;
}

int tuttiHostStreamWaitEvent(struct CUstream_st *handle, struct CUevent_st *event)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    struct tt_host_op op = {.kind = TT_HOST_OP_WAIT};
    struct tt_host_shared_position shared;
    bool capturing;
    int rc = TT_HOST_OK;
    if (!stream || !tt_host_event_holds(event)) return tt_host_bad_handle();
    tt_host_spinlock_lock(&event->spinlock);
    capturing = atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
    tt_host_event_latest(event, &op.position, &shared);
    if (event->captured) rc = tt_host_capture_join(stream, event->captured);
    bool captured = event->captured != NULL;
    bool outside = capturing && event->recorded && !captured; /* reached or not */
    tt_host_spinlock_unlock(&event->spinlock);
    if (tt_host_checks()) tt_host_check_wait(event, stream, shared.cell != NULL);
    bool reached = tt_host_position_reached(&op.position) && tt_host_shared_reached(&shared);
    if (captured || (reached && !outside)) return rc;
    if (shared.cell) {
        op.kind = TT_HOST_OP_CELL;
        op.cell.cell = shared.cell;
        op.cell.number = shared.number;
    }
    if (capturing) { /* a graph cannot depend on work outside of it */
        tt_host_capture_invalidate(stream);
        return TT_HOST_CAPTURE_ISOLATION;
    }
    return tt_host_stream_append(stream, &op);
}

/* ---- other processes ---- */

int tuttiHostIpcEventGet(struct CUevent_st *event, unsigned char token[TT_IPC_BYTES])
{
    if (tt_host_forked() || !tt_host_event_holds(event) || !event->cell || event->imported)
        return tt_host_bad_handle();
    return tt_host_cell_export(event->cell, token);
}

int tuttiHostIpcEventOpen(const unsigned char token[TT_IPC_BYTES], struct CUevent_st **event_out)
{
    struct tt_host_cell *cell = NULL;
    int rc = tuttiHostReady();
    if (!rc) rc = tt_host_cell_import(token, &cell);
    if (rc) return rc;
    struct CUevent_st *event = make(TT_EVENT_INTERPROCESS | TT_EVENT_NO_TIMING, cell, true);
    if (!event) return TT_HOST_OUT_OF_MEMORY;
    *event_out = event;
    return TT_HOST_OK;
}

/* ---- events as nodes of graphs ---- */

static int add_event_node(struct CUstream_st *handle, struct CUevent_st *event, bool wait)
{
    struct CUstream_st *stream = tt_host_stream_find(handle);
    if (!tt_host_event_holds(event) || !stream) return TT_HOST_BAD_HANDLE;
    if (!atomic_load_explicit(&stream->capture, memory_order_relaxed)) return TT_HOST_INVALID_VALUE;
    struct tt_item *item = tt_host_event_item(event, wait);
    if (!item) return TT_HOST_OUT_OF_MEMORY;
    const struct tt_host_op op = {.kind = TT_HOST_OP_ITEM, .item = item};
    const struct tt_node params = {.kind = wait ? TT_NODE_WAIT : TT_NODE_RECORD, .event = event};
    int rc = tt_host_capture_add_node(stream, &op, &params);
    if (rc) item->step(item, TT_ITEM_RELEASE);
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the graph owns what contains the item */
    return rc;
}

int tuttiHostEventRecordExternal(struct CUevent_st *event, struct CUstream_st *stream)
{
    return add_event_node(stream, event, false);
}

int tuttiHostStreamWaitExternal(struct CUstream_st *stream, struct CUevent_st *event)
{
    return add_event_node(stream, event, true);
}
