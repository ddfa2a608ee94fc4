/* Monotonic time, and the cheap ticks that waits use. */
#pragma once

#include <stdint.h>
#include <time.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t tt_now_nsec(void);

/* A time of that clock as pthread_cond_clockwait(CLOCK_MONOTONIC) takes it. Every timed wait uses
 * this clock; a test of the symbols forbids the calls that use another. */
struct timespec tt_clock_at(uint64_t nsec);

/* Sleep, restarting on signals. */
void tt_sleep_usec(uint64_t usec);
