/* Events as items of graphs.
 *
 * A launch informs the items of its executable that it was issued, in the order of calls: then a
 * record becomes the event's latest one, though nothing has run yet, and a wait takes down which
 * record is the latest. Each executable has items of its own, whose runs come in the same order. */
#include "capture.h"
#include "graph.h"

#include "base/system/clock.h"
#include "device/host/check/check.h"
#include "device/host/memory/ipc.h"
#include "device/host/stream/claim.h"
#include "device/host/stream/event.h"

#include <stdlib.h>
#include <time.h>

void tt_host_event_uncapture(struct CUevent_st *event)
{
    if (event->captured) tt_host_capture_position_drop(event->captured);
    event->captured = NULL;
}

struct binding {                      /* to an item by a launch */
    struct tt_host_position position; /* what a wait is for */
    struct tt_host_shared_position shared;
};

struct pending {          /* launches that were issued, in their order */
    struct pending *next; /* under the spinlock; the rest is set once */
    struct binding binding;
};

struct event_item {
    struct tt_item item;
    struct CUevent_st *event; /* borrowed; looked at only when it is alive */
    bool wait;
    struct CUstream_st *line; /* owned; a record: a sequence number for each launch */
    struct tt_host_spinlock spinlock;
    struct pending *first, **last; /* owned; under the spinlock */
    struct pending spare;          /* for when memory is short, if spare_free */
    _Atomic bool spare_free;
};

/* A launch that is under way cannot be refused any more: without memory the spare one is taken, and
 * without that the earlier launches, which workers run, give it back. */
static struct pending *make_pending(struct event_item *own)
{
    const struct timespec interval = {.tv_nsec = 50000};
    for (;;) {
        struct pending *pending = malloc(sizeof(*pending));
        if (pending) return pending;
        if (atomic_exchange(&own->spare_free, false)) return &own->spare;
        nanosleep(&interval, NULL);
    }
}

static void push(struct event_item *own, const struct binding *binding)
{
    struct pending *pending = make_pending(own);
    pending->binding = *binding;
    pending->next = NULL;
    tt_host_spinlock_lock(&own->spinlock);
    *own->last = pending;
    own->last = &pending->next;
    tt_host_spinlock_unlock(&own->spinlock);
}

/* The oldest one stays in the list. */
static struct pending *oldest(struct event_item *own)
{
    tt_host_spinlock_lock(&own->spinlock);
    struct pending *pending = own->first;
    tt_host_spinlock_unlock(&own->spinlock);
    return pending;
}

static void pop(struct event_item *own)
{
    tt_host_spinlock_lock(&own->spinlock);
    struct pending *pending = own->first;
    if (pending) own->first = pending->next;
    if (!own->first) own->last = &own->first;
    tt_host_spinlock_unlock(&own->spinlock);
    if (pending == &own->spare) {
        atomic_store(&own->spare_free, true);
    } else {
        free(pending);
    }
}

static struct binding issue_record(struct event_item *own)
{
    uint64_t seq = atomic_fetch_add_explicit(&own->line->line.tail, 1, memory_order_seq_cst) + 1;
    struct CUevent_st *event = own->event;
    struct binding binding = {.shared = {NULL, 0}};
    if (tt_host_event_holds(event)) {
        tt_host_spinlock_lock(&event->spinlock);
        tt_host_event_uncapture(event);
        event->recorded = true;
        event->number++;
        event->position = (struct tt_host_position){own->line, seq};
        binding.shared.cell = event->cell;
        if (event->cell) {
            binding.shared.number = atomic_fetch_add(&event->cell->recorded, 1) + 1;
            event->cell_number = binding.shared.number;
        }
        tt_host_spinlock_unlock(&event->spinlock);
    }
    return binding;
}

/* What a wait that is issued now waits for. */
static struct binding latest_of(struct CUevent_st *event)
{
    struct binding what = {.shared = {NULL, 0}};
    if (!tt_host_event_holds(event)) return what;
    tt_host_spinlock_lock(&event->spinlock);
    tt_host_event_latest(event, &what.position, &what.shared);
    tt_host_spinlock_unlock(&event->spinlock);
    return what;
}

static enum tt_step run_record(struct event_item *own)
{
    const struct pending *pending = oldest(own);
    uint64_t seq = atomic_load_explicit(&own->line->line.done, memory_order_relaxed) + 1;
    struct CUevent_st *event = own->event;
    if (tt_host_event_holds(event)) {
        tt_host_spinlock_lock(&event->spinlock);
        if (event->position.stream == own->line && event->position.seq == seq)
            event->time_nsec = tt_now_nsec();
        tt_host_spinlock_unlock(&event->spinlock);
    }
    if (pending && pending->binding.shared.cell)
        tt_host_cell_reach(pending->binding.shared.cell, pending->binding.shared.number);
    pop(own);
    tt_host_stream_finish(own->line, seq);
    return TT_STEP_DONE;
}

static enum tt_step run_wait(struct event_item *own)
{
    const struct pending *pending = oldest(own);
    const struct binding what = pending ? pending->binding : latest_of(own->event);
    if (!tt_host_position_reached(&what.position) || !tt_host_shared_reached(&what.shared))
        return TT_STEP_WAIT;
    pop(own);
    return TT_STEP_DONE;
}

static enum tt_step event_step(struct tt_item *item, enum tt_item_call call)
{
    struct event_item *own = (struct event_item *)item;
    struct binding what;
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
        tt_host_timeline_give(own->line);
        free(own);
        break;
    case TT_ITEM_HOLD:
    case TT_ITEM_LET: break;
    case TT_ITEM_TOUCH: tt_host_check_event_node(own->event, own->wait); break;
    }
    return TT_STEP_DONE;
}

struct tt_item *tt_host_event_item(struct CUevent_st *event, bool wait)
{
    struct event_item *own = calloc(1, sizeof(*own));
    if (!own) return NULL;
    own->item.step = event_step;
    own->item.wants_issue = true;
    own->item.reports_touches = true;
    own->event = event;
    own->wait = wait;
    own->last = &own->first;
    atomic_store(&own->spare_free, true);
    own->line = wait ? NULL : tt_host_timeline_take();
    if (wait || own->line) return &own->item;
    free(own);
    return NULL;
}

struct tt_item *tt_host_event_item_again(const struct tt_item *item)
{
    const struct event_item *other = (const struct event_item *)item;
    return tt_host_event_item(other->event, other->wait);
}
