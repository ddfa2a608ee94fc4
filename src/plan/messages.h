/* Sends and receives of a group, and what is made of them. Private to the room. */
#pragma once

#include "nccl.h"

#include <stdbool.h>

struct tt_bound;
struct tt_group_launch;
struct tt_group_call;
struct tt_plan;
struct tt_task;

/* All sends, receives and exchanges without a program of their own of one group: one work. */
ncclResult_t tt_messages_launch(struct tt_plan *plan, struct tt_group_call *first,
                                const struct tt_group_launch *launch);
/* Sends to oneself have their receives, before anything of the group is launched. */
ncclResult_t tt_messages_check(const struct tt_plan *plan, struct tt_group_call *first);
/* A send to or a receive from another rank: alone in its group, it is bound like a collective. */
bool tt_messages_single(const struct tt_plan *plan, const struct tt_task *task);
ncclResult_t tt_messages_bind(struct tt_plan *plan, const struct tt_task *task,
                              struct tt_bound *bound);
