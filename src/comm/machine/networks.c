/* What the ranks of a communicator meet over: found to be the same before the first message, and
 * used as far as all of them have it. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "bootstrap/bootstrap.h"
#include "comm/init.h"
#include "comm/records/record.h"
#include "plugin/net/net.h"
#include "plugin/plugin.h"
#include "transport/transport.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLICE_BYTES = 256 << 10, GATHERED_SLICE_BYTES = 512 << 10 };

/* The control memory has no room for such ones: edges through memory are off. A network that
 * gathers needs memory for few of them. (Ranks with different networks are refused later.) */
void tt_networks_slices(const struct tt_comm *comm, struct tt_agreement *agreed)
{
    if (agreed->flags & TT_RECORD_SLICES_SET || comm->member.nranks < 2) return;
    bool gathers = comm->net && comm->net->plugin->ops.gathers;
    agreed->flags |= TT_RECORD_P2P_OFF | TT_RECORD_SHM_OFF;
    agreed->slice_bytes = gathers ? GATHERED_SLICE_BYTES : SLICE_BYTES;
    tt_info(TT_LOG_INIT | TT_LOG_NET, "slices of %u KiB, as no two ranks share memory",
            (unsigned int)agreed->slice_bytes >> 10);
}

/* A rank and the network that it has, for people. */
static void describe(const struct tt_comm *comm, int rank, const struct tt_net_label *label,
                     char *text, size_t text_bytes)
{
    int pid;
    const char *host = tt_bootstrap_peer(comm->bootstrap, rank, &pid);
    snprintf(text, text_bytes, "rank %d on host %.64s (pid %d) has network %.63s (v%d)", rank, host,
             pid, label->name, (int)label->version);
}

/* Handles and messages of one network mean nothing to another one. */
static ncclResult_t compare_nets(const struct tt_comm *comm, const struct tt_net_label *labels)
{
    const struct tt_net_label *own = &labels[comm->member.rank];
    for (int r = 0; own->version && r < comm->member.nranks; r++) {
        char texts[2][224];
        const struct tt_net_label *other = &labels[r];
        if (!other->version) continue;
        if (other->version == own->version && !strcmp(other->name, own->name)) continue;
        describe(comm, comm->member.rank, own, texts[r < comm->member.rank], sizeof(texts[0]));
        describe(comm, r, other, texts[r > comm->member.rank], sizeof(texts[0]));
        return tt_fail(ncclInvalidUsage,
                       "%s and %s: NCCL_NET and NCCL_NET_PLUGIN must mean the same network on all "
                       "ranks",
                       texts[0], texts[1]);
    }
    return ncclSuccess;
}

/* Registered memory is there whether it is used or not. */
static void bound_slices(struct tt_comm *comm, struct tt_agreement *agreed)
{
    size_t most =
        tt_transport_slice_most(comm->member.nranks, comm->edge_channels, agreed->slice_bytes);
    if (most == agreed->slice_bytes) return;
    tt_info(TT_LOG_INIT | TT_LOG_NET, "slices of %zu KiB instead of %u, as NET/%s registers slots",
            most >> 10, (unsigned int)agreed->slice_bytes >> 10, comm->net ? comm->net->name : "");
    comm->tune.slice_bytes = agreed->slice_bytes = (uint32_t)most;
}

ncclResult_t tt_networks_agree(struct tt_comm *comm, struct tt_agreement *agreed)
{
    struct tt_net_label own;
    struct tt_net_label *labels = tt_calloc((size_t)comm->member.nranks, sizeof(*labels));
    if (!labels) return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    tt_net_label(comm->net, &own);
    ncclResult_t rc = tt_bootstrap_allgather(comm->bootstrap, &own, sizeof(own), labels);
    if (!rc) rc = compare_nets(comm, labels);
    int ndevs = own.ndevs, least = 0; /* of all ranks that have a network: the same at all ranks */
    bool registers = false;
    for (int r = 0; !rc && r < comm->member.nranks; r++) {
        if (!labels[r].version) continue;
        registers = registers || !labels[r].gathers;
        if (labels[r].ndevs < ndevs) ndevs = labels[r].ndevs;
        if (!least || labels[r].ndevs < least) least = labels[r].ndevs;
    }
    comm->tune.ndevs = least;
    if (!rc && ndevs < own.ndevs && !comm->nics) { /* a machine's NICs are chosen by its search */
        tt_net_spread(comm->net, ndevs);
        tt_info(TT_LOG_INIT | TT_LOG_NET,
                "rank %d: the first %d of %d devices of NET/%s are used, another rank has no more",
                comm->member.rank, ndevs, (int)own.ndevs, own.name);
    }
    if (!rc && registers) bound_slices(comm, agreed);
    free(labels);
    return rc;
}
