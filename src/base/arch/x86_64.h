/* The few instructions that C does not have, for x86-64. */
#pragma once

#include <stdint.h>

static inline void tt_cpu_pause(void)
{
    __builtin_ia32_pause();
}

/* Cheap time stamp; unit unknown, monotone per core. */
static inline uint64_t tt_cpu_ticks(void)
{
    return __builtin_ia32_rdtsc();
}
