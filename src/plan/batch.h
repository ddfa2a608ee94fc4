/* Groups of messages whose work is kept. Private to the room. */
#pragma once

#include "nccl.h"

struct tt_group_call;
struct tt_plan;
struct tt_work;
struct tt_work_spec;

/* The work of a group like this one that was launched before, idle and with this group's buffers;
 * the plan's. NULL: the group is to be bound. hot */
struct tt_work *tt_batch_find(struct tt_plan *plan, struct tt_group_call *first);
/* Keep a group that was just bound: *work_out is to be submitted and stays the plan's; NULL when it
 * is not kept. Errors: ncclSystemError (out of memory). */
ncclResult_t tt_batch_keep(struct tt_plan *plan, const struct tt_group_call *first,
                           const struct tt_work_spec *spec, struct tt_work **work_out);
void tt_batches_fini(struct tt_plan *plan);

/* The k-th send of this rank to itself and the k-th receive; send NULL: no more. Pairs are complete
 * where tt_messages_check() said so. */
struct tt_own_pair {
    struct tt_group_call *send, *recv;
};
struct tt_own_pair tt_own_pair_first(struct tt_group_call *first, int rank);
struct tt_own_pair tt_own_pair_next(const struct tt_own_pair *pair, int rank);
