/* Networks that are built in: each implements the newest net ABI (nccl/net.h), so it enters as a
 * plugin does. */
#pragma once

#include "nccl/net.h"

/* TCP over the interfaces that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose. Messages arrive
 * whole, in order, up to 32 in flight per connection and direction; the caller's thread moves the
 * bytes. */
extern const ncclNet_v12_t tt_net_socket;

#define TT_NET_KEY_BYTES 32

/* What the built-in knows beyond the ABI: who it is, and how it proves that to its peers. */
struct tt_net_trust {
    unsigned char key[TT_NET_KEY_BYTES]; /* of tt_bootstrap_key(): the communicator's */
    int rank;                            /* part of every proof, and named in messages */
};
/* Copies `trust` into a context of tt_net_socket; between init and the first listen or connect. */
void tt_net_socket_set_trust(void *ctx, const struct tt_net_trust *trust);
