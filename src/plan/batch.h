/* Groups of messages, or of small collectives, whose work is kept. Private to the room. */
#pragma once

#include "nccl.h"
#include "transport/transport.h"

#include <stdbool.h>

struct tt_group_call;
struct tt_plan;
struct tt_work;
struct tt_work_spec;

/* The work of a group like this one that was launched before, idle and with this group's buffers;
 * the plan's. NULL: the group is to be bound. conn: TT_CONN_P2P messages, TT_CONN_COLL collectives,
 * by next_alike. hot */
struct tt_work *tt_batch_find(struct tt_plan *plan, struct tt_group_call *first,
                              enum tt_conn_index conn);
/* Asked after tt_batch_find() had none: collectives like these are not to become one work. They
 * were no flat list, one reads what another writes, one is none to be kept, or there is no room
 * now. */
bool tt_batch_refuses(struct tt_plan *plan, const struct tt_group_call *first);
/* Remember of collectives like these that they cannot be one work. */
void tt_batch_refuse(struct tt_plan *plan, const struct tt_group_call *first);
/* Keep a group that was just bound: *work_out is to be submitted and stays the plan's; NULL when it
 * is not kept: what calls need that a profiler or a capture looks at, and collectives that are not
 * small or of which one reads what an earlier one writes. Errors: ncclSystemError (out of memory).
 */
ncclResult_t tt_batch_keep(struct tt_plan *plan, struct tt_group_call *first,
                           const struct tt_work_spec *spec, struct tt_work **work_out);
void tt_batches_fini(struct tt_plan *plan);

/* The k-th send of this rank to itself and the k-th receive; send NULL: no more. Pairs are complete
 * where tt_messages_check() said so. */
struct tt_own_pair {
    struct tt_group_call *send, *recv;
};
struct tt_own_pair tt_own_pair_first(struct tt_group_call *first, int rank);
struct tt_own_pair tt_own_pair_next(const struct tt_own_pair *pair, int rank);
