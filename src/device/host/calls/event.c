/* Events. A record is a place in a stream; with timing also a moment, which a busy stream notes
 * when it gets there. Nothing is allocated, except by captures. */
#include "reset.h"

#include "base/clock.h"
#include "device/host/check/check.h"
#include "device/host/graph/capture.h"
#include "device/host/graph/graph.h"
#include "device/host/host.h"
#include "device/host/memory/ipc.h"
#include "device/host/memory/latch.h"
#include "device/host/memory/slab.h"
#include "device/host/stream/stream.h"

#include <stdlib.h>
#include <time.h>

enum { EVENT_MAGIC = 0x6576656e, MAX_EVENTS = 1 << 20, PLACE_BYTES = 128 };

struct CUevent_st { /* a dead one keeps its latch: queued records of it may still come */
    _Atomic uint32_t magic;
    unsigned flags;
    int device;
    bool recorded;
    struct host_latch latch;
    struct host_place place;             /* of the latest record */
    uint64_t time_nsec;                  /* of it, once reached */
    uint64_t number;                     /* of it: a queued record may come when another was made */
    struct host_capture_place *captured; /* owned; latest record was captured */
    struct host_cell *cell;              /* interprocess: tells of the records of all processes */
    bool imported;                       /* cell is another process's */
    uint64_t cell_number;                /* of this process's latest record */
};

_Static_assert(sizeof(struct CUevent_st) <= PLACE_BYTES, "an event fits its place");

static bool is_event(const struct CUevent_st *event)
{
    return host_slab_holds(&tt_host.events, event, EVENT_MAGIC);
}

/* cell: NULL, or what makes it an interprocess event; the event's then. */
static struct CUevent_st *make(unsigned flags, struct host_cell *cell, bool imported)
{
    struct CUevent_st *event = host_slab_take_used(&tt_host.events, PLACE_BYTES, MAX_EVENTS);
    if (!event) return NULL;
    host_latch_lock(&event->latch);
    event->flags = flags;
    event->device = host_thread.device;
    event->recorded = false;
    event->place = (struct host_place){NULL, 0};
    event->number++;
    event->cell = cell;
    event->cell_number = 0;
    event->imported = imported;
    host_latch_unlock(&event->latch);
    atomic_store_explicit(&event->magic, EVENT_MAGIC, memory_order_release);
    return event;
}

int tuttiHostEventCreate(unsigned flags, struct CUevent_st **event_out)
{
    const unsigned known = TT_EVENT_BLOCKING | TT_EVENT_NO_TIMING | TT_EVENT_INTERPROCESS;
    bool shared = flags & TT_EVENT_INTERPROCESS;
    if (flags & ~known) return HOST_INVALID_VALUE;
    if (shared && !(flags & TT_EVENT_NO_TIMING)) return HOST_INVALID_VALUE;
    int rc = tuttiHostReady();
    if (rc) return rc;
    struct host_cell *cell = shared ? host_cell_take() : NULL;
    if (shared && !cell) return HOST_OUT_OF_MEMORY;
    struct CUevent_st *event = make(flags, cell, false);
    if (!event) {
        if (cell) host_cell_give(cell);
        return HOST_OUT_OF_MEMORY;
    }
    *event_out = event;
    return HOST_OK;
}

int tuttiHostEventPlain(const struct CUevent_st *event)
{
    if (!is_event(event)) return host_bad_handle();
    return event->flags == TT_EVENT_NO_TIMING ||
                   event->flags == (TT_EVENT_NO_TIMING | TT_EVENT_BLOCKING)
               ? HOST_OK
               : HOST_INVALID_VALUE;
}

/* Latch held. */
static void forget_captured(struct CUevent_st *event)
{
    if (event->captured) host_capture_place_drop(event->captured);
    event->captured = NULL;
}

int tuttiHostEventDestroy(struct CUevent_st *event)
{
    uint32_t alive = EVENT_MAGIC;
    if (host_forked() || !is_event(event) ||
        !atomic_compare_exchange_strong(&event->magic, &alive, 0))
        return host_bad_handle();
    if (host_checks()) host_check_forget(event);
    host_latch_lock(&event->latch);
    forget_captured(event);
    event->number++;
    struct host_cell *cell = event->imported ? NULL : event->cell;
    event->cell = NULL;
    host_latch_unlock(&event->latch);
    if (cell) host_cell_give(cell);
    host_slab_give(&tt_host.events, event);
    return HOST_OK;
}

void host_events_reset(int device)
{
    size_t made = atomic_load_explicit(&tt_host.events.made, memory_order_acquire);
    for (size_t i = 0; i < made; i++) {
        struct CUevent_st *event = host_slab_object(&tt_host.events, i);
        if (is_event(event) && event->device == device) tuttiHostEventDestroy(event);
    }
}

/* ---- recording ---- */

static int record_captured(struct CUevent_st *event, struct CUstream_st *stream)
{
    struct host_capture_place *place = host_capture_place(stream);
    if (!place) return HOST_OUT_OF_MEMORY;
    forget_captured(event);
    event->captured = place;
    event->recorded = true;
    return HOST_OK;
}

/* The moment is now when the stream is idle, else it is noted in stream order. */
static int record_timed(struct CUevent_st *event, struct CUstream_st *stream,
                        struct host_place *place)
{
    int rc = host_stream_end(stream, place);
    if (rc) return rc;
    if (host_place_reached(place)) {
        event->time_nsec = tt_now_nsec();
        return HOST_OK;
    }
    struct host_op op = {.kind = HOST_OP_RECORD, .record = {event, event->number}};
    return host_stream_append_at(stream, &op, place);
}

/* Other processes see the record by its number in the cell. */
static int record_shared(struct CUevent_st *event, struct CUstream_st *stream,
                         struct host_place *place)
{
    int rc = host_stream_end(stream, place);
    if (rc) return rc;
    uint64_t number = atomic_fetch_add(&event->cell->recorded, 1) + 1;
    event->cell_number = number;
    if (host_place_reached(place)) {
        host_cell_reach(event->cell, number);
        return HOST_OK;
    }
    struct host_op op = {.kind = HOST_OP_REACH, .reach = {event->cell, number}};
    rc = host_stream_append_at(stream, &op, place);
    if (rc) host_cell_reach(event->cell, number);
    return rc;
}

static int record_live(struct CUevent_st *event, struct CUstream_st *stream)
{
    struct host_place place;
    int rc;
    event->number++;
    if (event->cell) {
        rc = record_shared(event, stream, &place);
    } else if (event->flags & TT_EVENT_NO_TIMING) {
        rc = host_stream_end(stream, &place);
    } else {
        rc = record_timed(event, stream, &place);
    }
    if (rc) return rc;
    forget_captured(event);
    event->place = place;
    event->recorded = true;
    return HOST_OK;
}

/* The usual record: no capture, no timing, no other process, no rules of the legacy stream. */
static inline bool record_plain(struct CUevent_st *event, struct CUstream_st *stream)
{
    host_latch_lock(&event->latch);
    bool plain = !event->cell && !event->captured && (event->flags & TT_EVENT_NO_TIMING) &&
                 !atomic_load_explicit(&stream->capture, memory_order_relaxed) &&
                 !(stream->ordered && host_stream_conflicts(stream));
    if (plain) {
        uint64_t tail = atomic_load_explicit(&stream->tail, memory_order_seq_cst);
        event->number++;
        event->place = (struct host_place){stream, tail};
        event->recorded = true;
    }
    host_latch_unlock(&event->latch);
    return plain;
}

static __attribute__((noinline)) int record(struct CUevent_st *event, struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!stream || !is_event(event)) return host_bad_handle();
    if (stream->device != event->device) return HOST_BAD_HANDLE;
    host_latch_lock(&event->latch);
    bool capturing = atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
    int rc = capturing ? record_captured(event, stream) : record_live(event, stream);
    host_latch_unlock(&event->latch);
    return rc;
}

/* hot */
int tuttiHostEventRecord(struct CUevent_st *event, struct CUstream_st *handle)
{
    struct CUstream_st *stream = host_stream_glance(handle);
    bool plain =
        stream && is_event(event) && stream->device == event->device && record_plain(event, stream);
    int rc = plain ? HOST_OK : record(event, handle);
    if (host_checks() && !rc)
        host_check_record(event, host_stream_find(handle), event->cell != NULL);
    return rc;
}

void host_event_reached(struct CUevent_st *event, uint64_t number)
{
    host_latch_lock(&event->latch);
    if (event->number == number) event->time_nsec = tt_now_nsec();
    host_latch_unlock(&event->latch);
}

/* ---- asking and waiting ---- */

struct shared_place {       /* of an interprocess event's latest record in another process */
    struct host_cell *cell; /* NULL: not such an event, or the latest record was here */
    uint64_t number;
};

static bool is_shared_reached(const struct shared_place *shared)
{
    return !shared->cell || host_cell_reached(shared->cell, shared->number);
}

/* Where the latest record is: in a stream of this process, or behind a cell. Latch held. */
static void latest(const struct CUevent_st *event, struct host_place *place_out,
                   struct shared_place *shared_out)
{
    uint64_t number = event->cell ? atomic_load(&event->cell->recorded) : 0;
    bool here = !event->cell || number == event->cell_number;
    *place_out = here ? event->place : (struct host_place){NULL, 0};
    *shared_out = (struct shared_place){here ? NULL : event->cell, number};
}

/* 0: *place_out and *shared_out are those of the latest record; 907 captured. */
static int place_of(struct CUevent_st *event, struct host_place *place_out,
                    struct shared_place *shared_out)
{
    host_latch_lock(&event->latch);
    int rc = event->captured ? HOST_CAPTURED_EVENT : HOST_OK;
    if (rc) host_capture_place_spoil(event->captured);
    latest(event, place_out, shared_out);
    host_latch_unlock(&event->latch);
    return rc;
}

/* The latest record was in this process and outside of captures, and is reached. */
static bool is_past(struct CUevent_st *event)
{
    host_latch_lock(&event->latch);
    bool past = !event->captured && !event->cell && host_place_reached(&event->place);
    host_latch_unlock(&event->latch);
    return past;
}

/* The latest record was made by another process. */
static bool is_elsewhere(struct CUevent_st *event)
{
    struct host_place place;
    struct shared_place shared;
    host_latch_lock(&event->latch);
    latest(event, &place, &shared);
    host_latch_unlock(&event->latch);
    return shared.cell != NULL;
}

static __attribute__((noinline)) int query(struct CUevent_st *event)
{
    struct host_place place;
    struct shared_place shared;
    if (host_forked() || !is_event(event)) return host_bad_handle();
    int rc = place_of(event, &place, &shared);
    if (rc) return rc;
    if (host_place_reached(&place) && is_shared_reached(&shared)) return HOST_OK;
    return host_ask_place(&place) && is_shared_reached(&shared) ? HOST_OK : HOST_NOT_READY;
}

/* hot */
int tuttiHostEventQuery(struct CUevent_st *event)
{
    int rc = !host_forked() && is_event(event) && is_past(event) ? HOST_OK : query(event);
    if (host_checks() && !rc) host_check_passed(event, is_elsewhere(event));
    return rc;
}

int tuttiHostEventSynchronize(struct CUevent_st *event)
{
    struct host_place place;
    struct shared_place shared;
    if (host_forked() || !is_event(event)) return host_bad_handle();
    int rc = place_of(event, &place, &shared);
    if (!rc && host_thread.in_host_fn) return HOST_NOT_PERMITTED;
    if (rc) return rc;
    host_wait_place(&place);
    if (!is_shared_reached(&shared)) host_wait_cell(shared.cell, shared.number);
    if (host_checks()) host_check_passed(event, shared.cell != NULL);
    return HOST_OK;
}

/* 0: *nsec_out is when it was reached; 400, 600, 907. */
static int time_of(struct CUevent_st *event, uint64_t *nsec_out)
{
    int rc = HOST_OK;
    if (!is_event(event) || (event->flags & TT_EVENT_NO_TIMING)) return host_bad_handle();
    host_latch_lock(&event->latch);
    if (!event->recorded) {
        rc = HOST_BAD_HANDLE;
    } else if (event->captured) {
        rc = HOST_CAPTURED_EVENT;
    } else if (!host_place_reached(&event->place)) {
        rc = HOST_NOT_READY;
    }
    *nsec_out = event->time_nsec;
    host_latch_unlock(&event->latch);
    return rc;
}

int tuttiHostEventElapsed(float *msec, struct CUevent_st *start, struct CUevent_st *end)
{
    uint64_t from = 0;
    uint64_t to = 0;
    if (!is_event(start) || !is_event(end)) return host_bad_handle();
    if (start->device != end->device) return HOST_BAD_HANDLE; /* clocks are their devices' */
    int rc = time_of(start, &from);
    if (!rc || rc == HOST_NOT_READY) {
        int other = time_of(end, &to);
        if (other && !(rc && other == HOST_NOT_READY)) rc = other;
    }
    if (!rc) *msec = (float)((double)((int64_t)to - (int64_t)from) * 1e-6);
    return rc;
}

int tuttiHostStreamWaitEvent(struct CUstream_st *handle, struct CUevent_st *event)
{
    struct CUstream_st *stream = host_stream_find(handle);
    struct host_op op = {.kind = HOST_OP_WAIT};
    struct shared_place shared;
    bool capturing;
    int rc = HOST_OK;
    if (!stream || !is_event(event)) return host_bad_handle();
    host_latch_lock(&event->latch);
    capturing = atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
    latest(event, &op.place, &shared);
    if (event->captured) rc = host_capture_join(stream, event->captured);
    bool captured = event->captured != NULL;
    bool outside = capturing && event->recorded && !captured; /* reached or not */
    host_latch_unlock(&event->latch);
    if (host_checks()) host_check_wait(event, stream, shared.cell != NULL);
    bool reached = host_place_reached(&op.place) && is_shared_reached(&shared);
    if (captured || (reached && !outside)) return rc;
    if (shared.cell) {
        op.kind = HOST_OP_CELL;
        op.cell.cell = shared.cell;
        op.cell.number = shared.number;
    }
    if (capturing) { /* a graph cannot depend on work outside of it */
        host_capture_invalidate(stream);
        return HOST_CAPTURE_ISOLATION;
    }
    return host_stream_append(stream, &op);
}

/* ---- other processes ---- */

int tuttiHostIpcEventGet(struct CUevent_st *event, unsigned char token[TT_IPC_BYTES])
{
    if (host_forked() || !is_event(event) || !event->cell || event->imported)
        return host_bad_handle();
    return host_cell_export(event->cell, token);
}

int tuttiHostIpcEventOpen(const unsigned char token[TT_IPC_BYTES], struct CUevent_st **event_out)
{
    struct host_cell *cell = NULL;
    int rc = tuttiHostReady();
    if (!rc) rc = host_cell_import(token, &cell);
    if (rc) return rc;
    struct CUevent_st *event = make(TT_EVENT_INTERPROCESS | TT_EVENT_NO_TIMING, cell, true);
    if (!event) return HOST_OUT_OF_MEMORY;
    *event_out = event;
    return HOST_OK;
}

/* ---- events as items of graphs ----
 *
 * A launch tells the items of its executable that it was issued, in the order of calls: then a
 * record becomes the event's latest one, though nothing has run yet, and a wait takes down which
 * record is the latest. Each executable has items of its own, whose runs come in the same order. */

struct told {                /* to an item by a launch */
    struct host_place place; /* what a wait is for */
    struct shared_place shared;
};

struct pending {          /* launches that were issued, in their order */
    struct pending *next; /* under the latch; the rest is set once */
    struct told told;
};

struct event_item {
    struct tt_item item;
    struct CUevent_st *event; /* borrowed; looked at only when it is alive */
    bool wait;
    struct CUstream_st *line; /* owned; a record: a ticket for each launch */
    struct host_latch latch;
    struct pending *first, **last; /* owned; under the latch */
    struct pending spare;          /* for when memory is short, if spare_free */
    _Atomic bool spare_free;
};

/* A launch that is under way cannot be refused any more: without memory the spare one is taken, and
 * without that the earlier launches, which workers run, give it back. */
static struct pending *make_pending(struct event_item *own)
{
    const struct timespec nap = {.tv_nsec = 50000};
    for (;;) {
        struct pending *pending = malloc(sizeof(*pending));
        if (pending) return pending;
        if (atomic_exchange(&own->spare_free, false)) return &own->spare;
        nanosleep(&nap, NULL);
    }
}

static void push(struct event_item *own, const struct told *told)
{
    struct pending *pending = make_pending(own);
    pending->told = *told;
    pending->next = NULL;
    host_latch_lock(&own->latch);
    *own->last = pending;
    own->last = &pending->next;
    host_latch_unlock(&own->latch);
}

/* The oldest one stays in the list. */
static struct pending *oldest(struct event_item *own)
{
    host_latch_lock(&own->latch);
    struct pending *pending = own->first;
    host_latch_unlock(&own->latch);
    return pending;
}

static void pop(struct event_item *own)
{
    host_latch_lock(&own->latch);
    struct pending *pending = own->first;
    if (pending) own->first = pending->next;
    if (!own->first) own->last = &own->first;
    host_latch_unlock(&own->latch);
    if (pending == &own->spare) {
        atomic_store(&own->spare_free, true);
    } else {
        free(pending);
    }
}

static struct told issue_record(struct event_item *own)
{
    uint64_t ticket = atomic_fetch_add_explicit(&own->line->tail, 1, memory_order_seq_cst) + 1;
    struct CUevent_st *event = own->event;
    struct told told = {.shared = {NULL, 0}};
    if (is_event(event)) {
        host_latch_lock(&event->latch);
        forget_captured(event);
        event->recorded = true;
        event->number++;
        event->place = (struct host_place){own->line, ticket};
        told.shared.cell = event->cell;
        if (event->cell) {
            told.shared.number = atomic_fetch_add(&event->cell->recorded, 1) + 1;
            event->cell_number = told.shared.number;
        }
        host_latch_unlock(&event->latch);
    }
    return told;
}

/* What a wait that is issued now waits for. */
static struct told latest_of(struct CUevent_st *event)
{
    struct told what = {.shared = {NULL, 0}};
    if (!is_event(event)) return what;
    host_latch_lock(&event->latch);
    latest(event, &what.place, &what.shared);
    host_latch_unlock(&event->latch);
    return what;
}

static enum tt_step run_record(struct event_item *own)
{
    const struct pending *pending = oldest(own);
    uint64_t ticket = atomic_load_explicit(&own->line->done, memory_order_relaxed) + 1;
    struct CUevent_st *event = own->event;
    if (is_event(event)) {
        host_latch_lock(&event->latch);
        if (event->place.stream == own->line && event->place.ticket == ticket)
            event->time_nsec = tt_now_nsec();
        host_latch_unlock(&event->latch);
    }
    if (pending && pending->told.shared.cell)
        host_cell_reach(pending->told.shared.cell, pending->told.shared.number);
    pop(own);
    host_stream_finish(own->line, ticket);
    return TT_STEP_DONE;
}

static enum tt_step run_wait(struct event_item *own)
{
    const struct pending *pending = oldest(own);
    const struct told what = pending ? pending->told : latest_of(own->event);
    if (!host_place_reached(&what.place) || !is_shared_reached(&what.shared)) return TT_STEP_WAIT;
    pop(own);
    return TT_STEP_DONE;
}

static enum tt_step event_step(struct tt_item *item, enum tt_item_call call)
{
    struct event_item *own = (struct event_item *)item;
    struct told what;
    switch (call) {
    case TT_ITEM_ISSUE:
        what = own->wait ? latest_of(own->event) : issue_record(own);
        push(own, &what);
        break;
    case TT_ITEM_STEP: return own->wait ? run_wait(own) : run_record(own);
    case TT_ITEM_RELEASE:
        while (own->first) {
            pop(own);
        }
        host_timeline_give(own->line);
        free(own);
        break;
    case TT_ITEM_TOUCH: host_check_event_node(own->event, own->wait); break;
    }
    return TT_STEP_DONE;
}

bool host_event_alive(const struct CUevent_st *event)
{
    return is_event(event);
}

struct tt_item *host_event_item(struct CUevent_st *event, bool wait)
{
    struct event_item *own = calloc(1, sizeof(*own));
    if (!own) return NULL;
    own->item.step = event_step;
    own->item.wants_issue = true;
    own->item.tells_touches = true;
    own->event = event;
    own->wait = wait;
    own->last = &own->first;
    atomic_store(&own->spare_free, true);
    own->line = wait ? NULL : host_timeline_take();
    if (wait || own->line) return &own->item;
    free(own);
    return NULL;
}

struct tt_item *host_event_item_again(const struct tt_item *item)
{
    const struct event_item *other = (const struct event_item *)item;
    return host_event_item(other->event, other->wait);
}

static int add_event_node(struct CUstream_st *handle, struct CUevent_st *event, bool wait)
{
    struct CUstream_st *stream = host_stream_find(handle);
    if (!is_event(event) || !stream) return HOST_BAD_HANDLE;
    if (!atomic_load_explicit(&stream->capture, memory_order_relaxed)) return HOST_INVALID_VALUE;
    struct tt_item *item = host_event_item(event, wait);
    if (!item) return HOST_OUT_OF_MEMORY;
    const struct host_op op = {.kind = HOST_OP_ITEM, .item = item};
    const struct tt_node told = {.kind = wait ? TT_NODE_WAIT : TT_NODE_RECORD, .event = event};
    int rc = host_capture_add_told(stream, &op, &told);
    if (rc) event_step(item, TT_ITEM_RELEASE);
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
