/* The shared barrier: what a rank says to all others when it enters and leaves an operation on
 * each other's buffers. Each rank writes only its own lines: a cell per entered operation (eight
 * deep, so a rank whose buffers no other touches may run ahead) and a count of operations left. */
#include "transport/barrier.h"

#include "transport/transport_state.h"

static struct tt_barrier *own_barrier(struct tt_transport *transport)
{
    return tt_inbox_barrier(transport->inbox);
}

static uint64_t range_offset(const struct tt_transport *transport, const void *ptr)
{
    return tt_range_offset(&transport->config.peers[transport->config.member->rank], ptr, 0);
}

/* A cell is written again eight operations later: all ranks must have left that one. */
static bool cell_is_free(struct tt_transport *transport, uint64_t seq)
{
    if (seq <= transport->all_left + TT_SLOTS) return true;
    uint64_t least = UINT64_MAX;
    for (int rank = 0; rank < transport->config.member->nranks; rank++) {
        /* pairs with the release store in tt_barrier_leave() */
        uint64_t left =
            atomic_load_explicit(&transport->barriers[rank]->left, memory_order_acquire);
        if (left < least) least = left;
    }
    transport->all_left = least;
    return seq <= least + TT_SLOTS;
}

ncclResult_t tt_barrier_enter(struct tt_transport *transport, uint64_t match,
                              const struct tt_arrival *own)
{
    uint64_t seq = transport->entered + 1;
    if (!cell_is_free(transport, seq)) return ncclInProgress;
    transport->entered = seq;
    struct tt_barrier_cell *cell = &own_barrier(transport)->cell[seq % TT_SLOTS];
    cell->match = match;
    cell->in = (uint64_t)(uintptr_t)own->in;
    cell->out = (uint64_t)(uintptr_t)own->out;
    cell->in_offset = range_offset(transport, own->in);
    cell->out_offset = range_offset(transport, own->out);
    cell->word = own->word;
    /* pairs with the acquire load in tt_barrier_arrived() */
    atomic_store_explicit(&cell->seq, seq, memory_order_release);
    return ncclSuccess;
}

static char *addressed(const struct tt_peer_reach *peer, uint64_t pointer, uint64_t offset)
{
    if (peer->reach == TT_REACH_PROCESS) return (char *)(uintptr_t)pointer;
    return offset <= peer->range_bytes ? peer->range_base + offset : NULL;
}

static ncclResult_t mismatch(struct tt_transport *transport, uint64_t match, int rank,
                             uint64_t found)
{
    struct tt_call_entry own, theirs;
    if (!tt_call_log_find(transport, transport->config.member->rank, match >> 32, &own))
        own = (struct tt_call_entry){.match = match};
    if (!tt_call_log_find(transport, rank, found >> 32, &theirs) || theirs.match != found)
        theirs = (struct tt_call_entry){.match = found};
    return tt_call_log_mismatch(transport, &own, rank, &theirs);
}

ncclResult_t tt_barrier_arrived(struct tt_transport *transport, uint64_t match, int rank,
                                struct tt_arrival *arrival_out)
{
    uint64_t seq = transport->entered;
    const struct tt_barrier_cell *cell = &transport->barriers[rank]->cell[seq % TT_SLOTS];
    /* pairs with the release store in tt_barrier_enter() */
    if (atomic_load_explicit(&cell->seq, memory_order_acquire) != seq) return ncclInProgress;
    if (cell->match != match) return mismatch(transport, match, rank, cell->match);
    arrival_out->word = cell->word;
    if (rank == transport->config.member->rank) {
        arrival_out->in = (const char *)(uintptr_t)cell->in;
        arrival_out->out = (char *)(uintptr_t)cell->out;
        return ncclSuccess;
    }
    const struct tt_peer_reach *peer = &transport->config.peers[rank];
    arrival_out->in = addressed(peer, cell->in, cell->in_offset);
    arrival_out->out = addressed(peer, cell->out, cell->out_offset);
    return ncclSuccess;
}

void tt_barrier_leave(struct tt_transport *transport)
{
    /* pairs with the acquire loads in tt_barrier_left() and cell_is_free() */
    atomic_store_explicit(&own_barrier(transport)->left, transport->entered, memory_order_release);
}

bool tt_barrier_left(struct tt_transport *transport, int rank)
{
    const struct tt_barrier *barrier = transport->barriers[rank];
    return atomic_load_explicit(&barrier->left, memory_order_acquire) >= transport->entered;
}
