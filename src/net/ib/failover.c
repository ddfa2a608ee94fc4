/* A queue pair has failed and others are left. Both ends bring theirs into the error state, so that
 * nothing more comes through; the receiver waits until all its receives of it have come back, by
 * which it knows what came; then it reports that to the sender, which writes the rest over other
 * queue pairs.
 *
 *   sender                                   receiver
 *     LOST qp   ---- TCP ---->                 (or it sees the failure itself)
 *                                              error state; receives come back
 *               <--- TCP ----                STATE qp: messages waited for, pieces that came
 *     error state; missing pieces over others
 *
 * A receiver that has all it wanted may make no call for a long time: the sender reads for itself,
 * over another queue pair, which messages are complete there.
 *
 * Writing twice does no harm: until the receiver has a message complete, its memory is the
 * message's. */
#include "base/log.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "net/ib/comm.h"

#include <stddef.h>
#include <string.h>

static bool has_dead(const struct ib_comm *comm, int port)
{
    for (int i = 0; i < comm->nqps; i++) {
        if (comm->qps[i].dead && comm->qps[i].port == port) return true;
    }
    return false;
}

static uint64_t probe_delay(void)
{
    int64_t msec = tt_param_int("NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY");
    return msec < 1 ? 1000000 : (uint64_t)msec * 1000000;
}

ncclResult_t tt_ib_qp_lost(struct ib_comm *comm, int qp, const char *why)
{
    if (comm->qps[qp].dead) return ncclSuccess;
    bool first = !has_dead(comm, comm->qps[qp].port);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    comm->qps[qp].dead = true;
    /* it may be in that state already */
    (void)tt_ib()->verbs.modify_qp(comm->qps[qp].qp, &attr, IBV_QP_STATE);
    if (!comm->failover || tt_ib_qp_alive(comm, 0) < 0)
        return tt_ib_comm_fail(comm, ncclSystemError, why);
    if (first) {
        tt_warn("NET/IB: rank %d %s rank %d goes on without queue pairs of %s: %s",
                comm->context->rank, comm->sending ? "to" : "from", comm->peer.rank,
                comm->device->ports[comm->qps[qp].port]->name, why);
    }
    comm->unsent[qp / 32] |= 1u << qp % 32;
    if (!comm->sending) return tt_ib_table_again(comm);
    comm->probe_nsec = tt_now_nsec() + probe_delay();
    return ncclSuccess;
}

/* ---- asking without the receiver's help ---- */

/* Does a lost queue pair still have something of ours? */
static bool is_waiting(const struct ib_comm *comm)
{
    for (int i = 0; i < IB_SLOTS; i++) {
        const struct ib_slot *slot = &comm->slots[i];
        uint32_t sent = slot->active ? slot->pieces & ~slot->waiting : 0;
        for (uint32_t piece = 0; sent >> piece; piece++) {
            if (sent >> piece & 1 && comm->qps[slot->routes[piece]].dead) return true;
        }
    }
    return false;
}

/* Read which messages are complete there, into the record here, which no other thread writes to. */
static ncclResult_t probe_post(struct ib_comm *comm, int number)
{
    struct ib_qp *qp = &comm->qps[number];
    struct ibv_sge sge = {(uintptr_t)comm->record->whole, sizeof(comm->record->whole),
                          comm->record_mrs[qp->port]->lkey};
    struct ibv_send_wr *bad,
        work = {.wr_id = ib_work_pack((struct ib_work){IB_KIND_PROBE, (uint8_t)number, 0, 0, 0, 1}),
                .opcode = IBV_WR_RDMA_READ,
                .send_flags = IBV_SEND_SIGNALED,
                .sg_list = &sge,
                .num_sge = 1};
    work.wr.rdma.remote_addr = comm->peer.addr + offsetof(struct ib_record, whole);
    work.wr.rdma.rkey = comm->peer.rkeys[qp->peer_port];
    if (ibv_post_send(qp->qp, &work, &bad))
        return tt_ib_comm_fail(comm, ncclSystemError, "a read could not be posted");
    qp->queued++;
    comm->probing = true;
    return ncclSuccess;
}

ncclResult_t tt_ib_probe(struct ib_comm *comm)
{
    int qp = tt_ib_qp_alive(comm, 0);
    if (comm->probing || qp < 0 || tt_now_nsec() < comm->probe_nsec) return ncclSuccess;
    if (!is_waiting(comm)) {
        comm->probe_nsec = 0;
        return ncclSuccess;
    }
    comm->probe_nsec = tt_now_nsec() + probe_delay();
    return comm->qps[qp].queued < comm->qps[qp].depth ? probe_post(comm, qp) : ncclSuccess;
}

void tt_ib_probe_came(struct ib_comm *comm, bool good)
{
    comm->probing = false;
    for (int i = 0; good && i < IB_SLOTS; i++) {
        struct ib_slot *slot = &comm->slots[i];
        uint64_t whole = atomic_load_explicit(&comm->record->whole[i], memory_order_relaxed);
        if (slot->active && whole == slot->number) tt_ib_slot_done(slot);
    }
}

/* ---- telling ---- */

ncclResult_t tt_ib_notice_send(struct ib_comm *comm)
{
    struct ib_notice *notice = &comm->notice_out;
    if (!comm->failover) return ncclSuccess;
    if (comm->to.request) {
        bool done = false;
        ncclResult_t rc = tt_ib_end_done(&comm->to, &done);
        if (rc) return tt_ib_comm_fail(comm, rc, "the peer has gone");
        if (!done) return ncclSuccess;
    }
    for (int qp = 0; qp < comm->nqps; qp++) {
        bool wanted = comm->unsent[qp / 32] >> qp % 32 & 1;
        if (!wanted || (!comm->sending && comm->qps[qp].receives)) continue;
        comm->unsent[qp / 32] &= ~(1u << qp % 32);
        memset(notice, 0, sizeof(*notice));
        notice->kind = comm->sending ? IB_NOTICE_LOST : IB_NOTICE_STATE;
        notice->qp = (uint32_t)qp;
        for (int i = 0; i < IB_SLOTS && !comm->sending; i++) { /* what the receiver has */
            const struct ib_slot *slot = &comm->slots[i];
            notice->numbers[i] = slot->active ? slot->number : 0;
            notice->pieces[i] = slot->pieces;
        }
        return tt_ib_end_post(&comm->to, true, notice, sizeof(*notice));
    }
    return ncclSuccess;
}

/* ---- hearing ---- */

/* Of what went over the lost queue pair, this is to be written again and that has come. */
static void sort_piece(struct ib_comm *comm, const struct ib_notice *notice, int i, uint32_t piece)
{
    struct ib_slot *slot = &comm->slots[i];
    const struct ib_work work = {
        .slot = (uint8_t)i, .piece = (uint8_t)piece, .turn = (slot->number - 1) / IB_SLOTS & 1};
    bool wanted = notice->numbers[i] == slot->number && !(notice->pieces[i] >> piece & 1);
    if (wanted) {
        slot->waiting |= 1u << piece;
    } else {
        tt_ib_piece_done(comm, &work);
    }
}

static void go_on(struct ib_comm *comm, const struct ib_notice *notice)
{
    for (int i = 0; i < IB_SLOTS; i++) {
        const struct ib_slot *slot = &comm->slots[i];
        uint32_t sent = slot->active ? slot->pieces & ~slot->waiting : 0;
        for (uint32_t piece = 0; sent >> piece; piece++) {
            bool lost = sent >> piece & 1 && slot->routes[piece] == notice->qp;
            if (lost) sort_piece(comm, notice, i, piece);
        }
    }
}

ncclResult_t tt_ib_notice_came(struct ib_comm *comm)
{
    const struct ib_notice *notice = &comm->notice_in;
    int qp = (int)(notice->qp % IB_QPS);
    uint32_t expected = comm->sending ? IB_NOTICE_STATE : IB_NOTICE_LOST;
    if (notice->kind != expected || qp >= comm->nqps || !comm->failover)
        return tt_ib_comm_fail(comm, ncclInternalError, "the peer says what is not understood");
    ncclResult_t rc = tt_ib_qp_lost(comm, qp, "the peer's end of it has failed");
    if (rc) return rc;
    if (comm->sending) {
        comm->unsent[qp / 32] &= ~(1u << qp % 32); /* it knows */
        go_on(comm, notice);
    }
    return tt_ib_end_post(&comm->from, false, &comm->notice_in, sizeof(comm->notice_in));
}
