/* What a transport must know of a network that reduces, and of what is reduced there. */
#pragma once

#include "nccl.h"

#include <stddef.h>

struct tt_collnet;
struct tt_transport;

struct tt_transport_group {     /* one group of a communicator's collective network */
    struct tt_collnet *collnet; /* borrowed */
    void *comm;                 /* the plugin's: this rank's group; borrowed */
    int dev;                    /* for logs */
};

struct tt_collnet_type {
    ncclDataType_t type;
    ncclRedOp_t op; /* sum, product, maximum or minimum */
    size_t elem_bytes;
};
/* What is given to the network from now on is to be reduced so. Between operations. */
void tt_transport_reduces(struct tt_transport *transport, const struct tt_collnet_type *type);
