/* Which GPU a channel may go to next. Private to the room. */
#pragma once

#include "trial.h"

/* Push the GPUs that may come next on trial->next, the best first. Returns how many. */
int tt_trial_push_next(struct tt_trial *trial, const struct tt_trial_position *position);
/* Room for `count` more on trial->next; NULL when memory is short, which ends the trial. */
int *tt_trial_reserve(struct tt_trial *trial, int count);
/* The GPU of a rank that a channel holds, hence one of ours. */
struct tt_topo_node *tt_trial_gpu_of_rank(const struct tt_trial *trial, int rank);
/* What the channel before this one had at a position. */
struct tt_topo_node *tt_trial_replay(const struct tt_trial *trial, int position);
