/* A check sum that finds what chance does to bytes on their way. Anybody can make one: it is no
 * proof of who sent them. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Of `len_bytes` anywhere in memory. A single wrong bit is found but for a chance of 2^-32. */
uint32_t tt_sum(const void *bytes, size_t len_bytes);
