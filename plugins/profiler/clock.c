/* From ticks to nanoseconds of the monotonic clock. Whenever the rings are emptied both are read at
 * one time; between two such pairs time is a straight line. So the order of all records of a
 * process stays what it was, and the clock's corrections are followed. */
#include "trace.h"

enum { PAIRS = TRACE_CLOCK_PAIRS, TRIES = 3 };

static struct trace_clock_pair *pair_at(struct trace_clock *clock, uint64_t i)
{
    return &clock->pairs[i % PAIRS];
}

uint64_t trace_clock_pair(struct trace_clock *clock)
{
    struct trace_clock_pair best = {0};
    uint64_t best_width = UINT64_MAX;
    for (int k = 0; k < TRIES; k++) {
        uint64_t before = trace_ticks(), nsec = trace_clock_nsec(), after = trace_ticks();
        if (after - before >= best_width) continue;
        best_width = after - before;
        best = (struct trace_clock_pair){.ticks = before + (after - before) / 2, .nsec = nsec};
    }
    const struct trace_clock_pair *last = clock->count ? pair_at(clock, clock->count - 1) : NULL;
    if (last && (best.ticks <= last->ticks || best.nsec < last->nsec)) return last->ticks;
    if (last) best.slope = (double)(best.nsec - last->nsec) / (double)(best.ticks - last->ticks);
    *pair_at(clock, clock->count) = best;
    clock->count++;
    return best.ticks;
}

/* Only a thread that was stopped while it recorded comes later than the oldest pair. */
uint64_t trace_clock_at(struct trace_clock *clock, uint64_t ticks)
{
    uint64_t at = clock->count - 1;
    uint64_t oldest = clock->count > PAIRS ? clock->count - PAIRS : 0;
    while (at > oldest + 1 && ticks < pair_at(clock, at - 1)->ticks)
        at--;
    const struct trace_clock_pair *pair = pair_at(clock, at);
    return pair->nsec + (uint64_t)(int64_t)((double)(int64_t)(ticks - pair->ticks) * pair->slope);
}
