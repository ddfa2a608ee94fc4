/* Memory that was freed and that queued work may still use. Private to the room; thread-safe. */
#pragma once

#include "arena.h"

/* Free ptr of the arena: at once, or when the work that is queued now is done, for which it never
 * waits. False when ptr is not the base of a live allocation. */
bool tt_host_leave(struct tt_host_arena *arena, const void *ptr);
/* Give back what nothing uses any more. True when something is left. One load when there is none.
 */
bool tt_host_leavers_go(void);
