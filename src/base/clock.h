/* Monotonic time, and the cheap ticks that waits use. */
#pragma once

#include <stdint.h>

/* CLOCK_MONOTONIC in nanoseconds. */
uint64_t tt_now_nsec(void);

/* Sleep, restarting on signals. */
void tt_sleep_usec(uint64_t usec);
