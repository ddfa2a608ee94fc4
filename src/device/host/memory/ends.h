/* Where the streams that have work ended at one moment: what was queued by then, of all devices, is
 * done when the note is reached. It holds positions, so it keeps nothing alive. Private to the
 * room.
 */
#pragma once

#include <stdbool.h>

struct tt_host_ends;

/* *ends_out: the note, the caller's; NULL when no stream has work. 2 when memory is short. */
int tt_host_ends_note(struct tt_host_ends **ends_out);
/* NULL is reached. Never blocks. */
bool tt_host_ends_reached(const struct tt_host_ends *ends);
void tt_host_ends_free(struct tt_host_ends *ends); /* accepts NULL */
