/* Events as streams and graphs see them: where the latest record is. Private to the room. */
#pragma once

#include "stream.h"

#include "device/host/heap/slab.h"
#include "device/host/heap/spinlock.h"

struct tt_host_capture_position;
struct tt_host_cell;

enum { TT_HOST_EVENT_MAGIC = 0x6576656e, TT_HOST_EVENTS_MOST = 1 << 20, TT_HOST_EVENT_BYTES = 128 };

struct CUevent_st { /* a dead one keeps its spinlock: queued records of it may still come */
    _Atomic uint32_t magic;
    unsigned flags;
    int device;
    bool recorded;
    struct tt_host_spinlock spinlock;
    struct tt_host_position position; /* of the latest record */
    uint64_t time_nsec;               /* of it, once reached */
    uint64_t number;                  /* of it: a queued record may come when another was made */
    struct tt_host_capture_position *captured; /* owned; latest record was captured */
    struct tt_host_cell *cell; /* interprocess: shows the records of all processes */
    bool imported;             /* cell is another process's */
    uint64_t cell_number;      /* of this process's latest record */
};

_Static_assert(sizeof(struct CUevent_st) <= TT_HOST_EVENT_BYTES,
               "an event fits its slot of the slab");

struct tt_host_shared_position { /* of an interprocess event's latest record in another process */
    struct tt_host_cell *cell;   /* NULL: not such an event, or the latest record was here */
    uint64_t number;
};

static inline bool tt_host_event_holds(const struct CUevent_st *event)
{
    return tt_host_slab_holds(&tt_host.events, event, TT_HOST_EVENT_MAGIC);
}

bool tt_host_shared_reached(const struct tt_host_shared_position *shared);
/* Where the latest record is: in a stream of this process, or behind a cell. Spinlock held. */
void tt_host_event_latest(const struct CUevent_st *event, struct tt_host_position *position_out,
                          struct tt_host_shared_position *shared_out);
/* Note that the record with this number was reached, if it is still the latest one. */
void tt_host_event_reached(struct CUevent_st *event, uint64_t number);
