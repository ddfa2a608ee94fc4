/* All edges of one communicator. Private to the room. */
#pragma once

#include "transport/edge.h"
#include "transport/memory/inbox.h"
#include "transport/reduces.h"

#include <sys/types.h>

struct tt_collnet_lane;

struct tt_transport {
    struct tt_transport_config config;
    struct tt_transport_group group; /* what config.group points to, where there is one */
    void *inbox;                     /* borrowed */
    struct tt_barrier *call_log;     /* at its start */
    pid_t process;                   /* whose it is: a child of fork has a copy */
    struct tt_edge ***edges; /* owned: per peer, made on first use: [channel][conn][sending] */
    bool all_direct, all_process;
    struct tt_net_edges *net_edges; /* owned; NULL without a network */
    /* Both are written in launch order, by one thread at a time. */
    _Atomic uint64_t begun;     /* collective operations */
    uint64_t history;           /* hash of all their match headers */
    _Atomic uint32_t *messages; /* owned: begun to and from each peer; [2 * peer + sending] */
    /* shared barrier */
    struct tt_barrier **barriers; /* owned; borrowed ones, NULL for ranks out of reach */
    uint64_t entered;
    uint64_t all_left;     /* number of barrier operations that every rank has left */
    _Atomic bool reported; /* a mismatch was reported: later ones are returned without a message */
};

/* What all network edges share (net_edges.c). create: NULL when out of memory. end: call it before
 * the edges are destroyed; in a child of fork, where no proxy could release the locks, it makes new
 * ones. destroy: after the edges; accepts NULL. */
struct tt_net_edges *tt_net_edges_create(const struct tt_bootstrap *bootstrap);
/* The lane to the network that reduces, made with its first edge. */
ncclResult_t tt_net_edges_lane(struct tt_transport *transport, struct tt_collnet_lane **lane_out);
void tt_net_edges_end(struct tt_net_edges *edges);
void tt_net_edges_destroy(struct tt_net_edges *edges);
/* As tt_transport_in_flight_nsec(). Accepts NULL. */
uint64_t tt_net_edges_in_flight_nsec(struct tt_net_edges *edges, int rank);
