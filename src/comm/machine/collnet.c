/* Networks that reduce (CollNet), at init: whether all ranks want one and have it, the groups of
 * ranks that it sums over, and what it can reduce. A group is the ranks of one position on their
 * hosts. What is missing at one rank switches it off for all, with one line that says why. */
#include "plugin/net/collnet.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "comm/init.h"
#include "comm/records/record.h"
#include "transport/reduces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TAG_LOST = 0x434e0001, LOOK_USEC = 500 };

/* Of a rank; the least that all have is what matters. */
enum lack {
    LACK_NOTHING,
    LACK_PLUGIN,  /* its network offers none, or another one than rank 0's */
    LACK_ROOM,    /* a message of the plugin's is smaller than a slot */
    LACK_LISTEN,  /* the plugin's listen failed */
    LACK_CONNECT, /* its connect did */
    LACK_GROUP,   /* another rank of its group reported that */
    LACK_COUNT_,
};
static const char *const lacks[LACK_COUNT_] = {
    [LACK_PLUGIN] = "its network does not offer it",
    [LACK_ROOM] = "the plugin's maxCollBytes is smaller than a slot, or above 1 TiB",
    [LACK_LISTEN] = "the plugin's listen failed",
    [LACK_CONNECT] = "the plugin's connect failed",
    [LACK_GROUP] = "another rank of its group has gone",
};

struct offer { /* what ranks exchange first */
    int32_t lack;
    int32_t version;
    char name[64];
    _Alignas(16) char handle[NCCL_NET_HANDLE_MAXSIZE];
};

struct outcome { /* and after connecting */
    int32_t lack;
    uint8_t makes;                 /* a bit per enum tt_collnet_kind */
    uint8_t reduces[ncclNumTypes]; /* a bit per operator */
};

struct group { /* of this rank */
    int hosts, locals, host, local;
    int64_t timeout_sec; /* of the init */
};

/* ---- whether ---- */

/* The same answer at all ranks. NULL: it may be used. */
static const char *hindrance(const struct tt_comm *comm, const struct tt_agreement *agreed,
                             char *text, size_t text_bytes)
{
    int64_t threshold = tt_param_int("NCCL_COLLNET_NODE_THRESHOLD");
    int nodes = comm->topo.nnodes;
    for (int r = 0; r < comm->member.nranks; r++) {
        if (tt_record_of(comm, r)->flags & TT_RECORD_COLLNET) continue;
        snprintf(text, text_bytes, "rank %d has NCCL_COLLNET_ENABLE=0", r);
        return text;
    }
    if (nodes < threshold || nodes < 2) {
        snprintf(text, text_bytes, "%d node%s, NCCL_COLLNET_NODE_THRESHOLD is %lld", nodes,
                 nodes == 1 ? "" : "s", (long long)threshold);
        return text;
    }
    if (comm->topo.layout) return "the devices emulate a machine, which has no programs of it";
    if (!comm->topo.by_host || comm->topo.host_first)
        return "nodes have different numbers of ranks";
    return agreed->edge_channels < 2 ? "there is one channel alone" : NULL;
}

static struct group group_of(const struct tt_comm *comm)
{
    int at = 0, locals = comm->member.nranks / comm->topo.nnodes;
    while (comm->topo.by_host[at] != comm->member.rank)
        at++;
    return (struct group){comm->topo.nnodes, locals, at / locals, at % locals, 0};
}

/* ---- the offer ---- */

static enum lack make_offer(struct tt_comm *comm, const struct group *group, void **listen_comm,
                            struct offer *offer)
{
    struct tt_collnet *collnet = comm->collnet;
    struct tt_collnet_device device = {0};
    if (!collnet) return LACK_PLUGIN;
    struct tt_collnet_plugin *plugin = collnet->plugin;
    offer->version = plugin->ops.version;
    memcpy(offer->name, collnet->name, sizeof(offer->name));
    comm->collnet_dev = group->local % collnet->ndevs;
    if (plugin->ops.device(plugin, comm->collnet_dev, &device)) return LACK_PLUGIN;
    bool fits = device.most_bytes <= NCCL_MAX_NET_SIZE_BYTES;
    if (!fits || device.most_bytes < comm->tune.slice_bytes) return LACK_ROOM;
    ncclResult_t rc =
        plugin->ops.listen(plugin, collnet->ctx, comm->collnet_dev, offer->handle, listen_comm);
    return rc || !*listen_comm ? LACK_LISTEN : LACK_NOTHING;
}

/* Handles of one plugin mean nothing to another one. */
static enum lack compare_offers(const struct offer *offers, int nranks, int *rank_out)
{
    for (int r = 0; r < nranks; r++) {
        bool same = offers[r].version == offers[0].version &&
                    !strncmp(offers[r].name, offers[0].name, sizeof(offers[0].name));
        *rank_out = r;
        if (offers[r].lack) return (enum lack)offers[r].lack;
        if (!same) return LACK_PLUGIN;
    }
    return LACK_NOTHING;
}

/* ---- connecting ---- */

/* A rank of the group has no connection: the others will have none either. */
static bool group_lost(const struct tt_comm *comm, const struct group *group)
{
    for (int host = 0; host < group->hosts; host++) {
        char word;
        size_t bytes;
        int rank = comm->topo.by_host[host * group->locals + group->local];
        if (rank == comm->member.rank) continue;
        if (!tt_bootstrap_poll(comm->bootstrap, rank, TAG_LOST, &word, sizeof(word), &bytes))
            return true;
    }
    return false;
}

static void report_lost(const struct tt_comm *comm, const struct group *group)
{
    const char word = 1;
    for (int host = 0; host < group->hosts; host++) {
        int rank = comm->topo.by_host[host * group->locals + group->local];
        if (rank == comm->member.rank) continue;
        (void)tt_bootstrap_send(comm->bootstrap, rank, TAG_LOST, &word, sizeof(word));
    }
}

/* Until the plugin has connected, or cannot any more: it waits without an end of its own. Half the
 * time of an init is enough, so that there is time to go on without. *lost_out: another rank's
 * plugin could not. */
static ncclResult_t await_connect(struct tt_comm *comm, const struct group *group,
                                  struct tt_collnet_call *call, bool *lost_out)
{
    uint64_t end = tt_now_nsec() + (uint64_t)group->timeout_sec * 500000000u;
    for (;; tt_sleep_usec(LOOK_USEC)) {
        ncclResult_t rc = tt_collnet_connected(call, &comm->coll_comm);
        if (rc != ncclInProgress) return rc;
        if (tt_member_aborted(&comm->member)) return tt_member_abort_code(&comm->member);
        rc = tt_bootstrap_error(comm->bootstrap, NULL);
        if (rc) return rc;
        *lost_out = group_lost(comm, group);
        if (*lost_out) return ncclRemoteError;
        if (group->timeout_sec > 0 && tt_now_nsec() > end) return ncclTimeout;
    }
}

static enum lack connect_group(struct tt_comm *comm, const struct group *group,
                               const struct offer *offers, void *listen_comm)
{
    struct tt_collnet_call *call = NULL;
    bool lost = false;
    char *handles = tt_calloc((size_t)group->hosts, NCCL_NET_HANDLE_MAXSIZE);
    if (!handles) {
        comm->collnet->plugin->ops.close_listen(comm->collnet->plugin, listen_comm);
        return LACK_CONNECT;
    }
    for (int host = 0; host < group->hosts; host++) {
        int rank = comm->topo.by_host[host * group->locals + group->local];
        memcpy(handles + (size_t)host * NCCL_NET_HANDLE_MAXSIZE, offers[rank].handle,
               NCCL_NET_HANDLE_MAXSIZE);
    }
    ncclResult_t rc =
        tt_collnet_connect(comm->collnet, handles, group->hosts, group->host, listen_comm, &call);
    if (!rc) rc = await_connect(comm, group, call, &lost);
    tt_collnet_call_end(call);
    free(handles);
    if (rc && !lost) report_lost(comm, group);
    if (rc) return lost ? LACK_GROUP : LACK_CONNECT;
    return LACK_NOTHING;
}

/* What the plugin can reduce. */
static void ask_reductions(struct tt_collnet_plugin *plugin, struct outcome *outcome)
{
    for (int kind = TT_COLLNET_SUM; kind <= TT_COLLNET_SCATTER; kind++) {
        if (plugin->ops.offers(plugin, (enum tt_collnet_kind)kind))
            outcome->makes |= (uint8_t)(1 << kind);
    }
    for (int type = 0; type < ncclNumTypes; type++) {
        for (int op = ncclSum; op <= ncclMin; op++) {
            int supported = 0;
            ncclResult_t rc = plugin->ops.reduce_support(plugin, (ncclDataType_t)type,
                                                         (ncclRedOp_t)op, &supported);
            if (!rc && supported) outcome->reduces[type] |= (uint8_t)(1 << op);
        }
    }
}

/* ---- what all ranks find ---- */

static void switch_off(struct tt_comm *comm, enum lack lack, int rank)
{
    bool broken = lack >= LACK_LISTEN;
    tt_collnets_close(comm);
    if (comm->member.rank == 0 && broken) {
        tt_warn("CollNet is off: rank %d: %s; the point-to-point network is used", rank,
                lacks[lack]);
    } else {
        tt_info(TT_LOG_INIT | TT_LOG_NET, "CollNet is off: rank %d: %s", rank, lacks[lack]);
    }
}

static ncclResult_t exchange_outcomes(struct tt_comm *comm, const struct group *group,
                                      const struct outcome *own)
{
    int n = comm->member.nranks;
    struct outcome *all = tt_calloc((size_t)n, sizeof(*all));
    comm->network_group = tt_calloc(1, sizeof(*comm->network_group));
    if (!all || !comm->network_group) {
        free(all);
        return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    }
    ncclResult_t rc = tt_bootstrap_allgather(comm->bootstrap, own, sizeof(*own), all);
    memset(comm->network_sums, 0xff, sizeof(comm->network_sums));
    uint8_t makes = own->makes;
    int lacking = -1;
    for (int r = 0; !rc && r < n; r++) {
        bool first = lacking < 0 || (all[lacking].lack == LACK_GROUP && all[r].lack != LACK_GROUP);
        if (all[r].lack && first) lacking = r;
        makes &= all[r].makes;
        for (int type = 0; type < ncclNumTypes; type++)
            comm->network_sums[type] &= all[r].reduces[type];
    }
    if (!rc && lacking >= 0) {
        switch_off(comm, (enum lack)all[lacking].lack, lacking);
    } else if (!rc) {
        comm->tune.network_sums = comm->network_sums;
        comm->tune.network_gathers = makes >> TT_COLLNET_GATHER & 1;
        comm->tune.network_scatters = makes >> TT_COLLNET_SCATTER & 1;
        *comm->network_group = (struct tt_transport_group){.collnet = comm->collnet,
                                                           .comm = comm->coll_comm,
                                                           .nranks = group->hosts,
                                                           .rank = group->host,
                                                           .dev = comm->collnet_dev};
        tt_info(TT_LOG_INIT, "rank %d Connected CollNet", comm->member.rank);
    }
    free(all);
    return rc;
}

static ncclResult_t open_group(struct tt_comm *comm, const struct group *group)
{
    int n = comm->member.nranks, lacking = -1;
    void *listen_comm = NULL;
    struct offer own = {.lack = LACK_NOTHING};
    struct outcome outcome = {.lack = LACK_NOTHING};
    struct offer *offers = tt_calloc((size_t)n, sizeof(*offers));
    if (!offers) return tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    own.lack = (int32_t)make_offer(comm, group, &listen_comm, &own);
    ncclResult_t rc = tt_bootstrap_allgather(comm->bootstrap, &own, sizeof(own), offers);
    enum lack lack = rc ? LACK_NOTHING : compare_offers(offers, n, &lacking);
    if (rc || lack) {
        if (listen_comm)
            comm->collnet->plugin->ops.close_listen(comm->collnet->plugin, listen_comm);
        if (lack) switch_off(comm, lack, lacking);
    } else {
        outcome.lack = (int32_t)connect_group(comm, group, offers, listen_comm);
        if (!outcome.lack) ask_reductions(comm->collnet->plugin, &outcome);
        rc = exchange_outcomes(comm, group, &outcome);
    }
    free(offers);
    return rc;
}

ncclResult_t tt_collnets_agree(struct tt_comm *comm, const struct tt_agreement *agreed,
                               int64_t timeout_sec)
{
    char text[96];
    if (!(agreed->flags & TT_RECORD_COLLNET)) return ncclSuccess;
    const char *why = hindrance(comm, agreed, text, sizeof(text));
    if (why) {
        tt_info(TT_LOG_INIT | TT_LOG_NET, "CollNet is off: %s", why);
        return ncclSuccess;
    }
    struct group group = group_of(comm);
    group.timeout_sec = timeout_sec;
    ncclResult_t rc =
        comm->net ? tt_collnet_open(comm->net, comm->member.comm_id, &comm->collnet) : ncclSuccess;
    return rc ? rc : open_group(comm, &group);
}

void tt_collnets_close(struct tt_comm *comm)
{
    struct tt_collnet *collnet = comm->collnet;
    free(comm->network_group);
    comm->network_group = NULL;
    if (!collnet) return;
    if (comm->coll_comm) collnet->plugin->ops.close_coll(collnet->plugin, comm->coll_comm);
    tt_collnet_close(collnet);
    comm->collnet = NULL;
    comm->coll_comm = NULL;
}
