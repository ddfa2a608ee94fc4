/* Network edges come to life on the proxy's thread alone: some networks bind connections to the
 * thread that makes them. The receiver listens and sends its handle through the bootstrap; the
 * sender connects; both are polled and never wait. */
#include "bootstrap/bootstrap.h"
#include "transport/net.h"

/* Handles travel from the receiver to the sender under a tag of their own per edge. */
static uint32_t handle_tag(const struct tt_edge_key *key)
{
    return 0x4e000000u | (uint32_t)key->channel << 1 | (uint32_t)key->conn;
}

static ncclResult_t listen_step(struct net_edge *edge)
{
    const struct tt_transport_config *config = edge->edge.config;
    const struct tt_net *net = config->net;
    ncclResult_t rc = net->table->listen(net->ctx, edge->dev, edge->handle, &edge->listen_comm);
    if (rc) return rc;
    edge->phase = NET_ACCEPTING;
    return tt_bootstrap_send(config->bootstrap, edge->edge.key.peer, handle_tag(&edge->edge.key),
                             edge->handle, sizeof(edge->handle));
}

/* From now on the handle stays where it is: the network keeps the state of connecting in it. */
static ncclResult_t handle_step(struct net_edge *edge)
{
    const struct tt_transport_config *config = edge->edge.config;
    size_t bytes = 0;
    uint64_t mail = tt_bootstrap_mail(config->bootstrap) + 1;
    if (mail == edge->mail) return ncclInProgress;
    edge->mail = mail; /* what comes after this look is another number */
    ncclResult_t rc =
        tt_bootstrap_poll(config->bootstrap, edge->edge.key.peer, handle_tag(&edge->edge.key),
                          edge->handle, sizeof(edge->handle), &bytes);
    if (rc) return rc;
    if (bytes != sizeof(edge->handle)) return ncclRemoteError;
    edge->phase = NET_CONNECTING;
    return ncclSuccess;
}

static ncclResult_t ready_step(struct net_edge *edge)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    edge->mhandle = NULL;
    ncclResult_t rc =
        table->regMr(edge->comm, edge->fifo, edge->fifo_bytes, NCCL_PTR_HOST, &edge->mhandle);
    if (!rc) edge->phase = NET_READY;
    return rc;
}

/* connect and accept answer success with no connection for "again". */
static ncclResult_t connect_step(struct net_edge *edge)
{
    const struct tt_net *net = edge->edge.config->net;
    ncclNetDeviceHandle_v12_t *offload = NULL;
    ncclResult_t rc = net->table->connect(net->ctx, edge->dev, edge->handle, &edge->comm, &offload);
    if (rc) return rc;
    return edge->comm ? ready_step(edge) : ncclInProgress;
}

static ncclResult_t accept_step(struct net_edge *edge)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    ncclNetDeviceHandle_v12_t *offload = NULL;
    ncclResult_t rc = table->accept(edge->listen_comm, &edge->comm, &offload);
    if (rc) return rc;
    if (!edge->comm) return ncclInProgress;
    table->closeListen(edge->listen_comm);
    edge->listen_comm = NULL;
    return ready_step(edge);
}

bool tt_net_join(struct net_edge *edge)
{
    ncclResult_t rc = ncclSuccess;
    switch (edge->phase) {
    case NET_LISTENING: rc = listen_step(edge); break;
    case NET_WAITING_HANDLE: rc = handle_step(edge); break;
    case NET_CONNECTING: rc = connect_step(edge); break;
    case NET_ACCEPTING: rc = accept_step(edge); break;
    case NET_READY:
    case NET_BROKEN: return false;
    }
    if (rc && rc != ncclInProgress) tt_net_broke(edge, rc, "connecting");
    return rc != ncclInProgress;
}

void tt_net_edge_close(struct net_edge *edge)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    if (edge->comm) table->deregMr(edge->comm, edge->mhandle);
    if (edge->comm && edge->edge.key.sending) table->closeSend(edge->comm);
    if (edge->comm && !edge->edge.key.sending) table->closeRecv(edge->comm);
    if (edge->listen_comm) table->closeListen(edge->listen_comm);
}
