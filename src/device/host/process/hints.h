/* Hints (cudaMemAdvise) on managed memory. Private to the room. */
#pragma once

#include <stddef.h>

/* Forget the hints of an allocation. One load when there are none. */
void tt_host_hints_forget(const void *base, size_t bytes);
