/* Memory that was freed and that queued work may still use. Private to the room; thread-safe. */
#pragma once

#include "arena.h"

#include "device/host/stream/stream.h"

/* Free ptr of the arena: at once, or when the work that is queued now is done. Never waits for that
 * work unless memory for the note is short. False when ptr is not the base of a live allocation. */
bool host_leave(struct host_leavers *leavers, struct host_arena *arena, const void *ptr);
/* Give back what nothing uses any more. */
void host_leavers_go(struct host_leavers *leavers, struct host_arena *arena);
