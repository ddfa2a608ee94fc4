/* The sending half: wait for the receiver's entry, write the data there in pieces, and mark the end
 * of each. */
#include "base/error.h"
#include "base/mem.h"
#include "net/ib/comm.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { MOST_WORK = IB_PARTS + 2 }; /* of a piece: the parts, the record, the mark */

struct chain { /* work requests of a piece */
    struct ibv_send_wr work[MOST_WORK];
    struct ibv_sge sge[MOST_WORK];
    int count;
};

static struct ibv_send_wr *chain_add(struct chain *chain, enum ibv_wr_opcode opcode)
{
    struct ibv_send_wr *work = &chain->work[chain->count++];
    *work = (struct ibv_send_wr){.opcode = opcode};
    if (chain->count > 1) chain->work[chain->count - 2].next = work;
    return work;
}

static void chain_write(struct chain *chain, struct ibv_sge sge, uint64_t addr, uint32_t rkey)
{
    int i = chain->count;
    struct ibv_send_wr *work = chain_add(chain, IBV_WR_RDMA_WRITE);
    chain->sge[i] = sge;
    work->sg_list = &chain->sge[i];
    work->num_sge = 1;
    work->wr.rdma.remote_addr = addr;
    work->wr.rdma.rkey = rkey;
}

/* Bytes of a part in each piece but the last one. */
static size_t grain_of(const struct ib_comm *comm, size_t size)
{
    size_t even = (size + (size_t)comm->npieces - 1) / (size_t)comm->npieces;
    return tt_round_up(even, IB_GRAIN);
}

static uint32_t pieces_of(const struct ib_comm *comm, const struct ib_slot *slot)
{
    size_t most = 1;
    for (int i = 0; i < slot->nparts; i++) {
        size_t size = slot->requests[i]->size, grain = grain_of(comm, size);
        if (size) most = tt_max_size(most, (size + grain - 1) / grain);
    }
    return (uint32_t)most;
}

static void add_parts(struct ib_comm *comm, const struct ib_slot *slot, uint32_t piece,
                      struct chain *chain)
{
    const struct ib_qp *qp = &comm->qps[slot->routes[piece]];
    const struct ib_entry *entries = comm->table->slots[slot - comm->slots];
    for (int i = 0; i < slot->nparts; i++) {
        const struct ib_request *part = slot->requests[i];
        size_t grain = grain_of(comm, part->size), from = piece * grain;
        if (from >= part->size) continue;
        size_t bytes = tt_min_size(grain, part->size - from);
        struct ibv_sge sge = {(uintptr_t)part->data + from, (uint32_t)bytes,
                              part->mhandle->mrs[qp->port]->lkey};
        chain_write(chain, sge, entries[i].addr + from, entries[i].rkeys[qp->peer_port]);
    }
}

static void add_record(struct ib_comm *comm, const struct ib_slot *slot, struct chain *chain,
                       const struct ib_qp *qp)
{
    size_t index = (size_t)(slot - comm->slots);
    uint32_t *sizes = comm->record->sizes[index];
    for (int i = 0; i < slot->nparts; i++)
        sizes[i] = (uint32_t)slot->requests[i]->size;
    struct ibv_sge sge = {(uintptr_t)sizes, (uint32_t)slot->nparts * sizeof(*sizes),
                          comm->record_mrs[qp->port]->lkey};
    chain_write(chain, sge, comm->peer.addr + index * sizeof(comm->record->sizes[0]),
                comm->peer.rkeys[qp->peer_port]);
}

/* Where packets of one message may overtake each other, the mark is a write of its own. */
static struct ibv_send_wr *add_mark(const struct ib_comm *comm, const struct ib_slot *slot,
                                    struct chain *chain)
{
    bool apart = comm->adaptive && slot->requests[0]->size > comm->adaptive_bytes;
    if (chain->count != 1 || slot->nparts > 1 || apart)
        return chain_add(chain, IBV_WR_RDMA_WRITE_WITH_IMM);
    chain->work[0].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    return &chain->work[0];
}

/* ncclInProgress: the queue has no room. */
static ncclResult_t post_piece(struct ib_comm *comm, struct ib_slot *slot, uint32_t piece)
{
    struct ib_qp *qp = &comm->qps[slot->routes[piece]];
    struct ib_mark mark = {.slot = (uint32_t)(slot - comm->slots),
                           .turn = (slot->number - 1) / IB_SLOTS & 1,
                           .piece = piece,
                           .last = piece + 1 == pieces_of(comm, slot),
                           .size = IB_SIZE_RECORDED};
    struct chain chain = {.count = 0};
    struct ibv_send_wr *bad;
    if (qp->queued + MOST_WORK > qp->depth) return ncclInProgress;
    add_parts(comm, slot, piece, &chain);
    bool recorded = slot->nparts > 1 || slot->requests[0]->size >= IB_SIZE_RECORDED;
    if (!recorded) {
        mark.size = (uint32_t)slot->requests[0]->size;
    } else if (mark.last) {
        add_record(comm, slot, &chain, qp);
    }
    struct ibv_send_wr *last = add_mark(comm, slot, &chain);
    last->imm_data = htonl(ib_mark_pack(&mark));
    last->send_flags = IBV_SEND_SIGNALED;
    struct ib_work words = {IB_KIND_PIECE,  slot->routes[piece], (uint8_t)mark.slot,
                            (uint8_t)piece, mark.turn,           0};
    for (int i = 0; i < chain.count; i++) /* what fails completes, asked for or not */
        chain.work[i].wr_id = ib_work_pack(words);
    words.count = (uint16_t)chain.count;
    last->wr_id = ib_work_pack(words);
    int error = ibv_post_send(qp->qp, chain.work, &bad);
    if (error) {
        char why[96];
        snprintf(why, sizeof(why), "a write could not be posted: %s", strerror(error));
        return tt_ib_comm_fail(comm, ncclSystemError, why);
    }
    qp->queued += chain.count;
    return ncclSuccess;
}

static ncclResult_t post_waiting(struct ib_comm *comm, struct ib_slot *slot)
{
    for (uint32_t piece = 0; slot->waiting >> piece; piece++) {
        if (!(slot->waiting >> piece & 1)) continue;
        int qp = tt_ib_qp_alive(comm, slot->routes[piece]);
        if (qp < 0) return comm->error ? comm->error : ncclInProgress;
        slot->routes[piece] = (uint8_t)qp;
        ncclResult_t rc = post_piece(comm, slot, piece);
        if (rc == ncclInProgress) continue;
        if (rc) return rc;
        slot->waiting &= ~(1u << piece);
    }
    return ncclSuccess;
}

ncclResult_t tt_ib_send_waiting(struct ib_comm *comm)
{
    ncclResult_t rc = ncclSuccess;
    for (int i = 0; !rc && i < IB_SLOTS; i++) {
        if (comm->slots[i].active && comm->slots[i].waiting)
            rc = post_waiting(comm, &comm->slots[i]);
    }
    return rc == ncclInProgress ? ncclSuccess : rc;
}

static ncclResult_t begin_message(struct ib_comm *comm, struct ib_slot *slot)
{
    uint32_t npieces = pieces_of(comm, slot);
    for (uint32_t i = 0; i < npieces; i++) {
        slot->routes[i] = (uint8_t)comm->turn;
        comm->turn = comm->turn + 1 == comm->nqps ? 0 : comm->turn + 1;
    }
    slot->pieces = slot->waiting = (1u << npieces) - 1;
    slot->active = true;
    comm->number++;
    ncclResult_t rc = post_waiting(comm, slot);
    return rc == ncclInProgress ? ncclSuccess : rc;
}

/* The entry for `tag` that is not taken yet; NULL: not posted, or not in this message. */
static struct ib_entry *find_entry(struct ib_comm *comm, struct ib_slot *slot, int tag, int *part)
{
    struct ib_entry *entries = comm->table->slots[slot - comm->slots];
    /* pairs with the adapter, which writes the number last */
    if (atomic_load_explicit(&entries[0].number, memory_order_acquire) != comm->number) return NULL;
    uint32_t nparts = entries[0].nparts;
    if (nparts < 1 || nparts > IB_PARTS) return NULL;
    for (uint32_t i = 1; i < nparts; i++) {
        if (atomic_load_explicit(&entries[i].number, memory_order_acquire) != comm->number)
            return NULL;
    }
    if (slot->number != comm->number) {
        slot->number = comm->number;
        slot->nparts = (int)nparts;
        slot->filled = 0;
        memset(slot->requests, 0, sizeof(slot->requests));
    }
    for (*part = 0; *part < (int)nparts; ++*part) {
        if (entries[*part].tag == (uint32_t)tag && !slot->requests[*part]) return &entries[*part];
    }
    return NULL;
}

ncclResult_t tt_ib_isend(struct ib_comm *comm, const struct ib_request *wanted, int tag,
                         struct ib_request **request_out)
{
    struct ib_slot *slot = &comm->slots[(comm->number - 1) % IB_SLOTS];
    int part = 0;
    *request_out = NULL;
    if (slot->active) return ncclSuccess; /* the adapter still has the one before it */
    const struct ib_entry *entry = find_entry(comm, slot, tag, &part);
    if (!entry) return ncclSuccess;
    if (wanted->size > entry->bytes) {
        char why[128];
        snprintf(why, sizeof(why), "message truncated: %zu bytes are sent, the receive has %zu",
                 wanted->size, (size_t)entry->bytes);
        return tt_ib_comm_fail(comm, ncclInvalidUsage, why);
    }
    struct ib_request *request = tt_ib_request_take(comm);
    if (!request) return ncclSuccess;
    request->data = wanted->data;
    request->size = wanted->size;
    request->mhandle = wanted->mhandle;
    request->nparts = 1;
    request->sizes[0] = wanted->size;
    slot->requests[part] = request;
    *request_out = request;
    return ++slot->filled == slot->nparts ? begin_message(comm, slot) : ncclSuccess;
}

void tt_ib_slot_done(struct ib_slot *slot)
{
    for (int i = 0; i < slot->nparts; i++)
        slot->requests[i]->done = true;
    slot->active = false;
    slot->pieces = slot->waiting = 0;
}

void tt_ib_piece_done(struct ib_comm *comm, const struct ib_work *work)
{
    struct ib_slot *slot = &comm->slots[work->slot % IB_SLOTS];
    bool turn = (slot->number - 1) / IB_SLOTS & 1;
    if (!slot->active || turn != work->turn) return;
    slot->pieces &= ~(1u << work->piece);
    if (!slot->pieces) tt_ib_slot_done(slot);
}
