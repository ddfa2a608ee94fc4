/* Deferred frees: of memory that queued work may still use. Private to the room; thread-safe. */
#pragma once

#include "device/host/heap/arena.h"

/* Free ptr, at once or when the work that is queued now is done; never waits. False: ptr is not the
 * base of a live allocation. */
bool tt_host_free_deferred(struct tt_host_arena *arena, const void *ptr);
/* Carry out the frees whose work is done. True: some are left. Costs one load when there are none.
 */
bool tt_host_deferred_run(void);
