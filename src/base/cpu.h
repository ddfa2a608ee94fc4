/* What the processor is: asked once per process, because asking costs microseconds and the answer
 * does not change. Any thread. */
#pragma once

#include <stddef.h>

/* Bytes of the last-level cache that this processor's cores share; a guess of 32 MiB where the
 * system does not say. */
size_t tt_cpu_cache_bytes(void);

/* Which of the instruction sets for vectors it has: base/arch/<cpu>.h counts them from 0. hot */
int tt_cpu_tier(void);
