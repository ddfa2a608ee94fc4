/* Numbers of a communicator's calls, counted for each function: profilers show them. Private to the
 * room; the caller has entered the plan. */
#pragma once

#include "plan/plan_state.h"

/* Count calls of a function. Returns how many came before. Runs of captured works take numbers
 * too, from other threads, once a profiler has seen a capture. hot */
static inline uint64_t tt_count_calls(struct tt_plan *plan, enum tt_func func, uint64_t ncalls)
{
    _Atomic uint64_t *sequence = &plan->comm->func_seq[func];
    if (plan->shares_numbers)
        return atomic_fetch_add_explicit(sequence, ncalls, memory_order_relaxed);
    uint64_t number = atomic_load_explicit(sequence, memory_order_relaxed);
    atomic_store_explicit(sequence, number + ncalls, memory_order_relaxed);
    return number;
}
