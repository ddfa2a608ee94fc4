/* Events as streams and graphs see them. */
#include "event.h"

#include "base/system/clock.h"
#include "device/host/memory/ipc.h"

bool tt_host_shared_reached(const struct tt_host_shared_position *shared)
{
    return !shared->cell || tt_host_cell_reached(shared->cell, shared->number);
}

void tt_host_event_latest(const struct CUevent_st *event, struct tt_host_position *position_out,
                          struct tt_host_shared_position *shared_out)
{
    uint64_t number = event->cell ? atomic_load(&event->cell->recorded) : 0;
    bool here = !event->cell || number == event->cell_number;
    *position_out = here ? event->position : (struct tt_host_position){NULL, 0};
    *shared_out = (struct tt_host_shared_position){here ? NULL : event->cell, number};
}

void tt_host_event_reached(struct CUevent_st *event, uint64_t number)
{
    tt_host_spinlock_lock(&event->spinlock);
    if (event->number == number) event->time_nsec = tt_now_nsec();
    tt_host_spinlock_unlock(&event->spinlock);
}
