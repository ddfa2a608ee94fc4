/* Virtual memory management (cuMemCreate, cuMemMap), for other files of the room. Private to it. */
#pragma once

#include <stddef.h>

/* Unmap what only queued work kept mapped, once that is done. Takes the lock of all mappings. */
void tt_host_vmm_reclaim(void);
/* Other addresses at which the memory at ptr is mapped, at most `room`. Returns their number.
 * *bytes is reduced to what is contiguous at all of them. */
size_t tt_host_vmm_aliases(const void *ptr, size_t *bytes, const void **aliases, size_t room);
