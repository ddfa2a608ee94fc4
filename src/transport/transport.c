/* The edges of one communicator: which transport each peer gets. Edges are made on first use and
 * live as long as the transport. */
#include "base/error.h"
#include "base/mem.h"
#include "bootstrap/bootstrap.h"
#include "plugin/net/net.h"
#include "transport/net/collnet.h"
#include "transport/transport_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct tt_transport_ops *const transports[] = {
    &tt_transport_direct, /* best first: the first that can connect wins */
    &tt_transport_shm,
    &tt_transport_net,
};

static ncclResult_t check_config(const struct tt_transport_config *config)
{
    if (config->nchannels < 1 || config->slice_bytes < TT_LINE_BYTES ||
        config->slice_bytes > UINT32_MAX) {
        return tt_fail(ncclInternalError, "transport: %d channels, slices of %zu bytes",
                       config->nchannels, config->slice_bytes);
    }
    return ncclSuccess;
}

static void map_peers(struct tt_transport *transport)
{
    const struct tt_transport_config *config = &transport->config;
    transport->all_direct = config->allow_direct;
    transport->all_process = true;
    for (int rank = 0; rank < config->member->nranks; rank++) {
        const struct tt_peer_reach *peer = &config->peers[rank];
        bool own = rank == config->member->rank;
        if (own) {
            transport->barriers[rank] = tt_inbox_barrier(transport->inbox);
        } else if (peer->reach != TT_REACH_NET) {
            transport->barriers[rank] = tt_inbox_barrier(peer->range_base + peer->inbox_offset);
        }
        if (!own && peer->reach == TT_REACH_NET) transport->all_direct = false;
        if (!own && peer->reach != TT_REACH_PROCESS) transport->all_process = false;
    }
}

ncclResult_t tt_transport_create(const struct tt_transport_config *config, void *inbox,
                                 struct tt_transport **transport_out)
{
    ncclResult_t rc = check_config(config);
    if (rc) return rc;
    size_t nranks = (size_t)config->member->nranks;
    struct tt_transport *transport = tt_calloc(1, sizeof(*transport));
    if (!transport) return tt_fail(ncclSystemError, "transport: out of memory");
    transport->config = *config;
    transport->config.transport = transport;
    if (config->group) {
        transport->group = *config->group;
        transport->config.group = &transport->group;
    }
    transport->inbox = inbox;
    transport->call_log = tt_inbox_barrier(inbox);
    transport->process = getpid();
    transport->edges = tt_calloc(nranks, sizeof(struct tt_edge **));
    transport->barriers = tt_calloc(nranks, sizeof(struct tt_barrier *));
    transport->messages = tt_calloc(2 * nranks, sizeof(*transport->messages));
    if (config->net) transport->net_edges = tt_net_edges_create(config->bootstrap);
    if (!transport->edges || !transport->barriers || !transport->messages ||
        (config->net && !transport->net_edges)) {
        rc = tt_fail(ncclSystemError, "transport of %zu ranks: out of memory", nranks);
        goto out;
    }
    map_peers(transport);
    *transport_out = transport;
    transport = NULL;
out:
    tt_transport_destroy(transport);
    return rc;
}

static size_t edges_per_peer(const struct tt_transport *transport)
{
    return (size_t)transport->config.nchannels * TT_CONN_COUNT_ * 2; /* to and from */
}

static void destroy_edges(struct tt_transport *transport, struct tt_edge **row)
{
    for (size_t i = 0; row && i < edges_per_peer(transport); i++) {
        if (row[i]) row[i]->ops->destroy(row[i]);
    }
    free(row);
}

/* Who waits for this rank and shares memory with it reads that nothing more comes, and why, where
 * the tree of the bootstrap is cut or slow between the two: a difference between calls is an error
 * of all ranks, anything else one of a rank that is gone. */
static void leave_word(const struct tt_transport *transport)
{
    if (!transport->call_log || transport->process != getpid()) return;
    struct tt_barrier *own = transport->call_log;
    struct tt_left left = {0};
    uint64_t words[TT_LEFT_WORDS];
    const char *sentence = "";
    ncclResult_t rc = ncclSuccess;
    if (transport->config.bootstrap)
        rc = tt_bootstrap_error(transport->config.bootstrap, &sentence);
    snprintf(left.sentence, sizeof(left.sentence), "%s", sentence);
    if (sentence[0]) left.rc = ncclRemoteError;
    if (rc == ncclInvalidUsage || rc == ncclInvalidArgument) left.rc = rc;
    memcpy(words, &left, sizeof(words));
    for (int k = 0; k < TT_LEFT_WORDS; k++)
        atomic_store_explicit(&own->why[k], words[k], memory_order_relaxed);
    atomic_store_explicit(&own->ended, ~transport->config.member->comm_id,
                          memory_order_release); /* pairs with tt_transport_rank_left() */
}

/* The memory may be in use for another communicator by now: any other word says nothing. */
static bool has_ended(const struct tt_transport *transport, const struct tt_barrier *theirs)
{
    return atomic_load_explicit(&theirs->ended, memory_order_acquire) ==
           ~transport->config.member->comm_id;
}

bool tt_transport_rank_left(const struct tt_transport *transport, int rank,
                            struct tt_left *left_out)
{
    const struct tt_barrier *theirs = transport->barriers[rank];
    if (!theirs || !has_ended(transport, theirs)) return false;
    uint64_t words[TT_LEFT_WORDS] = {0};
    for (int k = 0; k < TT_LEFT_WORDS; k++)
        words[k] = atomic_load_explicit(&theirs->why[k], memory_order_relaxed);
    /* the word is still there after its reason was read */
    atomic_thread_fence(memory_order_acquire);
    memcpy(left_out, words, sizeof(words));
    if (!has_ended(transport, theirs)) *left_out = (struct tt_left){0};
    left_out->sentence[sizeof(left_out->sentence) - 1] = 0;
    return true;
}

void tt_transport_destroy(struct tt_transport *transport)
{
    if (!transport) return;
    leave_word(transport);
    tt_net_edges_end(transport->net_edges);
    for (int rank = 0; transport->edges && rank < transport->config.member->nranks; rank++) {
        destroy_edges(transport, transport->edges[rank]);
    }
    tt_net_edges_destroy(transport->net_edges);
    free(transport->edges);
    free(transport->barriers);
    free(transport->messages);
    free(transport);
}

uint64_t tt_transport_in_flight_nsec(struct tt_transport *transport, int rank)
{
    return tt_net_edges_in_flight_nsec(transport->net_edges, rank);
}

/* The transport of messages to a peer; NULL: none can reach it. */
static const struct tt_transport_ops *transport_to(const struct tt_transport_config *config,
                                                   int peer)
{
    for (size_t i = 0; i < TT_LEN(transports); i++) {
        if (transports[i]->can_connect(config, peer)) return transports[i];
    }
    return NULL;
}

bool tt_transport_over_net(const struct tt_transport *transport, int peer)
{
    return transport_to(&transport->config, peer) == &tt_transport_net;
}

static ncclResult_t edge_connect(struct tt_transport *transport, const struct tt_edge_key *key,
                                 struct tt_edge **edge_out)
{
    const struct tt_transport_config *config = &transport->config;
    if (key->peer == config->member->rank && key->conn == TT_CONN_COLL && config->group) {
        struct tt_collnet_lane *lane = NULL;
        ncclResult_t rc = tt_net_edges_lane(transport, &lane);
        return rc ? rc : tt_collnet_edge(lane, key, edge_out);
    }
    if (key->conn >= TT_CONN_CAST) return tt_memory_cast(config, transport->inbox, key, edge_out);
    const struct tt_transport_ops *ops = transport_to(config, key->peer);
    if (ops) return ops->connect(config, transport->inbox, key, edge_out);
    return tt_fail(ncclSystemError,
                   "rank %d cannot reach rank %d: direct %s, shm %s, memory %s, network %s",
                   config->member->rank, key->peer, config->allow_direct ? "on" : "off",
                   config->allow_shm ? "on" : "off",
                   config->peers[key->peer].reach == TT_REACH_NET ? "not shared" : "shared",
                   config->net ? "on" : "off");
}

ncclResult_t tt_transport_edge(struct tt_transport *transport, const struct tt_edge_key *key,
                               struct tt_edge **edge_out)
{
    const struct tt_transport_config *config = &transport->config;
    if (key->peer < 0 || key->peer >= config->member->nranks || key->channel < 0 ||
        key->channel >= config->nchannels || key->conn < 0 || key->conn >= TT_CONN_COUNT_) {
        return tt_fail(ncclInternalError, "rank %d: no edge to rank %d channel %d connection %d",
                       config->member->rank, key->peer, key->channel, key->conn);
    }
    struct tt_edge ***row = &transport->edges[key->peer];
    if (!*row) *row = tt_calloc(edges_per_peer(transport), sizeof(struct tt_edge *));
    if (!*row) return tt_fail(ncclSystemError, "edges to rank %d: out of memory", key->peer);
    size_t at =
        ((size_t)key->channel * TT_CONN_COUNT_ + (size_t)key->conn) * 2 + (key->sending ? 1 : 0);
    if (!(*row)[at]) {
        ncclResult_t rc = edge_connect(transport, key, &(*row)[at]);
        if (rc) return rc;
    }
    *edge_out = (*row)[at];
    return ncclSuccess;
}

bool tt_transport_expects(const struct tt_transport *transport)
{
    const struct tt_net *net = transport->config.net;
    return net && !net->plugin->ops.gathers;
}

bool tt_transport_reachable(const struct tt_transport *transport, const void *ptr, size_t bytes)
{
    if (transport->all_process || bytes == 0) return true;
    const struct tt_peer_reach *self = &transport->config.peers[transport->config.member->rank];
    return tt_range_offset(self, ptr, bytes) != TT_NO_OFFSET;
}

size_t tt_transport_slice(const struct tt_transport *transport)
{
    return transport->config.slice_bytes;
}
