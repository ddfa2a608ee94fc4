/* Networks: the newest net ABI (nccl/net.h) is the only interface; a built-in and a plugin enter
 * alike. */
#pragma once

#include "nccl.h"
#include "nccl/net.h"

#include <stdbool.h>
#include <stdint.h>

/* One network as a communicator uses it. Made by plugin/net.c, read by transport/. */
struct tt_net {
    const ncclNet_v12_t *table; /* borrowed from the built-in or the library */
    void *ctx;                  /* of this communicator */
    void *source;               /* the candidate it came from: room plugin's */
    int ndevs;                  /* devices that edges spread over: the first ones */
    char name[64];
};

/* The device of an edge: the same number at both ends, because devices of one number are wired to
 * each other where not all are; channels and pairs of ranks take turns. */
static inline int tt_net_device(const struct tt_net *net, int rank, int peer, int channel)
{
    return (channel + (rank < peer ? rank : peer)) % net->ndevs;
}

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
