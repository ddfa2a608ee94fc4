/* The shared barrier of ranks whose memory is mapped here (memory/barrier.c): a cell per rank; each
 * must reach all others' mapped user memory. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_transport;

struct tt_arrival { /* published by a rank that enters an operation; addresses as seen here */
    const char *in;
    char *out;
    uint64_t word; /* the rank's own, unchanged */
};

/* Publish own buffers and word for the operation. Peers must reach in and out (the caller stages
 * foreign memory). ncclInProgress: a rank is still TT_SLOTS operations behind, call again. */
ncclResult_t tt_barrier_enter(struct tt_transport *transport, uint64_t match,
                              const struct tt_arrival *own);
/* ncclSuccess when `rank` entered the same operation (own rank: always), ncclInProgress before,
 * ncclInvalidUsage when it entered another one. */
ncclResult_t tt_barrier_arrived(struct tt_transport *transport, uint64_t match, int rank,
                                struct tt_arrival *arrival_out);
/* Publish that this rank no longer uses the peers' buffers of this operation. */
void tt_barrier_leave(struct tt_transport *transport);
/* True when `rank` has left the operation that this rank is in or has just left. */
bool tt_barrier_left(struct tt_transport *transport, int rank);
