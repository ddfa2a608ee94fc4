/* The few instructions that C does not have, for x86-64. */
#pragma once

#include <cpuid.h>
#include <stdbool.h>
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

/* Takes 10 us in a virtual machine: tt_cpu_has_f16c() knows. Not among the names that every
 * compiler's __builtin_cpu_supports() takes. */
static inline bool tt_cpu_ask_f16c(void)
{
    unsigned int a, b, c = 0, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
