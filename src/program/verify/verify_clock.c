/* Vector clocks that share their vectors: releasing is one more reference, and only a thread that
 * learns something new while its vector is shared copies it. */
#include "verify_state.h"

#include <stdlib.h>
#include <string.h>

bool tt_verify_knows(const struct tt_verify_clock *clock, int thread, uint32_t moment)
{
    if (thread == clock->thread) return moment <= clock->own;
    return moment == 0 || (clock->vector && moment <= clock->vector->at[thread]);
}

void tt_verify_clock_drop(struct tt_verify_clock *clock)
{
    if (clock->vector && --clock->vector->refs == 0) free(clock->vector);
    clock->vector = NULL;
}

/* A vector that only this clock holds. */
static bool make_own(struct tt_verify *verify, struct tt_verify_clock *clock)
{
    if (clock->vector && clock->vector->refs == 1) return true;
    size_t bytes = (size_t)verify->nthreads * sizeof(uint32_t);
    struct tt_verify_vector *vector = malloc(sizeof(*vector) + bytes);
    if (!vector) {
        tt_verify_fail(verify, NULL, "out of memory for clocks");
        return false;
    }
    vector->refs = 1;
    if (clock->vector) {
        memcpy(vector->at, clock->vector->at, bytes);
    } else {
        memset(vector->at, 0, bytes);
    }
    tt_verify_clock_drop(clock);
    clock->vector = vector;
    return true;
}

bool tt_verify_join(struct tt_verify *verify, struct tt_verify_clock *clock,
                    const struct tt_verify_clock *other)
{
    if (verify->alone) return true;
    bool all = other->thread < 0;
    /* a clock with a moment of a thread has joined all that was known there then */
    if (!all && tt_verify_knows(clock, other->thread, other->own)) return true;
    if (all && other->vector == clock->vector) return true;
    if (!make_own(verify, clock)) return false;
    uint32_t *restrict at = clock->vector->at;
    const uint32_t *restrict from = other->vector ? other->vector->at : NULL;
    for (int t = 0; from && t < verify->nthreads; t++)
        at[t] = from[t] > at[t] ? from[t] : at[t];
    if (!all) at[other->thread] = other->own;
    return true;
}

bool tt_verify_join_all(struct tt_verify *verify, struct tt_verify_clock *clock,
                        const struct tt_verify_clock *clocks, struct tt_verify_clock *sum)
{
    if (!sum->vector) {
        *sum = (struct tt_verify_clock){.thread = -1};
        for (int r = 0; r < verify->nranks; r++) {
            if (!tt_verify_join(verify, sum, &clocks[r])) return false;
        }
    }
    return tt_verify_join(verify, clock, sum);
}

void tt_verify_release(struct tt_verify *verify, int thread, struct tt_verify_clock *clock_out)
{
    struct tt_verify_clock *clock = &verify->clocks[thread];
    if (verify->alone) return;
    tt_verify_clock_drop(clock_out);
    *clock_out = *clock;
    if (clock->vector) clock->vector->refs++;
    clock->own++;
}
