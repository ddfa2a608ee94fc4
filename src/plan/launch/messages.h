/* Sends and receives of a group, and what is made of them. Private to the room. */
#pragma once

#include "nccl.h"

#include <stdbool.h>

struct tt_bound;
struct tt_group_launch;
struct tt_group_call;
struct tt_plan;
struct tt_task;

/* Launch all sends and receives of one group, and its exchanges that have no program, as one work.
 */
ncclResult_t tt_messages_launch(struct tt_plan *plan, struct tt_group_call *first,
                                const struct tt_group_launch *launch);
/* Where slots are shared by many peers, the messages of a group in the order in which all ranks
 * come to each other: the k-th next rank sends to the one that takes from the k-th one before it.
 * Returns the first one. */
struct tt_group_call *tt_messages_in_turn(const struct tt_plan *plan, struct tt_group_call *first);
/* Check that each send of this rank to itself has its receive, before anything of the group is
 * launched. Errors: ncclInvalidUsage. */
ncclResult_t tt_messages_check(const struct tt_plan *plan, struct tt_group_call *first);
/* True for a send to, or a receive from, another rank that is alone in its group: it is bound like
 * a collective. */
bool tt_messages_single(const struct tt_plan *plan, const struct tt_task *task);
ncclResult_t tt_messages_bind(struct tt_plan *plan, const struct tt_task *task,
                              struct tt_bound *bound);
