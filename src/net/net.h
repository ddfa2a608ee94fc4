/* Networks that are built in: each implements the newest net ABI (nccl/net.h), so it enters as a
 * plugin does. */
#pragma once

#include "nccl/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

/* RDMA over InfiniBand or RoCE by libibverbs, which is opened when there is an adapter. */
struct tt_net_verbs {
    const ncclNet_v12_t *table;                                     /* NULL: built without it */
    void (*set_trust)(void *ctx, const struct tt_net_trust *trust); /* as for sockets */
};
extern const struct tt_net_verbs tt_net_verbs;

#define TT_NET_HEAD_BYTES 64

/* Where the payload of a message is put whose head begins with `key`. at NULL: nowhere.
 * `expected`: how long the payload will be, 0: not known. Then it may be read in one call with the
 * head, but into `at` only behind a payload that landed; a wrong size costs a copy. */
struct tt_net_landing {
    uint64_t key;
    char *at;
    size_t room, expected;
};

static inline bool tt_net_lands(const struct tt_net_landing *landing, uint64_t key, size_t bytes)
{
    return landing->at && landing->key == key && bytes <= landing->room;
}

/* A message in two pieces that lie apart. Both ends give it a head of the same length. */
struct tt_net_message {
    void *head;        /* a receive's is filled before it is known where the payload goes */
    size_t head_bytes; /* TT_NET_HEAD_BYTES at most; a landing needs 8 */
    void *data;
    size_t bytes;                  /* of a receive: room at `data` */
    struct tt_net_landing landing; /* of a receive: taken in place of `data` where it fits */
    void *event;                   /* of the profiler; NULL: nobody watches */
};

/* As the table's isend and irecv, by the direction of the connection; tested in the same way: the
 * size is that of head and payload. */
ncclResult_t tt_net_socket_post(void *comm, const struct tt_net_message *message,
                                void **request_out);
