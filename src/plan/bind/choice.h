/* What is chosen for a call, alone or with others of its group. Private to the room. */
#pragma once

#include "nccl.h"

#include <stdbool.h>

struct tt_group_launch;
struct tt_group_call;
struct tt_plan;
struct tt_task;
struct tt_tune_choice;

/* Choose for the calls of a group that are chosen together. Errors: as tt_tune_choose(). */
ncclResult_t tt_choice_group(struct tt_plan *plan, struct tt_group_call *first,
                             const struct tt_group_launch *launch);
/* The choice for a call: with its bundle, or alone. */
ncclResult_t tt_choice_call(struct tt_plan *plan, const struct tt_group_call *node,
                            const struct tt_group_launch *launch,
                            struct tt_tune_choice *choice_out);
/* What the model would choose. Tuner plugins are not called: a single rank may ask, and what
 * plugins write into the table are preferences, not times. */
ncclResult_t tt_choice_estimate(const struct tt_plan *plan, const struct tt_task *task,
                                struct tt_tune_choice *choice_out);
