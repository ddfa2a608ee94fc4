/* Time stamps for processors without a counter that is known to be cheap and to run at some GHz:
 * the monotonic clock, three ticks a nanosecond, as budgets in ticks are written for 3 GHz. */
#pragma once

#include <stdint.h>
#include <time.h>

static inline uint64_t tt_cpu_ticks(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 3 * ((uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
}
