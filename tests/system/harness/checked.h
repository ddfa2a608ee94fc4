/* One checked operation of a team, for tests that are about something else than the matrix. */
#pragma once

#include "world.h"

#include <stddef.h>

/* AllReduce (sum, float) of `count` elements from in[k] to out[k] of the team's rank k; waits.
 * Returns the number of ranks with a wrong result. Buffers must be readable by this process. */
int checked_allreduce(struct world_team *team, void *const *in, void *const *out, size_t count);

/* AlltoAll (int32) with `count` elements per pair, likewise. */
int checked_alltoall(struct world_team *team, void *const *in, void *const *out, size_t count);

/* Broadcast (int32) from `root`, likewise. */
int checked_broadcast(struct world_team *team, void *const *in, void *const *out, size_t count,
                      int root);

/* Send (int32) to the next rank, receive from the previous one, likewise. */
int checked_ring(struct world_team *team, void *const *in, void *const *out, size_t count);
