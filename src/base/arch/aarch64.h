/* The same functions as the other files here, for aarch64. */
#pragma once

#include "base/arch/clock_ticks.h"

/* `yield` costs nothing on most of these processors; `isb` costs some 10 ns. */
static inline void tt_cpu_pause(void)
{
    __asm__ volatile("isb" ::: "memory");
}

/* Begin to take a cache line from the cores that have it, to write there. A hint. */
static inline void tt_cpu_fetch_to_write(const void *line)
{
    __builtin_prefetch(line, 1);
}

static inline int tt_cpu_ask_tier(void)
{
    return 0;
}
