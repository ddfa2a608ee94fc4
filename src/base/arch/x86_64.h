/* The few instructions that C does not have, for x86-64. */
#pragma once

#include <cpuid.h>
#include <stdbool.h>
#include <stdint.h>

static inline void tt_cpu_pause(void)
{
    __builtin_ia32_pause();
}

/* Begin to take a cache line from the cores that have it, to write there. A hint. */
static inline void tt_cpu_fetch_to_write(const void *line)
{
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
}

/* Cheap time stamp; unit unknown, monotone per core. */
static inline uint64_t tt_cpu_ticks(void)
{
    return __builtin_ia32_rdtsc();
}

/* Vectors that it has, by tiers of which each has those before it. 1: AVX2 with F16C, 2: AVX-512 F,
 * BW, VL and DQ, 3: VBMI, 4: BF16. Takes 10 us in a virtual machine: tt_cpu_tier() knows. */
static inline int tt_cpu_ask_tier(void)
{
    unsigned int a, b, c = 0, d;
    /* F16C is not among the names that every compiler's __builtin_cpu_supports() takes */
    bool f16c = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
    if (!f16c || !__builtin_cpu_supports("avx2")) return 0;
    if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
        !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq"))
        return 1;
    if (!__builtin_cpu_supports("avx512vbmi")) return 2;
    return __builtin_cpu_supports("avx512bf16") ? 4 : 3;
}
