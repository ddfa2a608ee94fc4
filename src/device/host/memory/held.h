/* Memory and devices that objects of NCCL still need. */
#pragma once

/* What a free of the allocation that begins at ptr says: 0, after a warning if something needs it,
 * or 1 where cudaFree must refuse it. One load when nothing is held. */
int tt_host_held_free(const void *ptr);
/* The device is about to be reset: warn of what needs it, and forget what is held of its memory. */
void tt_host_held_reset(int device);
