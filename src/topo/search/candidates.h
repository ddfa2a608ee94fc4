/* Candidates for the next GPU of a channel. Private to the room. */
#pragma once

#include "trial.h"

/* Push the GPUs that may come next on trial->next, the best first. Returns how many. */
int tt_trial_push_next(struct tt_trial *trial, const struct tt_trial_position *position);
/* Space for `count` more entries on trial->next. NULL: out of memory, which ends the trial. */
int *tt_trial_reserve(struct tt_trial *trial, int count);
/* The GPU of a rank that a channel contains, so it is one of this node. */
struct tt_topo_node *tt_trial_gpu_of_rank(const struct tt_trial *trial, int rank);
/* The GPU at a position of the previous channel. */
struct tt_topo_node *tt_trial_replay(const struct tt_trial *trial, int position);
