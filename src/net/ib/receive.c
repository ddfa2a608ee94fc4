/* The receiving half: send the sender where the data goes, and collect the marks of its pieces. */
#include "base/error.h"
#include "net/ib/comm.h"

#include <stdio.h>
#include <string.h>

/* All tables go over one queue pair, so that an older one never comes after a newer one. */
static int table_qp(const struct ib_comm *comm)
{
    return tt_ib_qp_alive(comm, 0);
}

/* Signalled each time: only completions show how much room the queue has. */
static ncclResult_t write_table(struct ib_comm *comm, const struct ib_slot *slot)
{
    int number = table_qp(comm);
    if (number < 0) return comm->error;
    struct ib_qp *qp = &comm->qps[number];
    size_t index = (size_t)(slot - comm->slots);
    struct ib_entry *entries = comm->table->slots[index];
    struct ibv_sge sge = {(uintptr_t)entries, (uint32_t)slot->nparts * sizeof(*entries),
                          comm->table_mrs[qp->port]->lkey};
    struct ibv_send_wr *bad, work = {.wr_id = ib_work_pack((struct ib_work){
                                         IB_KIND_TABLE, (uint8_t)number, (uint8_t)index, 0, 0, 1}),
                                     .opcode = IBV_WR_RDMA_WRITE,
                                     .send_flags = IBV_SEND_SIGNALED,
                                     .sg_list = &sge,
                                     .num_sge = 1};
    work.wr.rdma.remote_addr = comm->peer.addr + index * sizeof(comm->table->slots[0]);
    work.wr.rdma.rkey = comm->peer.rkeys[qp->peer_port];
    int error = ibv_post_send(qp->qp, &work, &bad);
    if (error) {
        char why[96];
        snprintf(why, sizeof(why), "a receive could not be told of: %s", strerror(error));
        return tt_ib_comm_fail(comm, ncclSystemError, why);
    }
    qp->queued++;
    return ncclSuccess;
}

/* The queue pair that carried tables is gone: what it had may not have come. */
ncclResult_t tt_ib_table_again(struct ib_comm *comm)
{
    ncclResult_t rc = ncclSuccess;
    for (int i = 0; !rc && i < IB_SLOTS; i++) {
        if (comm->slots[i].active) rc = write_table(comm, &comm->slots[i]);
    }
    return rc;
}

static void fill_entries(struct ib_comm *comm, struct ib_slot *slot,
                         const struct ib_receive *receive)
{
    struct ib_entry *entries = comm->table->slots[slot - comm->slots];
    for (int i = 0; i < receive->n; i++) {
        const struct ib_mhandle *mhandle = receive->mhandles[i];
        entries[i].addr = (uintptr_t)receive->data[i];
        entries[i].bytes = receive->sizes[i];
        entries[i].tag = (uint32_t)receive->tags[i];
        entries[i].nparts = (uint32_t)receive->n;
        for (int port = 0; port < comm->nports; port++)
            entries[i].rkeys[port] = mhandle->mrs[port]->rkey;
        atomic_store_explicit(&entries[i].number, comm->number, memory_order_release);
    }
}

ncclResult_t tt_ib_irecv(struct ib_comm *comm, const struct ib_receive *receive,
                         struct ib_request **request_out)
{
    struct ib_slot *slot = &comm->slots[(comm->number - 1) % IB_SLOTS];
    int qp = table_qp(comm);
    *request_out = NULL;
    if (qp < 0) return comm->error;
    bool room = comm->qps[qp].queued < comm->qps[qp].depth;
    struct ib_request *request = slot->active || !room ? NULL : tt_ib_request_take(comm);
    if (!request) return ncclSuccess;
    request->slot = (uint32_t)(slot - comm->slots);
    request->nparts = receive->n;
    for (int i = 0; i < receive->n; i++)
        request->sizes[i] = receive->sizes[i];
    *slot = (struct ib_slot){.number = comm->number, .active = true, .nparts = receive->n};
    slot->requests[0] = request;
    fill_entries(comm, slot, receive);
    ncclResult_t rc = write_table(comm, slot);
    if (rc) return rc;
    comm->number++;
    *request_out = request;
    return ncclSuccess;
}

static ncclResult_t end_message(struct ib_comm *comm, struct ib_slot *slot)
{
    struct ib_request *request = slot->requests[0];
    const uint32_t *recorded = comm->record->sizes[slot - comm->slots];
    for (int i = 0; i < slot->nparts; i++) {
        size_t size = slot->size == IB_SIZE_RECORDED ? recorded[i] : slot->size;
        if (size > request->sizes[i])
            return tt_ib_comm_fail(comm, ncclInternalError, "a message is larger than its receive");
        request->sizes[i] = size;
    }
    request->done = true;
    slot->active = false;
    /* read by the sender's adapter: probe_post() */
    atomic_store_explicit(&comm->record->whole[slot - comm->slots], slot->number,
                          memory_order_release);
    return ncclSuccess;
}

ncclResult_t tt_ib_piece_came(struct ib_comm *comm, uint32_t imm)
{
    const struct ib_mark mark = ib_mark_unpack(imm);
    struct ib_slot *slot = &comm->slots[mark.slot];
    bool turn = (slot->number - 1) / IB_SLOTS & 1;
    if (!slot->active || turn != mark.turn) return ncclSuccess; /* came twice */
    slot->pieces |= 1u << mark.piece;
    if (mark.last) {
        slot->npieces = (int)mark.piece + 1;
        slot->size = mark.size;
    }
    bool complete = slot->npieces && slot->pieces == (1u << slot->npieces) - 1;
    return complete ? end_message(comm, slot) : ncclSuccess;
}
