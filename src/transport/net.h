/* Network edges: a ring of slots that the network moves. Private to the room; net.c is the
 * executor's side, net_step.c the side of whoever moves the network. The two meet in the atomic
 * counters alone. */
#pragma once

#include "net/net.h"
#include "transport/hall.h"

#include <pthread.h>
#include <stdatomic.h>

enum net_phase {
    NET_LISTENING,
    NET_WAITING_HANDLE,
    NET_CONNECTING,
    NET_ACCEPTING,
    NET_READY,
    NET_BROKEN
};

struct net_slot { /* what travels: header, then payload */
    uint64_t stamp;
    uint64_t bytes;
};

struct net_edge {
    struct tt_edge edge;
    struct net_edge *next;
    struct tt_transport *transport; /* borrowed */
    char *fifo;                     /* owned: TT_SLOTS places of stride bytes */
    size_t stride;
    uint64_t acquired; /* executor: slots taken */
    /* Sending: filled by the executor, emptied by the network. Receiving: the other way round. */
    _Atomic uint64_t filled, emptied;
    _Atomic uint64_t wanted; /* receiving: messages that the executor has asked for */
    _Atomic int error;       /* ncclResult_t; set once */
    /* the mover's, under the lock of struct tt_net_edges */
    enum net_phase phase;
    void *listen_comm, *comm, *mhandle;
    char handle[NCCL_NET_HANDLE_MAXSIZE];
    uint64_t issued, tested;
    void *requests[TT_SLOTS];
};

struct tt_net_edges {
    pthread_mutex_t lock;
    struct net_edge *first;
    ncclResult_t error;
};

static inline char *net_slot_at(const struct net_edge *edge, uint64_t number)
{
    return edge->fifo + number % TT_SLOTS * edge->stride;
}

/* Advance one edge; lock held. True when something happened. */
bool tt_net_step(struct net_edge *edge);
void tt_net_close_edge(struct net_edge *edge);
