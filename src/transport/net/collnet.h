/* The edge to a network that reduces: collnet.c is the executor's side, collnet_lane.c the side of
 * the thread that moves the network. The two sides share only the atomic counters. Private to the
 * room. */
#pragma once

#include "transport/edge.h"
#include "transport/reduces.h"

#include <stdatomic.h>

struct tt_collnet_plugin;

struct lane_slot { /* of one call of the network */
    uint64_t match;
    size_t bytes; /* of a message */
    struct tt_collnet_type type;
    void *request;
};

struct tt_collnet_lane {
    const struct tt_transport_config *config; /* borrowed */
    char *given, *sums;                       /* owned mapping: TT_SLOTS payloads each */
    size_t map_bytes, payload_bytes;
    struct lane_slot slots[TT_SLOTS];
    /* Numbers of calls: the executor has given all messages; the network has reduced them; the
     * executor has taken all results. */
    _Atomic uint64_t posted, summed, released;
    _Atomic int error; /* ncclResult_t; reported */
    /* of the executor */
    struct tt_collnet_type type;  /* of what is posted */
    int given_first, taken_first; /* index in the slot of the first message of a call */
    int given_at, taken_at;       /* and of the next one */
    /* of the thread that moves the network, under the lock of struct tt_net_edges */
    uint64_t issued;
    void *given_mhandle, *sums_mhandle;
    bool given_registered, sums_registered;
};

static inline struct lane_slot *tt_lane_slot(struct tt_collnet_lane *lane, uint64_t number)
{
    return &lane->slots[number % TT_SLOTS];
}

static inline char *tt_lane_payload(const struct tt_collnet_lane *lane, char *ring, uint64_t number)
{
    return ring + number % TT_SLOTS * lane->payload_bytes;
}

/* Make the lane of a configuration with a group (config->group), which is borrowed. Errors:
 * ncclSystemError (out of memory). */
ncclResult_t tt_collnet_lane_create(const struct tt_transport_config *config,
                                    struct tt_collnet_lane **lane_out);
/* Free the lane, after its edges. `inherited`: this is a child of fork, and the network's objects
 * belong to the parent. Accepts NULL. */
void tt_collnet_lane_destroy(struct tt_collnet_lane *lane, bool inherited);
/* Make one end of it, on a channel. Errors: ncclSystemError (out of memory). */
ncclResult_t tt_collnet_edge(struct tt_collnet_lane *lane, const struct tt_edge_key *key,
                             struct tt_edge **edge_out);
/* Issue and test calls of the network; the lock of all network edges is held. True when something
 * moved. */
bool tt_collnet_step(struct tt_collnet_lane *lane);
/* True when a call was posted and its result has not come. */
bool tt_collnet_pending(const struct tt_collnet_lane *lane);
