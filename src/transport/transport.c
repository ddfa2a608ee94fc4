/* The edges of one communicator: which transport each peer gets, and the calls behind which they
 * look alike. Edges are made on first use and live as long as the transport. */
#include "base/error.h"
#include "base/mem.h"
#include "transport/transport_state.h"

#include <stdlib.h>
#include <string.h>

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
            transport->boards[rank] = tt_inbox_board(transport->inbox);
        } else if (peer->reach != TT_REACH_NET) {
            transport->boards[rank] = tt_inbox_board(peer->range_base + peer->inbox_offset);
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
    transport->inbox = inbox;
    transport->edges = tt_calloc(nranks, sizeof(struct tt_edge **));
    transport->boards = tt_calloc(nranks, sizeof(struct tt_board *));
    if (config->net) transport->net_edges = tt_net_edges_create();
    if (!transport->edges || !transport->boards || (config->net && !transport->net_edges)) {
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

void tt_transport_destroy(struct tt_transport *transport)
{
    if (!transport) return;
    for (int rank = 0; transport->edges && rank < transport->config.member->nranks; rank++) {
        destroy_edges(transport, transport->edges[rank]);
    }
    tt_net_edges_destroy(transport->net_edges);
    free(transport->edges);
    free(transport->boards);
    free(transport);
}

uint64_t tt_transport_patience(struct tt_transport *transport, int rank)
{
    return tt_net_edges_patience(transport->net_edges, rank);
}

static ncclResult_t edge_connect(struct tt_transport *transport, const struct tt_edge_key *key,
                                 struct tt_edge **edge_out)
{
    const struct tt_transport_config *config = &transport->config;
    for (size_t i = 0; i < TT_LEN(transports); i++) {
        if (!transports[i]->can_connect(config, key->peer)) continue;
        return transports[i]->connect(config, transport->inbox, key, edge_out);
    }
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

bool tt_transport_all_direct(const struct tt_transport *transport)
{
    return transport->all_direct;
}

bool tt_transport_reachable(const struct tt_transport *transport, const void *ptr, size_t bytes)
{
    if (transport->all_process || bytes == 0) return true;
    const struct tt_peer_reach *self = &transport->config.peers[transport->config.member->rank];
    const char *at = ptr;
    if (!self->range_base || at < self->range_base) return false;
    size_t offset = (size_t)(at - self->range_base);
    return offset <= self->range_bytes && bytes <= self->range_bytes - offset;
}

size_t tt_transport_slice(const struct tt_transport *transport)
{
    return transport->config.slice_bytes;
}

ncclResult_t tt_stamp_mismatch(int rank, uint64_t stamp, int peer, uint64_t found)
{
    return tt_fail(ncclInvalidUsage,
                   "ranks called different operations: rank %d is in operation %u with fingerprint "
                   "%08x, rank %d in operation %u with fingerprint %08x",
                   rank, (uint32_t)(stamp >> 32), (uint32_t)stamp, peer, (uint32_t)(found >> 32),
                   (uint32_t)found);
}

ncclResult_t tt_edge_check(struct tt_edge *edge, uint64_t expected, uint64_t found)
{
    if (expected == found) return ncclSuccess;
    if (edge->failed) return ncclInvalidUsage;
    edge->failed = true;
    int rank = edge->config->member->rank;
    if (edge->key.conn == TT_CONN_P2P) {
        return tt_fail(
            ncclInvalidUsage,
            "rank %d receives message %u of rank %d with %u bytes (mod 2^32), but it was "
            "sent as message %u with %u: send and receive do not match",
            rank, (uint32_t)(expected >> 32), edge->key.peer, (uint32_t)expected,
            (uint32_t)(found >> 32), (uint32_t)found);
    }
    return tt_stamp_mismatch(rank, expected, edge->key.peer, found);
}

/* ---- what looks alike ---- */

void tt_edge_name(const struct tt_edge *edge, char *text, size_t text_bytes)
{
    edge->ops->name(edge, text, text_bytes);
}

int tt_edge_peer(const struct tt_edge *edge)
{
    return edge->key.peer;
}

char *tt_edge_acquire(struct tt_edge *edge, size_t bytes)
{
    return edge->ops->acquire(edge, bytes);
}

void tt_edge_post(struct tt_edge *edge, uint64_t stamp, size_t bytes)
{
    edge->ops->post(edge, stamp, bytes);
}

void tt_edge_post_small(struct tt_edge *edge, uint64_t stamp, const void *bytes, size_t len_bytes)
{
    edge->ops->post_small(edge, stamp, bytes, len_bytes);
}

bool tt_edge_post_ref(struct tt_edge *edge, uint64_t stamp, const void *ptr, size_t bytes)
{
    return edge->ops->post_ref(edge, stamp, ptr, bytes);
}

bool tt_edge_drained(struct tt_edge *edge)
{
    return edge->ops->drained(edge);
}

ncclResult_t tt_edge_peek(struct tt_edge *edge, uint64_t stamp, const char **payload_out,
                          size_t *bytes_out)
{
    return edge->ops->peek(edge, stamp, payload_out, bytes_out);
}

void tt_edge_release(struct tt_edge *edge)
{
    edge->ops->release(edge);
}

void tt_edge_track(struct tt_edge *edge, const struct tt_edge_track *track)
{
    if (edge->ops->track) edge->ops->track(edge, track);
}

uint32_t tt_edge_next_message(struct tt_edge *edge)
{
    return edge->count++;
}
