/* How connections are made: over a TCP connection of the socket network in each direction, so that
 * both ends have proved that they are the communicator's before an adapter connects to the other.
 * The TCP connections stay: they show that the peer has gone, and carry notices.
 *
 *   connector (sender)                          listener (receiver)
 *     ports, table, own listener  ---- 1 ---->    how many queue pairs; makes them
 *     makes and connects its own  <---- 2 ----    numbers of queue pairs, record
 *     numbers of queue pairs      ---- 3 ---->    connects its own
 */
#include "base/error.h"
#include "base/mem.h"
#include "net/ib/comm.h"

#include <stdlib.h>
#include <string.h>

/* ---- messages over TCP ---- */

ncclResult_t tt_ib_end_post(struct ib_end *end, bool sending, void *message, size_t bytes)
{
    int tag = 0;
    if (sending)
        return tt_net_socket.isend(end->comm, message, bytes, tag, NULL, NULL, &end->request);
    return tt_net_socket.irecv(end->comm, 1, &message, &bytes, &tag, NULL, NULL, &end->request);
}

ncclResult_t tt_ib_end_done(struct ib_end *end, bool *done)
{
    int moved = 0, size = 0;
    if (!end->request) return tt_fail(ncclInternalError, "NET/IB: nothing is under way over TCP");
    ncclResult_t rc = tt_net_socket.test(end->request, &moved, &size);
    *done = !rc && moved;
    if (*done) end->request = NULL;
    return rc;
}

static ncclResult_t check_hello(const struct ib_comm *comm)
{
    const struct ib_hello *peer = &comm->peer;
    bool ethernet = comm->device->ports[0]->ethernet;
    if (peer->version != IB_VERSION || peer->nports < 1 || peer->nports > IB_MERGED ||
        peer->nqps > IB_QPS || peer->ports[0].name[sizeof(peer->ports[0].name) - 1]) {
        return tt_fail(ncclInvalidUsage,
                       "NET/IB: rank %d and rank %d do not have the same version of this library",
                       comm->context->rank, peer->rank);
    }
    if (peer->ports[0].ethernet == ethernet) return ncclSuccess;
    return tt_fail(ncclInvalidUsage,
                   "NET/IB: %s of rank %d is %s and %s of rank %d is not: NCCL_IB_HCA can leave "
                   "one kind out",
                   comm->device->name, comm->context->rank, ethernet ? "RoCE" : "InfiniBand",
                   peer->ports[0].name, peer->rank);
}

/* Read what the peer says, and that it leaves. */
static ncclResult_t keep_hearing(struct ib_comm *comm)
{
    return tt_ib_end_post(&comm->from, false, &comm->notice_in, sizeof(comm->notice_in));
}

/* ---- the receiver ---- */

enum listener_step {
    LISTENER_WAITS,
    LISTENER_RECEIVES,
    LISTENER_CALLS,
    LISTENER_REPORTS,
    LISTENER_ENDS
};

struct ib_listener {
    struct ib_context *context; /* borrowed */
    int dev;
    void *oob; /* owned */
    enum listener_step step;
    struct ib_comm *comm; /* owned: being made */
};

ncclResult_t tt_ib_close_listen(void *listen_comm)
{
    struct ib_listener *listener = listen_comm;
    if (!listener) return ncclSuccess;
    tt_ib_comm_destroy(listener->comm);
    tt_net_socket.closeListen(listener->oob);
    free(listener);
    return ncclSuccess;
}

ncclResult_t tt_ib_listen(struct ib_context *context, int dev, void *opaque, void **listen_comm)
{
    struct ib_listener *listener = tt_calloc(1, sizeof(*listener));
    if (!listener) return tt_fail(ncclSystemError, "NET/IB: out of memory for a listener");
    listener->context = context;
    listener->dev = dev;
    ncclResult_t rc = tt_net_socket.listen(context->oob, 0, opaque, &listener->oob);
    if (rc) {
        free(listener);
        return rc;
    }
    *listen_comm = listener;
    return ncclSuccess;
}

static ncclResult_t wait_caller(struct ib_listener *listener, bool *done)
{
    void *from = NULL;
    ncclResult_t rc = tt_net_socket.accept(listener->oob, &from, NULL);
    if (rc || !from) return rc;
    rc = tt_ib_comm_create(listener->context, listener->dev, false, &listener->comm);
    if (rc) {
        tt_net_socket.closeRecv(from);
        return rc;
    }
    listener->comm->from.comm = from;
    *done = true;
    return tt_ib_end_post(&listener->comm->from, false, &listener->comm->peer,
                          sizeof(listener->comm->peer));
}

static uint32_t count_qps(const struct ib_comm *comm)
{
    const struct ib_hello *own = &comm->own, *peer = &comm->peer;
    uint32_t nports = own->nports > peer->nports ? own->nports : peer->nports;
    int32_t each = own->qps_per_port > peer->qps_per_port ? own->qps_per_port : peer->qps_per_port;
    if (each < 1) each = 1;
    return (uint32_t)each > IB_QPS / nports ? IB_QPS / nports * nports : (uint32_t)each * nports;
}

static ncclResult_t receive_caller(struct ib_comm *comm, bool *done)
{
    ncclResult_t rc = tt_ib_end_done(&comm->from, done);
    if (rc || !*done) return rc;
    rc = check_hello(comm);
    return rc ? rc : tt_ib_qps_create(comm, count_qps(comm));
}

static ncclResult_t call_back(struct ib_comm *comm, bool *done)
{
    ncclResult_t rc =
        tt_net_socket.connect(comm->context->oob, 0, comm->peer.handle, &comm->to.comm, NULL);
    if (rc || !comm->to.comm) return rc;
    *done = true;
    rc = tt_ib_end_post(&comm->to, true, &comm->own, sizeof(comm->own));
    return rc ? rc : tt_ib_end_post(&comm->from, false, &comm->peer, sizeof(comm->peer));
}

static ncclResult_t end_accept(struct ib_comm *comm, bool *done)
{
    ncclResult_t rc = tt_ib_end_done(&comm->from, done);
    if (rc || !*done) return rc;
    rc = check_hello(comm);
    if (!rc && comm->peer.nqps != comm->own.nqps)
        rc = tt_ib_comm_fail(comm, ncclInternalError, "another number of queue pairs came back");
    if (!rc) rc = tt_ib_qps_connect(comm);
    return rc ? rc : keep_hearing(comm);
}

ncclResult_t tt_ib_accept(void *listen_comm, void **recv_comm)
{
    struct ib_listener *listener = listen_comm;
    ncclResult_t rc = ncclSuccess;
    bool done = true;
    *recv_comm = NULL;
    while (!rc && done && !*recv_comm) {
        done = false;
        switch (listener->step) {
        case LISTENER_WAITS: rc = wait_caller(listener, &done); break;
        case LISTENER_RECEIVES: rc = receive_caller(listener->comm, &done); break;
        case LISTENER_CALLS: rc = call_back(listener->comm, &done); break;
        case LISTENER_REPORTS: rc = tt_ib_end_done(&listener->comm->to, &done); break;
        case LISTENER_ENDS: rc = end_accept(listener->comm, &done); break;
        }
        if (rc || !done) break;
        if (listener->step++ == LISTENER_ENDS) *recv_comm = listener->comm;
    }
    if (*recv_comm) {
        listener->comm = NULL;
        listener->step = LISTENER_WAITS;
    }
    return rc;
}

/* ---- the sender ---- */

enum connector_step {
    CONNECTOR_CALLS,
    CONNECTOR_REPORTS,
    CONNECTOR_WAITS,
    CONNECTOR_RECEIVES,
    CONNECTOR_ENDS
};

struct ib_connector {
    struct ib_connector *next;
    const void *opaque; /* where the caller keeps the handle: names this connector */
    char handle[NCCL_NET_HANDLE_MAXSIZE];
    enum connector_step step;
    void *oob; /* owned: own listener */
    struct ib_comm *comm;
};

static void connector_free(struct ib_connector *connector)
{
    if (!connector) return;
    tt_ib_comm_destroy(connector->comm);
    if (connector->oob) tt_net_socket.closeListen(connector->oob);
    free(connector);
}

void tt_ib_connectors_free(struct ib_context *context)
{
    while (context->connectors) {
        struct ib_connector *first = context->connectors;
        context->connectors = first->next;
        connector_free(first);
    }
}

static struct ib_connector *connector_take(struct ib_context *context, const void *opaque)
{
    struct ib_connector *connector = NULL;
    pthread_mutex_lock(&context->lock);
    struct ib_connector **at = &context->connectors;
    while (*at &&
           ((*at)->opaque != opaque || memcmp((*at)->handle, opaque, NCCL_NET_HANDLE_MAXSIZE) != 0))
        at = &(*at)->next;
    connector = *at;
    if (connector) *at = connector->next;
    pthread_mutex_unlock(&context->lock);
    return connector;
}

static ncclResult_t begin(struct ib_context *context, int dev, const void *opaque,
                          struct ib_connector **connector_out)
{
    struct ib_connector *connector = tt_calloc(1, sizeof(*connector));
    if (!connector) return tt_fail(ncclSystemError, "NET/IB: out of memory for a connection");
    connector->opaque = opaque;
    memcpy(connector->handle, opaque, sizeof(connector->handle));
    ncclResult_t rc = tt_ib_comm_create(context, dev, true, &connector->comm);
    if (!rc) {
        rc = tt_net_socket.listen(context->oob, 0, connector->comm->own.handle, &connector->oob);
    }
    if (rc) {
        connector_free(connector);
        return rc;
    }
    *connector_out = connector;
    return ncclSuccess;
}

static ncclResult_t call(struct ib_connector *connector, bool *done)
{
    struct ib_comm *comm = connector->comm;
    ncclResult_t rc =
        tt_net_socket.connect(comm->context->oob, 0, connector->handle, &comm->to.comm, NULL);
    if (rc || !comm->to.comm) return rc;
    *done = true;
    return tt_ib_end_post(&comm->to, true, &comm->own, sizeof(comm->own));
}

static ncclResult_t wait_answer(struct ib_connector *connector, bool *done)
{
    struct ib_comm *comm = connector->comm;
    ncclResult_t rc = tt_net_socket.accept(connector->oob, &comm->from.comm, NULL);
    if (rc || !comm->from.comm) return rc;
    *done = true;
    return tt_ib_end_post(&comm->from, false, &comm->peer, sizeof(comm->peer));
}

static ncclResult_t receive_answer(struct ib_comm *comm, bool *done)
{
    ncclResult_t rc = tt_ib_end_done(&comm->from, done);
    if (rc || !*done) return rc;
    rc = check_hello(comm);
    if (!rc && comm->peer.nqps < 1)
        rc = tt_ib_comm_fail(comm, ncclInternalError, "it has no queue pairs");
    if (!rc) rc = tt_ib_qps_create(comm, comm->peer.nqps);
    if (!rc) rc = tt_ib_qps_connect(comm);
    return rc ? rc : tt_ib_end_post(&comm->to, true, &comm->own, sizeof(comm->own));
}

static ncclResult_t advance(struct ib_connector *connector)
{
    struct ib_comm *comm = connector->comm;
    ncclResult_t rc = ncclSuccess;
    bool done = true;
    while (!rc && done) {
        done = false;
        switch (connector->step) {
        case CONNECTOR_CALLS: rc = call(connector, &done); break;
        case CONNECTOR_REPORTS: rc = tt_ib_end_done(&comm->to, &done); break;
        case CONNECTOR_WAITS: rc = wait_answer(connector, &done); break;
        case CONNECTOR_RECEIVES: rc = receive_answer(comm, &done); break;
        case CONNECTOR_ENDS: rc = tt_ib_end_done(&comm->to, &done); break;
        }
        if (done && connector->step++ == CONNECTOR_ENDS) return rc ? rc : keep_hearing(comm);
    }
    return rc ? rc : ncclInProgress;
}

ncclResult_t tt_ib_connect(struct ib_context *context, int dev, void *opaque, void **send_comm)
{
    struct ib_connector *connector = connector_take(context, opaque);
    ncclResult_t rc = ncclSuccess;
    *send_comm = NULL;
    if (!connector) rc = begin(context, dev, opaque, &connector);
    if (rc) return rc;
    rc = advance(connector);
    if (rc == ncclInProgress) { /* kept until it is asked for again */
        pthread_mutex_lock(&context->lock);
        connector->next = context->connectors;
        context->connectors = connector;
        pthread_mutex_unlock(&context->lock);
        return ncclSuccess;
    }
    if (!rc) {
        *send_comm = connector->comm;
        connector->comm = NULL;
    }
    connector_free(connector);
    return rc;
}
