/* Memory and devices that objects of NCCL still need. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Something is held: one load. */
bool tt_host_held_any(void);
/* What a free of this allocation says: 0, after a warning if something needs it, or 1 where
 * cudaFree must refuse it. */
int tt_host_held_free(const void *base, size_t bytes);
/* The device is about to be reset: warn of what needs it, and forget what is held of its memory. */
void tt_host_held_reset(int device);
