/* What takes part on this host, and what the others have: a machine file is completed with the
 * devices of this host's ranks and of its network plugin, then hosts whose files differ show them
 * to each other. A host's file is its first rank's. */
#include "base/dedup.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "comm/init.h"
#include "plugin/net/net.h"
#include "topo/file/nic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 4 << 20, CHUNK = 65536 };

/* ---- this host ---- */

/* GPUs of the host's ranks. */
static int list_devices(const struct tt_comm *comm, const struct tt_agreement *agreed,
                        struct tt_topo_device *devices)
{
    int own = agreed->ranks[comm->member.rank].node, count = 0;
    for (int r = 0; r < comm->member.nranks; r++) {
        if (agreed->ranks[r].node != own) continue;
        devices[count++] = (struct tt_topo_device){
            agreed->ranks[r].bus_id, tt_record_of(comm, r)->nvml_index, tt_record_of(comm, r)->cc};
    }
    return count;
}

/* Devices of a network plugin. What is built in carries the traffic of the machine's own NICs. */
static int list_nics(const struct tt_comm *comm, struct tt_topo_nic *nics)
{
    struct tt_net_plugin *plugin = comm->net->plugin;
    int count = 0;
    for (int dev = 0; dev < comm->net->ndevs; dev++) {
        ncclNetProperties_v12_t props;
        memset(&props, 0, sizeof(props));
        if (plugin->ops.properties(plugin, dev, &props) || !props.name) continue;
        nics[count++] = tt_topo_nic_of(dev, &props);
    }
    return count;
}

/* What was odd, on the host's first rank. */
static void report(const struct tt_topo_file *file, int local_rank)
{
    const char *at = tt_topo_file_warnings(file);
    while (*at && local_rank == 0) {
        int length = (int)strcspn(at, "\n");
        tt_info(TT_LOG_GRAPH, "%.*s", length, at);
        at += length + (at[length] == '\n');
    }
}

static ncclResult_t join_nics(const struct tt_comm *comm, struct tt_topo_file *file)
{
    struct tt_net_plugin *plugin = comm->net->plugin;
    const struct tt_topo_joiner joiner = {plugin->ops.group_most(plugin), tt_net_virtual_of,
                                          comm->net};
    return tt_topo_join(file, &joiner);
}

void tt_machine_own_nic(const struct tt_comm *comm, const struct tt_topo_file *file, int *dev)
{
    ncclNetVDeviceProps_v12_t members = {0};
    int mbps;
    if (*dev < comm->net->ndevs) return;
    members.ndevs = tt_topo_joined(file, *dev, members.devs);
    if (!members.ndevs || !tt_net_virtual(comm->net, &members, dev, &mbps)) *dev = -1;
}

static ncclResult_t complete(struct tt_init *init, const struct tt_agreement *agreed)
{
    const struct tt_comm *comm = init->comm;
    bool plugin = comm->net && !comm->net->plugin->interfaces;
    size_t nnics = plugin ? (size_t)comm->net->ndevs : 0;
    struct tt_topo_device *devices = tt_calloc((size_t)comm->member.nranks, sizeof(*devices));
    struct tt_topo_nic *nics = tt_calloc(nnics + 1, sizeof(*nics));
    struct tt_topo_local local = {.devices = devices, .nics = plugin ? nics : NULL};
    ncclResult_t rc = ncclSuccess;
    if (!devices || !nics) {
        rc = tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
        goto out;
    }
    local.ndevices = list_devices(comm, agreed, devices);
    if (plugin) local.nnics = list_nics(comm, nics);
    rc = tt_topo_complete(init->machine, &local);
    if (!rc && plugin) rc = join_nics(comm, init->machine);
    if (!rc) report(init->machine, agreed->local_rank);
out:
    free(devices);
    free(nics);
    return rc;
}

/* ---- all hosts ---- */

struct label { /* of a rank's file */
    uint64_t hash, bytes;
};

struct sharing {
    struct tt_init *init;
    const struct tt_agreement *agreed;
    struct tt_topo_host *hosts; /* borrowed, to be filled */
    char *text;                 /* owned; this rank's file */
    struct label *labels;       /* owned; of all ranks */
    int *leader;                /* owned; by host: its first rank */
    int *same;                  /* owned; by host: the first with the same text */
    size_t most_bytes;          /* of the files that travel */
};

static int compare_labels(const struct label *a, const struct label *b)
{
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    if (a->bytes == b->bytes) return 0;
    return a->bytes < b->bytes ? -1 : 1;
}

static bool same_label(const struct label *a, const struct label *b)
{
    return compare_labels(a, b) == 0;
}

static int compare_hosts(const void *things, int a, int b)
{
    const struct sharing *sharing = things;
    return compare_labels(&sharing->labels[sharing->leader[a]],
                          &sharing->labels[sharing->leader[b]]);
}

/* True when all have what this rank has. */
static bool look_at_labels(struct sharing *sharing)
{
    const struct tt_comm *comm = sharing->init->comm;
    bool same = true;
    for (int r = comm->member.nranks - 1; r >= 0; r--)
        sharing->leader[sharing->agreed->ranks[r].node] = r;
    for (int r = 0; r < comm->member.nranks; r++) {
        const struct label *label = &sharing->labels[r];
        if (label->bytes > sharing->most_bytes) sharing->most_bytes = label->bytes;
        same = same && same_label(label, &sharing->labels[0]);
    }
    int own = sharing->leader[sharing->agreed->ranks[comm->member.rank].node];
    if (!same_label(&sharing->labels[own], &sharing->labels[comm->member.rank])) {
        tt_info(TT_LOG_INIT | TT_LOG_GRAPH,
                "NCCL_TOPO_FILE: the machine file of rank %d, the first of this host, counts", own);
    }
    return same;
}

/* Chunk after chunk of all ranks' texts; those of the hosts' first ranks are kept, each text once.
 */
static ncclResult_t exchange_texts(struct sharing *sharing, char **texts)
{
    const struct tt_comm *comm = sharing->init->comm;
    size_t n = (size_t)comm->member.nranks, all = sharing->most_bytes;
    size_t chunk = tt_min_size(all, CHUNK);
    size_t own_bytes = strlen(sharing->text);
    char *mine = tt_calloc(1, chunk), *round = tt_calloc(n, chunk);
    ncclResult_t rc = ncclSuccess;
    if (!mine || !round) rc = tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    for (size_t at = 0; at < all && !rc; at += chunk) {
        size_t bytes = at < own_bytes ? tt_min_size(chunk, own_bytes - at) : 0;
        memset(mine, 0, chunk);
        memcpy(mine, sharing->text + tt_min_size(at, own_bytes), bytes);
        rc = tt_bootstrap_allgather(comm->bootstrap, mine, chunk, round);
        for (int h = 0; h < sharing->agreed->nnodes && !rc; h++) {
            size_t leader = (size_t)sharing->leader[h];
            size_t total = sharing->labels[leader].bytes;
            if (texts[h] && at < total)
                memcpy(texts[h] + at, round + leader * chunk, tt_min_size(chunk, total - at));
        }
    }
    free(mine);
    free(round);
    return rc;
}

static ncclResult_t parse_texts(struct sharing *sharing, char **texts)
{
    struct tt_init *init = sharing->init;
    ncclResult_t rc = ncclSuccess;
    for (int h = 0; h < sharing->agreed->nnodes && !rc; h++) {
        char name[64];
        int same = sharing->same[h];
        struct tt_topo_file *file = NULL;
        (void)snprintf(name, sizeof(name), "machine file of rank %d", sharing->leader[h]);
        if (same == h) rc = tt_topo_file_parse(name, texts[h], strlen(texts[h]), &file);
        if (file) init->others[init->nothers++] = file;
        sharing->hosts[h].file = same == h ? file : sharing->hosts[same].file;
    }
    return rc;
}

static ncclResult_t share_texts(struct sharing *sharing)
{
    const struct tt_comm *comm = sharing->init->comm;
    size_t nhosts = (size_t)sharing->agreed->nnodes;
    char **texts = tt_calloc(nhosts, sizeof(*texts));
    ncclResult_t rc = ncclSuccess;
    bool complete = texts != NULL;
    sharing->init->others = tt_calloc(nhosts, sizeof(struct tt_topo_file *));
    for (int h = 0; h < sharing->agreed->nnodes && complete; h++) {
        if (sharing->same[h] != h) continue;
        texts[h] = tt_calloc(1, sharing->labels[sharing->leader[h]].bytes + 1);
        complete = texts[h] != NULL;
    }
    if (!complete || !sharing->init->others)
        rc = tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    if (!rc) rc = exchange_texts(sharing, texts);
    if (!rc) rc = parse_texts(sharing, texts);
    for (size_t h = 0; h < nhosts && texts; h++)
        free(texts[h]);
    free(texts);
    return rc;
}

ncclResult_t tt_machine_share(struct tt_init *init, const struct tt_agreement *agreed,
                              struct tt_topo_host *hosts)
{
    const struct tt_comm *comm = init->comm;
    struct sharing sharing = {.init = init, .agreed = agreed, .hosts = hosts};
    ncclResult_t rc = complete(init, agreed);
    if (rc) return rc;
    sharing.text = tt_topo_file_print(init->machine);
    sharing.labels = tt_calloc((size_t)comm->member.nranks, sizeof(*sharing.labels));
    sharing.leader = tt_calloc((size_t)agreed->nnodes, sizeof(int));
    sharing.same = tt_calloc((size_t)agreed->nnodes, sizeof(int));
    if (!sharing.text || !sharing.labels || !sharing.leader || !sharing.same)
        rc = tt_fail(ncclSystemError, "rank %d: out of memory", comm->member.rank);
    if (!rc) {
        struct label own = {.bytes = strlen(sharing.text)};
        own.hash = tt_hash_bytes(TT_HASH_START, sharing.text, own.bytes);
        rc = tt_bootstrap_allgather(comm->bootstrap, &own, sizeof(own), sharing.labels);
    }
    bool same = !rc && look_at_labels(&sharing);
    for (int h = 0; h < agreed->nnodes && same; h++)
        hosts[h].file = init->machine;
    if (!rc && !same && sharing.most_bytes > MOST_BYTES) {
        rc = tt_fail(ncclInvalidUsage, "machine files that differ may have %d bytes; one has %zu",
                     (int)MOST_BYTES, sharing.most_bytes);
    }
    if (!rc && !same) rc = tt_dedup_find(&sharing, agreed->nnodes, compare_hosts, sharing.same);
    if (!rc && !same) rc = share_texts(&sharing);
    free(sharing.text);
    free(sharing.labels);
    free(sharing.leader);
    free(sharing.same);
    return rc;
}
