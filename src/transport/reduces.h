/* A network that reduces, and the reductions on it, as transports see them. */
#pragma once

#include "nccl.h"

#include <stddef.h>

struct tt_collnet;
struct tt_transport;

struct tt_transport_group {     /* one group of a communicator's collective network */
    struct tt_collnet *collnet; /* borrowed */
    void *comm;                 /* the plugin's: this rank's group; borrowed */
    int nranks, rank;           /* of the group; the own one in it */
    int dev;                    /* for logs */
};

struct tt_collnet_type {
    ncclDataType_t type;
    ncclRedOp_t op; /* sum, product, maximum or minimum */
    size_t elem_bytes;
    /* Number of messages that a call of the network takes from a rank, and returns to it: 1 and 1;
     * or on one side as many as the group has ranks. Those lie in the order of the group, and the
     * rank's own one is the first that is given or taken. */
    int gives, takes;
};
/* Set the reduction of what is given to the network from now on. Call it between operations. */
void tt_transport_reduces(struct tt_transport *transport, const struct tt_collnet_type *type);
