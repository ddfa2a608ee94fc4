/* Vector clocks: for each task, its last operation that is known to be over. Private to check/. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct tt_check_clock { /* per task: the last operation that is known; shared ones do not change */
    unsigned refs;
    size_t count;
    uint64_t at[];
};

void tt_check_clock_drop(struct tt_check_clock *clock);
struct tt_check_clock *tt_check_clock_hold(struct tt_check_clock *clock);
/* Each entry of *into becomes the larger one of both. */
void tt_check_clock_merge(struct tt_check_clock **into, const struct tt_check_clock *from);
void tt_check_clock_raise(struct tt_check_clock **clock, size_t task, uint64_t epoch);
/* Each entry of *into becomes the smaller one of both. */
void tt_check_clock_limit(struct tt_check_clock **into, const struct tt_check_clock *by);
static inline uint64_t tt_check_clock_of(const struct tt_check_clock *clock, size_t task)
{
    return clock && task < clock->count ? clock->at[task] : 0;
}
