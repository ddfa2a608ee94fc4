/* Network edges, mover's side: connections are made and slots handed to the network step by step,
 * by whichever thread comes along (the proxy, or an executor that waits); one at a time. */
#include "base/error.h"
#include "bootstrap/bootstrap.h"
#include "transport/net.h"

#include <stdlib.h>
#include <string.h>

/* Handles travel from the receiver to the sender under a tag of their own per edge. */
static uint32_t handle_tag(const struct tt_edge_key *key)
{
    return 0x4e000000u | (uint32_t)key->channel << 1 | (uint32_t)key->conn;
}

static void broke(struct net_edge *edge, ncclResult_t rc, const char *what)
{
    const struct tt_transport_config *config = edge->edge.config;
    edge->phase = NET_BROKEN;
    atomic_store(&edge->error, (int)rc);
    if (!edge->transport->net_edges->error) {
        edge->transport->net_edges->error =
            tt_fail(rc, "rank %d: %s %s rank %d over NET/%s: %s", config->member->rank, what,
                    edge->edge.key.sending ? "to" : "from", edge->edge.key.peer, config->net->name,
                    tt_result_text(rc));
    }
}

static bool listen_step(struct net_edge *edge)
{
    const struct tt_transport_config *config = edge->edge.config;
    ncclResult_t rc = config->net->table->listen(config->net->ctx, config->net->dev, edge->handle,
                                                 &edge->listen_comm);
    if (!rc) {
        rc = tt_bootstrap_send(config->bootstrap, edge->edge.key.peer, handle_tag(&edge->edge.key),
                               edge->handle, sizeof(edge->handle));
    }
    if (rc) {
        broke(edge, rc, "listening for a connection");
    } else {
        edge->phase = NET_ACCEPTING;
    }
    return true;
}

static bool handle_step(struct net_edge *edge)
{
    const struct tt_transport_config *config = edge->edge.config;
    size_t bytes = 0;
    ncclResult_t rc =
        tt_bootstrap_poll(config->bootstrap, edge->edge.key.peer, handle_tag(&edge->edge.key),
                          edge->handle, sizeof(edge->handle), &bytes);
    if (rc == ncclInProgress) return false;
    if (rc || bytes != sizeof(edge->handle)) {
        broke(edge, rc ? rc : ncclRemoteError, "waiting for the address of a connection");
    } else {
        edge->phase = NET_CONNECTING;
    }
    return true;
}

static bool ready_step(struct net_edge *edge)
{
    const struct tt_net *net = edge->edge.config->net;
    ncclResult_t rc = net->table->regMr(edge->comm, edge->fifo, TT_SLOTS * edge->stride,
                                        NCCL_PTR_HOST, &edge->mhandle);
    if (rc) {
        broke(edge, rc, "registering slots for the connection");
    } else {
        edge->phase = NET_READY;
    }
    return true;
}

/* connect and accept answer success with no connection for "again". */
static bool connect_step(struct net_edge *edge)
{
    const struct tt_net *net = edge->edge.config->net;
    ncclResult_t rc = net->table->connect(net->ctx, net->dev, edge->handle, &edge->comm, NULL);
    if (rc) broke(edge, rc, "connecting");
    if (rc || !edge->comm) return rc != ncclSuccess;
    return ready_step(edge);
}

static bool accept_step(struct net_edge *edge)
{
    const struct tt_net *net = edge->edge.config->net;
    ncclResult_t rc = net->table->accept(edge->listen_comm, &edge->comm, NULL);
    if (rc) broke(edge, rc, "accepting a connection");
    if (rc || !edge->comm) return rc != ncclSuccess;
    net->table->closeListen(edge->listen_comm);
    edge->listen_comm = NULL;
    return ready_step(edge);
}

static ncclResult_t issue_send(struct net_edge *edge, void **request)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    char *slot = net_slot_at(edge, edge->issued);
    struct net_slot header;
    memcpy(&header, slot, sizeof(header));
    return table->isend(edge->comm, slot, sizeof(header) + header.bytes, 0, edge->mhandle, NULL,
                        request);
}

static ncclResult_t issue_recv(struct net_edge *edge, void **request)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    void *slot = net_slot_at(edge, edge->issued);
    size_t size = sizeof(struct net_slot) + edge->edge.config->slice_bytes;
    int tag = 0;
    void *phandle = NULL;
    return table->irecv(edge->comm, 1, &slot, &size, &tag, &edge->mhandle, &phandle, request);
}

/* Hand over what is ready. */
static bool issue_step(struct net_edge *edge)
{
    bool moved = false;
    bool sending = edge->edge.key.sending;
    uint64_t until =
        atomic_load_explicit(sending ? &edge->filled : &edge->wanted, memory_order_acquire);
    while (edge->issued < until && edge->issued - edge->tested < TT_SLOTS) {
        void *request = NULL;
        ncclResult_t rc = sending ? issue_send(edge, &request) : issue_recv(edge, &request);
        if (rc) broke(edge, rc, sending ? "sending" : "receiving");
        if (rc || !request) return moved || rc != ncclSuccess;
        edge->requests[edge->issued % TT_SLOTS] = request;
        edge->issued++;
        moved = true;
    }
    return moved;
}

static bool test_step(struct net_edge *edge)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    bool moved = false;
    while (edge->tested < edge->issued) {
        int done = 0;
        int size = 0;
        ncclResult_t rc = table->test(edge->requests[edge->tested % TT_SLOTS], &done, &size);
        if (rc) broke(edge, rc, edge->edge.key.sending ? "sending" : "receiving");
        if (rc || !done) return moved || rc != ncclSuccess;
        edge->tested++;
        moved = true;
        atomic_store_explicit(edge->edge.key.sending ? &edge->emptied : &edge->filled, edge->tested,
                              memory_order_release);
    }
    return moved;
}

bool tt_net_step(struct net_edge *edge)
{
    switch (edge->phase) {
    case NET_LISTENING: return listen_step(edge);
    case NET_WAITING_HANDLE: return handle_step(edge);
    case NET_CONNECTING: return connect_step(edge);
    case NET_ACCEPTING: return accept_step(edge);
    case NET_READY: {
        bool moved = issue_step(edge);
        if (edge->phase == NET_READY) moved |= test_step(edge);
        return moved;
    }
    case NET_BROKEN: break;
    }
    return false;
}

ncclResult_t tt_transport_progress(struct tt_transport *transport, bool *moved_out)
{
    struct tt_net_edges *edges = transport->net_edges;
    *moved_out = false;
    if (!edges || pthread_mutex_trylock(&edges->lock)) return ncclSuccess;
    for (struct net_edge *edge = edges->first; edge; edge = edge->next) {
        if (tt_net_step(edge)) *moved_out = true;
    }
    ncclResult_t rc = edges->error;
    pthread_mutex_unlock(&edges->lock);
    return rc;
}

/* Take the edge out of the table and close what it has open. */
void tt_net_close_edge(struct net_edge *edge)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    struct tt_net_edges *edges = edge->transport->net_edges;
    pthread_mutex_lock(&edges->lock);
    for (struct net_edge **at = &edges->first; *at; at = &(*at)->next) {
        if (*at != edge) continue;
        *at = edge->next;
        break;
    }
    if (edge->phase == NET_READY) table->deregMr(edge->comm, edge->mhandle);
    if (edge->comm && edge->edge.key.sending) table->closeSend(edge->comm);
    if (edge->comm && !edge->edge.key.sending) table->closeRecv(edge->comm);
    if (edge->listen_comm) table->closeListen(edge->listen_comm);
    pthread_mutex_unlock(&edges->lock);
}

void tt_net_edges_destroy(struct tt_net_edges *edges)
{
    if (!edges) return;
    pthread_mutex_destroy(&edges->lock);
    free(edges);
}
