/* A thread that finds a spinlock taken gives the core to its holder, and sleeps when that does not
 * help: a holder of lower priority gets no core from a yield. */
#include "spinlock.h"

#include <sched.h>
#include <time.h>

enum { YIELDS = 64, SLEEP_NSEC = 50000 };

void tt_host_spinlock_wait(const struct tt_host_spinlock *spinlock)
{
    const struct timespec interval = {.tv_nsec = SLEEP_NSEC};
    for (int looks = 0; atomic_load_explicit(&spinlock->taken, memory_order_relaxed); looks++) {
        if (looks < YIELDS) {
            sched_yield();
        } else {
            nanosleep(&interval, NULL);
        }
    }
}
