/* A queue pair has failed and others are left. Both ends bring theirs into the error state, so that
 * nothing more comes through; the receiver waits until all its receives of it have come back, by
 * which it knows what came; then it tells the sender, which writes the rest over other queue pairs.
 *
 *   sender                                   receiver
 *     LOST qp   ---- TCP ---->                 (or it sees the failure itself)
 *                                              error state; receives come back
 *               <--- TCP ----                STATE qp: messages waited for, pieces that came
 *     error state; missing pieces over others
 *
 * Writing twice does no harm: until the receiver has a message complete, its memory is the
 * message's. */
#include "base/log.h"
#include "net/ib/comm.h"

#include <string.h>

static void mark_dead(struct ib_comm *comm, int qp)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    comm->qps[qp].dead = true;
    (void)tt_verbs.modify_qp(comm->qps[qp].qp, &attr, IBV_QP_STATE); /* it may be there already */
}

static bool has_dead(const struct ib_comm *comm, int port)
{
    for (int i = 0; i < comm->nqps; i++) {
        if (comm->qps[i].dead && comm->qps[i].port == port) return true;
    }
    return false;
}

ncclResult_t tt_ib_qp_lost(struct ib_comm *comm, int qp, const char *why)
{
    if (comm->qps[qp].dead) return ncclSuccess;
    bool first = !has_dead(comm, comm->qps[qp].port);
    mark_dead(comm, qp);
    if (!comm->failover || tt_ib_qp_alive(comm, 0) < 0)
        return tt_ib_comm_fail(comm, ncclSystemError, why);
    if (first) {
        tt_warn("NET/IB: rank %d %s rank %d goes on without queue pairs of %s: %s",
                comm->context->rank, comm->sending ? "to" : "from", comm->peer.rank,
                comm->device->ports[comm->qps[qp].port]->name, why);
    }
    comm->unsent[qp / 32] |= 1u << qp % 32;
    return comm->sending ? ncclSuccess : tt_ib_table_again(comm);
}

/* ---- telling ---- */

static bool is_ready(const struct ib_comm *comm, int qp)
{
    bool wanted = comm->unsent[qp / 32] >> qp % 32 & 1;
    return wanted && (comm->sending || !comm->qps[qp].receives);
}

static void write_state(struct ib_comm *comm, struct ib_notice *notice)
{
    for (int i = 0; i < IB_SLOTS; i++) {
        const struct ib_slot *slot = &comm->slots[i];
        notice->numbers[i] = slot->active ? slot->number : 0;
        notice->pieces[i] = slot->pieces;
    }
}

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
        if (!is_ready(comm, qp)) continue;
        comm->unsent[qp / 32] &= ~(1u << qp % 32);
        memset(notice, 0, sizeof(*notice));
        notice->kind = comm->sending ? IB_NOTICE_LOST : IB_NOTICE_STATE;
        notice->qp = (uint32_t)qp;
        if (!comm->sending) write_state(comm, notice);
        return tt_ib_end_post(&comm->to, true, notice, sizeof(*notice));
    }
    return ncclSuccess;
}

/* ---- hearing ---- */

/* Does the receiver still want this piece? */
static bool is_missing(const struct ib_notice *notice, int i, const struct ib_slot *slot,
                       uint32_t piece)
{
    return notice->numbers[i] == slot->number && !(notice->pieces[i] >> piece & 1);
}

/* Of what went over the lost queue pair, this is to be written again and that has come. */
static void sort_piece(struct ib_comm *comm, const struct ib_notice *notice, int i, uint32_t piece)
{
    struct ib_slot *slot = &comm->slots[i];
    const struct ib_work work = {
        .slot = (uint8_t)i, .piece = (uint8_t)piece, .turn = (slot->number - 1) / IB_SLOTS & 1};
    if (is_missing(notice, i, slot, piece)) {
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
