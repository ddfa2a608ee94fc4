/* Vector clocks: for each task the last operation that is certain to be over. One that another task
 * else holds is copied before it changes. */
#include "device/host/check/state.h"

#include <stdlib.h>
#include <string.h>

struct tt_check_clock *tt_check_clock_hold(struct tt_check_clock *clock)
{
    if (clock) clock->refs++;
    return clock;
}

void tt_check_clock_drop(struct tt_check_clock *clock)
{
    if (clock && --clock->refs == 0) free(clock);
}

/* A clock of our own with room for `count` tasks in place of *clock; false: out of memory. */
static bool own(struct tt_check_clock **clock, size_t count)
{
    struct tt_check_clock *old = *clock;
    size_t had = old ? old->count : 0;
    if (old && old->refs == 1 && had >= count) return true;
    if (count < had) count = had;
    struct tt_check_clock *fresh = calloc(1, sizeof(*fresh) + count * sizeof(fresh->at[0]));
    if (!fresh) return false;
    fresh->refs = 1;
    fresh->count = count;
    if (old) memcpy(fresh->at, old->at, had * sizeof(fresh->at[0]));
    tt_check_clock_drop(old);
    *clock = fresh;
    return true;
}

void tt_check_clock_raise(struct tt_check_clock **clock, size_t task, uint64_t epoch)
{
    if (tt_check_clock_of(*clock, task) >= epoch || !own(clock, task + 1)) return;
    (*clock)->at[task] = epoch;
}

void tt_check_clock_merge(struct tt_check_clock **into, const struct tt_check_clock *from)
{
    bool news = false;
    if (!from || from == *into) return;
    for (size_t i = 0; !news && i < from->count; i++) {
        news = from->at[i] > tt_check_clock_of(*into, i);
    }
    if (!news || !own(into, from->count)) return;
    for (size_t i = 0; i < from->count; i++) {
        if (from->at[i] > (*into)->at[i]) (*into)->at[i] = from->at[i];
    }
}

void tt_check_clock_limit(struct tt_check_clock **into, const struct tt_check_clock *by)
{
    if (!*into || *into == by) return;
    if (!by) {
        tt_check_clock_drop(*into);
        *into = NULL;
        return;
    }
    if (!own(into, (*into)->count)) return;
    for (size_t i = 0; i < (*into)->count; i++) {
        if (tt_check_clock_of(by, i) < (*into)->at[i]) (*into)->at[i] = tt_check_clock_of(by, i);
    }
}

bool tt_check_before(const struct tt_check_op *first, const struct tt_check_op *second)
{
    if (first->task == second->task) return first->epoch <= second->epoch;
    return tt_check_clock_of(second->before, first->task) >= first->epoch;
}
