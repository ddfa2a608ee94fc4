/* Maps the memory of peers, and proves that both directions work. Private to comm/. */
#pragma once

#include "comm/comm.h"
#include "comm/records/record.h"

struct tt_reach_result {
    bool any_net;    /* some pair of ranks has only the network */
    bool any_memory; /* some pair has shared memory or direct access */
};

/* Map the ranges of this host's ranks, report to all what worked, keep what works in both
 * directions. Fills comm->peers. Collective. */
ncclResult_t tt_reach_probe(struct tt_comm *comm, const struct tt_agreement *agreed,
                            struct tt_reach_result *result_out);
/* Unmap all. Accepts a communicator that was never probed. */
void tt_reach_release(struct tt_comm *comm);
