/* The built-in networks. Each implements the newest net ABI (nccl/net.h), as a plugin does. */
#pragma once

#include "nccl/net.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* TCP over the interfaces that NCCL_SOCKET_IFNAME and NCCL_SOCKET_FAMILY choose. Messages arrive
 * whole, in order, up to 32 in flight per connection, which has one direction; the caller's thread
 * moves the bytes, and where NCCL_SOCKET_NTHREADS says so threads of the connection. */
extern const ncclNet_v12_t tt_net_socket;

#define TT_NET_KEY_BYTES 32

/* What the built-in networks get beyond the ABI: their rank, and the key that proves it to peers.
 */
struct tt_net_trust {
    unsigned char key[TT_NET_KEY_BYTES]; /* of tt_bootstrap_key(): the communicator's */
    int rank;                            /* part of every proof, and named in messages */
};
/* Copy `trust` into a context of tt_net_socket. Call it after init, before listen and connect. */
void tt_net_socket_set_trust(void *ctx, const struct tt_net_trust *trust);

/* RDMA over InfiniBand or RoCE. libibverbs is opened at run time, when there is an adapter. */
struct tt_net_verbs {
    const ncclNet_v12_t *table;                                     /* NULL: built without it */
    void (*set_trust)(void *ctx, const struct tt_net_trust *trust); /* as for sockets */
};
extern const struct tt_net_verbs tt_net_verbs;

#define TT_NET_HEAD_BYTES 64

/* Memory for the payload of a message whose head begins with `key`, whose highest
 * TT_NET_KEY_FREE_BITS bits do not count. */
#define TT_NET_KEY_FREE_BITS 4
struct tt_net_landing {
    uint64_t key;
    char *at;        /* borrowed; NULL: none */
    size_t room;     /* bytes at `at` */
    size_t expected; /* size of the payload; 0: not known. With it one system call reads head and
                        payload; if it is wrong, the payload is copied once more */
};

/* True when a payload of `bytes` bytes with that key goes into the landing. */
static inline bool tt_net_lands(const struct tt_net_landing *landing, uint64_t key, size_t bytes)
{
    return landing->at && (landing->key ^ key) << TT_NET_KEY_FREE_BITS == 0 &&
           bytes <= landing->room;
}

/* A message in two pieces that lie apart. Both ends give it a head of the same length. */
struct tt_net_message {
    void *head;        /* of a receive: filled before the place of the payload is decided */
    size_t head_bytes; /* TT_NET_HEAD_BYTES at most; a landing needs 8 */
    void *data;
    size_t bytes;                  /* of a receive: room at `data` */
    struct tt_net_landing landing; /* of a receive: taken in place of `data` where it fits */
    void *event;                   /* of the profiler; NULL: none */
};

/* Send or receive a message, as isend and irecv do; the connection's direction decides. Test the
 * request with the table's test(): its size is that of head and payload together. */
ncclResult_t tt_net_socket_post(void *comm, const struct tt_net_message *message,
                                void **request_out);

/* After an error elsewhere: no thread reads or writes memory of the connection's requests any more.
 * They fail when they are tested. Waits for system calls that do not wait. */
void tt_net_socket_stop(void *comm);

/* True when connections of this context may serve both directions: one interface, no encryption. */
bool tt_net_socket_is_two_way(const void *ctx);
/* The other direction of a connection, as one of its own over the same TCP connections, to be
 * closed by itself. Both ends must make it, and one of them must have made sure that the other can:
 * *reverse_out is NULL where that end cannot, as a sender's peer has a second interface. Both
 * directions belong to one thread at a time. */
ncclResult_t tt_net_socket_reverse(void *comm, void **reverse_out);
/* Look whether the sender comes anew over another interface, as it does when it does not hear that
 * its last bytes have come. Call it now and then while nothing is awaited from a connection. */
ncclResult_t tt_net_socket_tend(void *comm);
/* Connections of this process may come anew. */
bool tt_net_socket_has_paths(void);
