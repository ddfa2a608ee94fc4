/* Events as streams and graphs see them: where the latest record is. Private to the room. */
#pragma once

#include "stream.h"

#include "device/host/memory/slab.h"
#include "device/host/memory/spinlock.h"

struct host_capture_position;
struct host_cell;

enum { HOST_EVENT_MAGIC = 0x6576656e, HOST_EVENTS_MOST = 1 << 20, HOST_EVENT_BYTES = 128 };

struct CUevent_st { /* a dead one keeps its spinlock: queued records of it may still come */
    _Atomic uint32_t magic;
    unsigned flags;
    int device;
    bool recorded;
    struct host_spinlock spinlock;
    struct host_position position; /* of the latest record */
    uint64_t time_nsec;            /* of it, once reached */
    uint64_t number;               /* of it: a queued record may come when another was made */
    struct host_capture_position *captured; /* owned; latest record was captured */
    struct host_cell *cell; /* interprocess: tells of the records of all processes */
    bool imported;          /* cell is another process's */
    uint64_t cell_number;   /* of this process's latest record */
};

_Static_assert(sizeof(struct CUevent_st) <= HOST_EVENT_BYTES, "an event fits its slot of the slab");

struct host_shared_position { /* of an interprocess event's latest record in another process */
    struct host_cell *cell;   /* NULL: not such an event, or the latest record was here */
    uint64_t number;
};

static inline bool host_event_holds(const struct CUevent_st *event)
{
    return host_slab_holds(&tt_host.events, event, HOST_EVENT_MAGIC);
}

bool host_shared_reached(const struct host_shared_position *shared);
/* Where the latest record is: in a stream of this process, or behind a cell. Spinlock held. */
void host_event_latest(const struct CUevent_st *event, struct host_position *position_out,
                       struct host_shared_position *shared_out);
/* The record with this number was reached, if it is the latest one yet. */
void host_event_reached(struct CUevent_st *event, uint64_t number);
