/* Events as streams and graphs see them. */
#include "event.h"

#include "base/clock.h"
#include "device/host/memory/ipc.h"

bool host_shared_reached(const struct host_shared_place *shared)
{
    return !shared->cell || host_cell_reached(shared->cell, shared->number);
}

void host_event_latest(const struct CUevent_st *event, struct host_place *place_out,
                       struct host_shared_place *shared_out)
{
    uint64_t number = event->cell ? atomic_load(&event->cell->recorded) : 0;
    bool here = !event->cell || number == event->cell_number;
    *place_out = here ? event->place : (struct host_place){NULL, 0};
    *shared_out = (struct host_shared_place){here ? NULL : event->cell, number};
}

void host_event_reached(struct CUevent_st *event, uint64_t number)
{
    host_spinlock_lock(&event->spinlock);
    if (event->number == number) event->time_nsec = tt_now_nsec();
    host_spinlock_unlock(&event->spinlock);
}
