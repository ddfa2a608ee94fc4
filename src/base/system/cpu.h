/* Facts about the processor: found once per process, because that costs microseconds. Any thread.
 */
#pragma once

#include <stddef.h>

/* Bytes of the last-level cache that this processor's cores share; a guess of 32 MiB where the
 * system does not say. */
size_t tt_cpu_cache_bytes(void);

/* The best vector instruction set that it has, as base/arch/<cpu>.h numbers them from 0. hot */
int tt_cpu_tier(void);
