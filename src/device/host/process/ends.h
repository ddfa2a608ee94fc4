/* A snapshot of the last queued operation of every stream of all devices. It is reached when all of
 * them are done. It keeps no stream alive. Private to the room. */
#pragma once

#include <stdbool.h>

struct tt_host_ends;

/* *ends_out: owned by the caller; NULL: no stream has work. Error: 2. */
int tt_host_ends_note(struct tt_host_ends **ends_out);
/* True for NULL. Never blocks. */
bool tt_host_ends_reached(const struct tt_host_ends *ends);
void tt_host_ends_free(struct tt_host_ends *ends); /* accepts NULL */
