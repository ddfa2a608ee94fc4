/* Queue pairs: made, and brought from reset to sending. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "net/ib/comm.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    SEND_DEPTH = 512, /* 32 messages in flight, ten work requests each, and the table's */
    RNR_TIMER = 12,   /* 0.64 ms until a receiver without posted receives is asked again */
    RNR_FOR_EVER = 7,
    HOPS = 255,
    GRH_REQUIRED = 1, /* of a port's flags: virtual functions that share a LID */
};

static ncclResult_t refused(const struct ib_comm *comm, int i, const char *step, int error)
{
    errno = error;
    return tt_fail(ncclSystemError,
                   "NET/IB: a queue pair of %s does not become %s towards %s of rank %d: %m",
                   comm->device->ports[comm->qps[i].port]->name, step,
                   comm->peer.ports[comm->qps[i].peer_port].name, comm->peer.rank);
}

static ncclResult_t create_one(struct ib_comm *comm, int i)
{
    struct ib_qp *own = &comm->qps[i];
    own->port = i % (int)comm->own.nports;
    own->peer_port = i % (int)comm->peer.nports;
    const struct ib_port *port = comm->device->ports[own->port];
    own->depth = SEND_DEPTH;
    if (port->max_qp_wr > 0 && own->depth > port->max_qp_wr) own->depth = port->max_qp_wr;
    struct ibv_qp_init_attr init = {.qp_context = &own->broken,
                                    .send_cq = comm->cqs[own->port],
                                    .recv_cq = comm->cqs[own->port],
                                    .cap = {.max_send_wr = (uint32_t)own->depth,
                                            .max_recv_wr = IB_RECEIVES,
                                            .max_send_sge = 1,
                                            .max_recv_sge = 1},
                                    .qp_type = IBV_QPT_RC};
    own->qp = tt_ib()->verbs.create_qp(port->pd, &init);
    if (!own->qp) return tt_fail(ncclSystemError, "NET/IB: no queue pair at %s: %m", port->name);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .pkey_index = (uint16_t)tt_param_int("NCCL_IB_PKEY"),
                               .port_num = port->number,
                               .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ};
    int error = tt_ib()->verbs.modify_qp(
        own->qp, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
    comm->own.qpns[i] = own->qp->qp_num;
    return error ? refused(comm, i, "initialised", error) : ncclSuccess;
}

/* Room for all that may complete before the queue is polled: receives, tables, pieces. */
static ncclResult_t create_queue(struct ib_comm *comm, int i, uint32_t nqps)
{
    const struct ib_port *port = comm->device->ports[i];
    int entries = (int)nqps * (IB_RECEIVES + SEND_DEPTH); /* all of a broken one complete */
    if (port->max_cqe > 0 && entries > port->max_cqe) entries = port->max_cqe;
    comm->cqs[i] = tt_ib()->verbs.create_cq(port->context, entries, NULL, NULL, 0);
    if (comm->cqs[i]) return ncclSuccess;
    return tt_fail(ncclSystemError, "NET/IB: no completion queue of %d entries at %s: %m", entries,
                   port->name);
}

ncclResult_t tt_ib_qps_create(struct ib_comm *comm, uint32_t nqps)
{
    ncclResult_t rc = ncclSuccess;
    comm->own.nqps = nqps;
    for (int i = 0; !rc && i < comm->device->nports; i++)
        rc = create_queue(comm, i, nqps);
    for (uint32_t i = 0; !rc && i < nqps; i++) {
        comm->nqps++;
        rc = create_one(comm, (int)i);
    }
    return rc;
}

/* The variable, else the communicator's traffic class, else 0. */
static uint8_t class_of(const struct ib_comm *comm, const char *name)
{
    int64_t value = tt_param_int(name);
    if (value < 0) value = comm->context->traffic_class;
    return value < 0 ? 0 : (uint8_t)value;
}

static void address(const struct ib_comm *comm, const struct ib_qp *own, struct ibv_ah_attr *ah)
{
    const struct ib_port *port = comm->device->ports[own->port];
    const struct ib_port_words *there = &comm->peer.ports[own->peer_port];
    const struct ib_port_words *here = &comm->own.ports[own->port];
    union ibv_gid gid;
    int index = 0;
    bool other_subnet = here->gid.global.subnet_prefix != there->gid.global.subnet_prefix;
    ah->sl = class_of(comm, "NCCL_IB_SL");
    ah->port_num = port->number;
    bool required = port->attr.flags & GRH_REQUIRED;
    if (port->ethernet || other_subnet || required) {
        if (!tt_ib_gid_choose(port, &index, &gid)) index = 0;
        ah->is_global = 1;
        ah->grh.dgid = there->gid;
        ah->grh.sgid_index = (uint8_t)index;
        ah->grh.hop_limit = HOPS;
        ah->grh.traffic_class = class_of(comm, "NCCL_IB_TC");
    }
    if (!port->ethernet) ah->dlid = there->lid;
}

static ncclResult_t connect_one(struct ib_comm *comm, int i)
{
    const struct ib_qp *own = &comm->qps[i];
    uint8_t here = comm->own.ports[own->port].mtu, there = comm->peer.ports[own->peer_port].mtu;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .path_mtu = here < there ? here : there,
                               .dest_qp_num = comm->peer.qpns[i],
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = RNR_TIMER};
    address(comm, own, &attr.ah_attr);
    int error = tt_ib()->verbs.modify_qp(own->qp, &attr,
                                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                                             IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                                             IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
    if (error) return refused(comm, i, "ready to receive", error);
    attr = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS,
                                .timeout = (uint8_t)tt_param_int("NCCL_IB_TIMEOUT"),
                                .retry_cnt = (uint8_t)tt_param_int("NCCL_IB_RETRY_CNT"),
                                .rnr_retry = RNR_FOR_EVER,
                                .max_rd_atomic = 1};
    error =
        tt_ib()->verbs.modify_qp(own->qp, &attr,
                                 IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                     IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
    return error ? refused(comm, i, "ready to send", error) : ncclSuccess;
}

ncclResult_t tt_ib_qp_receive(struct ib_comm *comm, int qp)
{
    struct ib_qp *own = &comm->qps[qp];
    struct ibv_recv_wr *bad,
        work = {.wr_id = ib_work_pack((struct ib_work){IB_KIND_RECEIVE, (uint8_t)qp, 0, 0, 0, 1})};
    int error = ibv_post_recv(own->qp, &work, &bad);
    if (error) return refused(comm, qp, "able to post a receive", error);
    own->receives++;
    return ncclSuccess;
}

static void agree(struct ib_comm *comm)
{
    const struct ib_hello *own = &comm->own, *peer = &comm->peer;
    int ports = (int)(own->nports > peer->nports ? own->nports : peer->nports);
    bool ethernet = comm->device->ports[0]->ethernet;
    int64_t adaptive = tt_param_int("NCCL_IB_ADAPTIVE_ROUTING");
    int64_t least = tt_param_int("NCCL_IB_AR_THRESHOLD");
    /* the sender's request, which the receiver learns from the pieces */
    comm->npieces = own->split ? comm->nqps : ports;
    if (comm->npieces > IB_PIECES) comm->npieces = IB_PIECES;
    comm->failover = own->failover && peer->failover && comm->nqps > 1;
    comm->adaptive = adaptive < 0 ? !ethernet : adaptive != 0;
    comm->adaptive_bytes = least < 0 ? 8192 : (size_t)least;
}

ncclResult_t tt_ib_qps_connect(struct ib_comm *comm)
{
    ncclResult_t rc = ncclSuccess;
    agree(comm);
    for (int i = 0; !rc && i < comm->nqps; i++) {
        rc = connect_one(comm, i);
        for (int n = 0; !rc && !comm->sending && n < IB_RECEIVES; n++)
            rc = tt_ib_qp_receive(comm, i);
    }
    if (!rc) {
        tt_info(TT_LOG_NET, "NET/IB : rank %d %s rank %d: %s, %d queue pairs, %d pieces%s%s",
                comm->context->rank, comm->sending ? "to" : "from", comm->peer.rank,
                comm->device->name, comm->nqps, comm->npieces, comm->adaptive ? ", AR" : "",
                comm->failover ? ", failover" : "");
    }
    return rc;
}
