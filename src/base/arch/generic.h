/* The same functions as the other files here, for every other processor. */
#pragma once

#include "base/arch/clock_ticks.h"

static inline void tt_cpu_pause(void) {}

static inline int tt_cpu_ask_tier(void)
{
    return 0;
}
