/* What happened since the last look: completions, events of the adapters, words of the peer. */
#include "base/error.h"
#include "base/log.h"
#include "base/system/clock.h"
#include "net/ib/comm.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

enum {
    BATCH = 16,
    LOOKS = 64, /* without a result, before the clock is read */
};
#define LOOK_NSEC 2000000ull    /* between two looks at the TCP connection */
#define GONE_NSEC 1000000000ull /* what a peer that has gone sent before may still come */

static const char *hint_of(enum ibv_wc_status status)
{
    switch (status) {
    case IBV_WC_RETRY_EXC_ERR:
        return "nothing answers there: is its port up, does the fabric route between the two, do "
               "both use the same kind of GID (NCCL_IB_GID_INDEX), is UDP 4791 open (RoCE)? "
               "NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT say how long is waited";
    case IBV_WC_RNR_RETRY_EXC_ERR: return "the peer posts no receives";
    case IBV_WC_REM_ACCESS_ERR:
    case IBV_WC_REM_OP_ERR: return "the peer's adapter refuses its own memory";
    case IBV_WC_LOC_PROT_ERR:
    case IBV_WC_LOC_LEN_ERR:
        return "the memory is not registered any more: was it freed while in use?";
    case IBV_WC_WR_FLUSH_ERR: return "the queue pair had failed before";
    default: return "the adapter's driver may have said more to the kernel's log (dmesg)";
    }
}

static ncclResult_t failed(struct ib_comm *comm, const struct ibv_wc *wc, int qp)
{
    char why[512];
    const struct ib_qp *own = &comm->qps[qp];
    snprintf(why, sizeof(why),
             "completion with error: %s (status %d, vendor error %u) of %s towards %s; %s",
             tt_ib()->verbs.wc_status_str(wc->status), (int)wc->status, wc->vendor_err,
             comm->device->ports[own->port]->name, comm->peer.ports[own->peer_port].name,
             hint_of(wc->status));
    return tt_ib_qp_lost(comm, qp, why);
}

static ncclResult_t complete(struct ib_comm *comm, const struct ibv_wc *wc)
{
    const struct ib_work work = ib_work_unpack(wc->wr_id);
    if (work.qp >= comm->nqps) return ncclSuccess;
    struct ib_qp *qp = &comm->qps[work.qp];
    if (work.kind == IB_KIND_RECEIVE) {
        qp->receives--;
        if (wc->status == IBV_WC_SUCCESS) {
            /* counts on a dead queue pair too: it came before the end */
            ncclResult_t rc = tt_ib_piece_came(comm, ntohl(wc->imm_data));
            return rc || qp->dead ? rc : tt_ib_qp_receive(comm, work.qp);
        }
        return qp->dead ? ncclSuccess : failed(comm, wc, work.qp);
    }
    qp->queued -= work.count;
    if (work.kind == IB_KIND_PROBE) tt_ib_probe_came(comm, wc->status == IBV_WC_SUCCESS);
    if (qp->dead) return ncclSuccess; /* the receiver says what came */
    if (wc->status != IBV_WC_SUCCESS) return failed(comm, wc, work.qp);
    if (work.kind == IB_KIND_PIECE) tt_ib_piece_done(comm, &work);
    return ncclSuccess;
}

static ncclResult_t poll_queues(struct ib_comm *comm, int *seen)
{
    struct ibv_wc wcs[BATCH];
    ncclResult_t rc = ncclSuccess;
    for (int port = 0; !rc && port < comm->nports; port++) {
        int count = ibv_poll_cq(comm->cqs[port], BATCH, wcs);
        if (count < 0)
            return tt_ib_comm_fail(comm, ncclSystemError, "the completion queue is broken");
        *seen += count;
        for (int i = 0; !rc && i < count; i++)
            rc = complete(comm, &wcs[i]);
    }
    return rc;
}

static ncclResult_t look_at_events(struct ib_comm *comm)
{
    ncclResult_t rc = ncclSuccess;
    for (int port = 0; !rc && port < comm->nports; port++) {
        const struct ib_port *at = comm->device->ports[port];
        char why[128];
        for (int i = 0; !rc && i < comm->nqps; i++) { /* pairs with the watcher's release */
            struct ib_qp *qp = &comm->qps[i];
            bool fails = qp->port == port && !qp->dead &&
                         atomic_load_explicit(&qp->broken, memory_order_acquire);
            if (fails) rc = tt_ib_qp_lost(comm, i, "the adapter told of a failed queue pair");
        }
        /* pairs with the watcher's release */
        if (atomic_load_explicit(&at->fatal, memory_order_acquire) == comm->fatal[port]) continue;
        snprintf(why, sizeof(why), "%s told of a fatal event", at->name);
        comm->fatal[port] = atomic_load_explicit(&at->fatal, memory_order_relaxed);
        for (int i = 0; !rc && i < comm->nqps; i++) {
            if (comm->qps[i].port == port && !comm->qps[i].dead) rc = tt_ib_qp_lost(comm, i, why);
        }
    }
    return rc;
}

/* A peer that closes has had all it wanted, or has failed. */
static ncclResult_t look_at_peer(struct ib_comm *comm)
{
    bool came = false;
    uint64_t now = tt_now_nsec();
    if (now - comm->look_nsec < LOOK_NSEC) return ncclSuccess;
    comm->look_nsec = now;
    if (!comm->gone_nsec) {
        uint32_t before = tt_log_expect(TT_LOG_NET);
        ncclResult_t rc = tt_ib_end_done(&comm->from, &came);
        tt_log_expect(before);
        if (rc) comm->gone_nsec = now;
    }
    if (came) return tt_ib_notice_came(comm);
    if (!comm->gone_nsec || now - comm->gone_nsec < GONE_NSEC) return ncclSuccess;
    return tt_ib_comm_fail(comm, ncclRemoteError, "the peer has gone");
}

ncclResult_t tt_ib_progress(struct ib_comm *comm)
{
    int seen = 0;
    if (comm->error) return comm->error;
    ncclResult_t rc = poll_queues(comm, &seen);
    if (!rc) rc = look_at_events(comm);
    if (!rc && comm->sending) rc = tt_ib_send_waiting(comm);
    if (!rc && comm->probe_nsec) rc = tt_ib_probe(comm);
    if (!rc) rc = tt_ib_notice_send(comm);
    comm->idle = seen ? 0 : comm->idle + 1;
    /* after a loss its words are waited for, and the probes' completions keep `idle` low */
    if (!rc && (comm->idle >= LOOKS || comm->probe_nsec)) rc = look_at_peer(comm);
    return rc;
}
