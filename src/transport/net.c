/* Network edges, executor's side: slots are filled and emptied in memory that the network plugin
 * has registered; nothing here waits. An executor that finds no slot ready moves the network
 * itself. */
#include "transport/net.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct net_edge *own(struct tt_edge *edge)
{
    return tt_container_of(edge, struct net_edge, edge);
}

static void move_network(struct net_edge *edge)
{
    bool moved;
    tt_transport_progress(edge->transport, &moved);
}

static char *net_acquire(struct tt_edge *base)
{
    struct net_edge *edge = own(base);
    uint64_t filled = atomic_load_explicit(&edge->filled, memory_order_relaxed);
    /* pairs with the release store of the mover */
    if (filled - atomic_load_explicit(&edge->emptied, memory_order_acquire) >= TT_SLOTS) {
        move_network(edge);
        if (filled - atomic_load_explicit(&edge->emptied, memory_order_acquire) >= TT_SLOTS)
            return NULL;
    }
    return net_slot_at(edge, filled) + sizeof(struct net_slot);
}

static void net_post(struct tt_edge *base, uint64_t stamp, size_t bytes)
{
    struct net_edge *edge = own(base);
    uint64_t filled = atomic_load_explicit(&edge->filled, memory_order_relaxed);
    struct net_slot header = {stamp, bytes};
    memcpy(net_slot_at(edge, filled), &header, sizeof(header));
    atomic_store_explicit(&edge->filled, filled + 1, memory_order_release);
    move_network(edge);
}

static void net_post_small(struct tt_edge *base, uint64_t stamp, const void *bytes,
                           size_t len_bytes)
{
    char *payload = net_acquire(base); /* the caller holds a free slot: this only finds it again */
    memcpy(payload, bytes, len_bytes);
    net_post(base, stamp, len_bytes);
}

static bool net_post_ref(struct tt_edge *base, uint64_t stamp, const void *ptr, size_t bytes)
{
    (void)base, (void)stamp, (void)ptr, (void)bytes;
    return false;
}

static bool net_drained(struct tt_edge *base)
{
    struct net_edge *edge = own(base);
    uint64_t filled = atomic_load_explicit(&edge->filled, memory_order_relaxed);
    if (atomic_load_explicit(&edge->emptied, memory_order_acquire) == filled) return true;
    move_network(edge);
    return atomic_load_explicit(&edge->emptied, memory_order_acquire) == filled;
}

static ncclResult_t net_peek(struct tt_edge *base, uint64_t stamp, const char **payload_out,
                             size_t *bytes_out)
{
    struct net_edge *edge = own(base);
    uint64_t emptied = atomic_load_explicit(&edge->emptied, memory_order_relaxed);
    struct net_slot header;
    if (atomic_load_explicit(&edge->filled, memory_order_acquire) == emptied) {
        atomic_store_explicit(&edge->wanted, emptied + 1, memory_order_release);
        move_network(edge);
        int error = atomic_load_explicit(&edge->error, memory_order_relaxed);
        if (error) return (ncclResult_t)error;
        if (atomic_load_explicit(&edge->filled, memory_order_acquire) == emptied)
            return ncclInProgress;
    }
    const char *slot = net_slot_at(edge, emptied);
    memcpy(&header, slot, sizeof(header));
    if (header.bytes > base->config->slice_bytes) {
        return tt_fail(ncclRemoteError, "rank %d: rank %d sent a slot of %llu bytes, more than %zu",
                       base->config->member->rank, base->key.peer, (unsigned long long)header.bytes,
                       base->config->slice_bytes);
    }
    if (header.stamp != stamp) {
        ncclResult_t rc = tt_edge_check(base, stamp, header.stamp);
        if (rc) return rc;
    }
    *payload_out = slot + sizeof(header);
    *bytes_out = (size_t)header.bytes;
    return ncclSuccess;
}

static void net_release(struct tt_edge *base)
{
    struct net_edge *edge = own(base);
    uint64_t emptied = atomic_load_explicit(&edge->emptied, memory_order_relaxed);
    atomic_store_explicit(&edge->emptied, emptied + 1, memory_order_release);
}

static void net_name(const struct tt_edge *base, char *text, size_t text_bytes)
{
    snprintf(text, text_bytes, "NET/%s/%d", base->config->net->name, base->config->net->dev);
}

static void net_destroy(struct tt_edge *base)
{
    struct net_edge *edge = own(base);
    tt_net_close_edge(edge);
    free(edge->fifo);
    free(edge);
}

static const struct tt_edge_ops net_ops = {
    .acquire = net_acquire,
    .post = net_post,
    .post_small = net_post_small,
    .post_ref = net_post_ref,
    .drained = net_drained,
    .peek = net_peek,
    .release = net_release,
    .name = net_name,
    .destroy = net_destroy,
};

static bool net_can_connect(const struct tt_transport_config *config, int peer)
{
    (void)peer;
    return config->net != NULL;
}

static struct tt_net_edges *edges_of(struct tt_transport *transport)
{
    if (!transport->net_edges) {
        transport->net_edges = tt_calloc(1, sizeof(*transport->net_edges));
        if (transport->net_edges) pthread_mutex_init(&transport->net_edges->lock, NULL);
    }
    return transport->net_edges;
}

static void log_edge(const struct tt_transport_config *config, const struct tt_edge_key *key)
{
    int me = config->member->rank;
    int from = key->sending ? me : key->peer;
    int to = key->sending ? key->peer : me;
    tt_info(TT_LOG_INIT | TT_LOG_NET, "Channel %02d/%d : %d[%d] -> %d[%d] [%s] via NET/%s/%d",
            key->channel, key->conn, from, config->peers[from].device, to, config->peers[to].device,
            key->sending ? "send" : "receive", config->net->name, config->net->dev);
}

static ncclResult_t net_connect(const struct tt_transport_config *config, void *inbox,
                                const struct tt_edge_key *key, struct tt_edge **edge_out)
{
    struct tt_transport *transport = config->transport;
    struct tt_net_edges *edges = edges_of(transport);
    struct net_edge *edge = tt_calloc(1, sizeof(*edge));
    (void)inbox;
    if (edge) {
        edge->stride = tt_round_up(sizeof(struct net_slot) + config->slice_bytes, TT_LINE_BYTES);
        edge->fifo = tt_calloc(TT_SLOTS, edge->stride);
    }
    if (!edges || !edge || !edge->fifo) {
        if (edge) free(edge->fifo);
        free(edge);
        return tt_fail(ncclSystemError, "network edge to rank %d: out of memory", key->peer);
    }
    edge->edge = (struct tt_edge){.ops = &net_ops, .config = config, .key = *key};
    edge->transport = transport;
    edge->phase = key->sending ? NET_WAITING_HANDLE : NET_LISTENING;
    log_edge(config, key);
    pthread_mutex_lock(&edges->lock);
    edge->next = edges->first;
    edges->first = edge;
    pthread_mutex_unlock(&edges->lock);
    *edge_out = &edge->edge;
    return ncclSuccess;
}

const struct tt_transport_ops tt_transport_net = {
    .name = "net",
    .can_connect = net_can_connect,
    .connect = net_connect,
};
