/* The counter that a record's time is: the processor's, where it counts at one speed whatever the
 * core and its frequency; elsewhere the monotonic clock. One instruction instead of a call. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline uint64_t trace_clock_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

#if defined(__x86_64__)
#include <cpuid.h>

static inline uint64_t trace_ticks(void)
{
    return __builtin_ia32_rdtsc();
}
/* Does the counter go on at one speed in all states of the processor? */
static inline bool trace_ticks_steady(void)
{
    unsigned int a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
}
#else
static inline uint64_t trace_ticks(void)
{
    return trace_clock_nsec();
}
static inline bool trace_ticks_steady(void)
{
    return true;
}
#endif
