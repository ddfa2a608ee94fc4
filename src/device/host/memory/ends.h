/* Where the streams that have work ended at one moment: what was queued by then, of all devices, is
 * done when the note is reached. It holds positions, so it keeps nothing alive. Private to the
 * room.
 */
#pragma once

#include <stdbool.h>

struct host_ends;

/* *ends_out: the note, the caller's; NULL when no stream has work. 2 when memory is short. */
int host_ends_note(struct host_ends **ends_out);
/* NULL is reached. Never blocks. */
bool host_ends_reached(const struct host_ends *ends);
void host_ends_free(struct host_ends *ends); /* accepts NULL */
