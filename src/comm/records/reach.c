/* A pair of ranks shares memory only when each could map the other; what a host name or a namespace
 * suggests does not count. */
#include "comm/records/reach.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "bootstrap/bootstrap.h"
#include "device/device.h"
#include "mem/mem.h"
#include "transport/transport.h"

#include <stdlib.h>
#include <string.h>

/* One peer; NET unless proved better. */
static ncclResult_t probe(struct tt_comm *comm, int rank, bool allowed)
{
    const struct tt_comm_record *mine = tt_record_of(comm, comm->member.rank);
    const struct tt_comm_record *record = tt_record_of(comm, rank);
    const struct tt_range *range = tuttiHostRange();
    struct tt_peer_reach *peer = &comm->peers[rank];
    *peer = (struct tt_peer_reach){.reach = TT_REACH_NET,
                                   .inbox_offset = record->inbox_offset,
                                   .device = record->nvml_index,
                                   .same_pids = mine->host_id == record->host_id &&
                                                mine->pids == record->pids};
    bool same_process =
        mine->segment.process_id == record->segment.process_id && mine->pid == record->pid;
    if (same_process && (allowed || rank == comm->member.rank)) {
        peer->reach = TT_REACH_PROCESS;
        peer->range_base = range ? range->base : NULL;
        peer->range_bytes = range ? range->bytes : 0;
        peer->view = range ? range->view : NULL;
        peer->view_offset = range ? range->view_offset : 0;
        return ncclSuccess;
    }
    bool sane = record->inbox_offset < record->segment.bytes;
    if (!allowed || !sane || mine->host_id != record->host_id || !mine->segment.bytes) {
        return ncclSuccess;
    }
    ncclResult_t rc = tt_segment_map(&record->segment, &peer->range_base);
    if (rc || !peer->range_base) return rc;
    peer->reach = TT_REACH_MAPPED;
    peer->range_bytes = record->segment.bytes;
    return ncclSuccess;
}

static void unmap(struct tt_comm *comm, int rank)
{
    struct tt_peer_reach *peer = &comm->peers[rank];
    if (peer->reach == TT_REACH_MAPPED) tt_segment_unmap(&tt_record_of(comm, rank)->segment);
    peer->reach = TT_REACH_NET;
    peer->range_base = NULL;
    peer->range_bytes = 0;
}

static bool bit(const unsigned char *bits, size_t bytes, int row, int column)
{
    return bits[(size_t)row * bytes + (size_t)column / 8] >> (column % 8) & 1;
}

/* Keep what works both ways. */
static void keep_mutual(struct tt_comm *comm, const unsigned char *all, size_t bytes,
                        struct tt_reach_result *result)
{
    int n = comm->member.nranks, me = comm->member.rank;
    for (int r = 0; r < n; r++) {
        for (int q = 0; q < r; q++) {
            bool mutual = bit(all, bytes, r, q) && bit(all, bytes, q, r);
            result->any_net |= !mutual;
            result->any_memory |= mutual;
        }
        if (comm->peers[r].reach != TT_REACH_NET && !bit(all, bytes, r, me)) unmap(comm, r);
    }
}

ncclResult_t tt_reach_probe(struct tt_comm *comm, const struct tt_agreement *agreed,
                            struct tt_reach_result *result_out)
{
    int n = comm->member.nranks;
    size_t bytes = ((size_t)n + 7) / 8;
    bool off = (agreed->flags & TT_RECORD_P2P_OFF) && (agreed->flags & TT_RECORD_SHM_OFF);
    unsigned char *mine = tt_calloc(bytes, 1), *all = tt_calloc((size_t)n, bytes);
    ncclResult_t rc = ncclSuccess;
    comm->peers = tt_calloc((size_t)n, sizeof(*comm->peers));
    if (!mine || !all || !comm->peers) {
        free(mine);
        free(all);
        return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    }
    for (int r = 0; r < n && !rc; r++) {
        rc = probe(comm, r, !off);
        if (comm->peers[r].reach != TT_REACH_NET) mine[r / 8] |= (unsigned char)(1u << (r % 8));
    }
    if (!rc) rc = tt_bootstrap_allgather(comm->bootstrap, mine, bytes, all);
    *result_out = (struct tt_reach_result){0};
    if (!rc) keep_mutual(comm, all, bytes, result_out);
    free(mine);
    free(all);
    return rc;
}

void tt_reach_release(struct tt_comm *comm)
{
    for (int r = 0; comm->peers && comm->records && r < comm->member.nranks; r++)
        unmap(comm, r);
    free(comm->peers);
    comm->peers = NULL;
}
