/* The edge to a network that reduces: collnet.c is the executor's side of it, collnet_lane.c that
 * of the thread that moves the network. They meet in the atomic counters alone. Private to the
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
    /* Calls: those that the executor has given all messages to, those that are done, those of which
     * it has used up all messages. */
    _Atomic uint64_t posted, summed, released;
    _Atomic int error; /* ncclResult_t; reported */
    /* the executor's */
    struct tt_collnet_type type;  /* of what is posted */
    int given_first, taken_first; /* where in its slot the first of them lies, in messages */
    int given_at, taken_at;       /* and the next one */
    /* the mover's, under the lock of struct tt_net_edges */
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

/* For a configuration with a group (config->coll_comm); borrows it. Errors: ncclSystemError. */
ncclResult_t tt_collnet_lane_create(const struct tt_transport_config *config,
                                    struct tt_collnet_lane **lane_out);
/* After its edges. `inherited`: by fork, the network's part is the parent's. Accepts NULL. */
void tt_collnet_lane_destroy(struct tt_collnet_lane *lane, bool inherited);
/* One end of it, on a channel. */
ncclResult_t tt_collnet_edge(struct tt_collnet_lane *lane, const struct tt_edge_key *key,
                             struct tt_edge **edge_out);
/* Move it on; the lock of all network edges is held. True when something moved. */
bool tt_collnet_step(struct tt_collnet_lane *lane);
/* Something was posted whose sum is not there. */
bool tt_collnet_pending(const struct tt_collnet_lane *lane);
