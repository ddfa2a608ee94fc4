/* The same functions as the other files here, for every other processor. */
#pragma once

#include <stdint.h>

static inline void tt_cpu_pause(void) {}

/* Cheap time stamp: none known here, so always 0 and waits count polls alone. */
static inline uint64_t tt_cpu_ticks(void)
{
    return 0;
}

static inline int tt_cpu_ask_tier(void)
{
    return 0;
}
