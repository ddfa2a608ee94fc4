/* What the processor is: asked once per process, because asking costs microseconds and the answer
 * does not change. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Bytes of the last-level cache that this processor's cores share; a guess of 32 MiB where the
 * system does not say. */
size_t tt_cpu_cache_bytes(void);

/* Conversions between float16 and float (x86-64). */
bool tt_cpu_has_f16c(void);
