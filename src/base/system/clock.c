/* Monotonic time. Nothing here looks at the wall clock, which may jump. */
#include "base/system/clock.h"

#include <errno.h>

uint64_t tt_now_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

struct timespec tt_clock_at(uint64_t nsec)
{
    return (struct timespec){.tv_sec = (time_t)(nsec / 1000000000U),
                             .tv_nsec = (long)(nsec % 1000000000U)};
}

void tt_sleep_usec(uint64_t usec)
{
    struct timespec left = {
        .tv_sec = (time_t)(usec / 1000000U),
        .tv_nsec = (long)(usec % 1000000U) * 1000,
    };
    while (clock_nanosleep(CLOCK_MONOTONIC, 0, &left, &left) == EINTR) {
        continue;
    }
}
