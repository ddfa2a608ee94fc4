/* Lines of a communicator's life as NCCL's users and tools know them.
 * Fields keep their order and their separators; what is new stands in lines of its own. */
#include "base/log.h"
#include "base/param.h"
#include "comm/init.h"
#include "device/device.h"
#include "plugin/net/net.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RING_LINE 127
#define TREE_LINE 1023
#define INIT_LINE 320 /* a function's name and at most 12 numbers */

static void version_line(enum tt_log_level level)
{
    tt_log_line(level, (uint32_t)TT_LOG_ALL, __FILE__, __LINE__, __func__,
                "NCCL version %d.%d.%d%s+cuda%d.%d", NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH,
                NCCL_SUFFIX, CUDART_VERSION / 1000, CUDART_VERSION % 1000 / 10);
}

static void version_info(void)
{
    version_line(TT_LOG_INFO);
    tt_log_line(TT_LOG_INFO, (uint32_t)TT_LOG_ALL, __FILE__, __LINE__, __func__,
                "Tutti version 0.1.0");
    tt_info(TT_LOG_INIT, "cudaDriverVersion %d", CUDART_VERSION);
}

static void version_bare(void)
{
    version_line(TT_LOG_VERSION);
}

void tt_report_version(const struct tt_comm *comm)
{
    if (tt_log_on(TT_LOG_INFO, (uint32_t)TT_LOG_ALL)) {
        pthread_once(&tt_comms.version_once, version_info);
    } else if (comm->member.rank == 0) {
        pthread_once(&tt_comms.version_once, version_bare);
    }
}

struct where {
    int nvml_index;
    int64_t bus;
};

static struct where where_is(const struct tt_comm *comm)
{
    struct tt_device_info info;
    memset(&info, 0, sizeof(info));
    if (tuttiHostDeviceInfo(comm->member.device, &info)) return (struct where){0};
    return (struct where){.nvml_index = info.nvml_index, .bus = tt_bus_number(info.bus_id)};
}

/* The new communicator, as both lines name it: up to the key of a child, up to the id of a root. */
static void describe(const struct tt_comm *comm, char line[INIT_LINE])
{
    struct where at = where_is(comm);
    const struct tt_member *m = &comm->member;
    int used =
        snprintf(line, INIT_LINE, "%s comm %p rank %d nranks %d cudaDev %d nvmlDev %d busId %lx ",
                 comm->func, (const void *)comm, m->rank, m->nranks, m->device, at.nvml_index,
                 (unsigned long)at.bus);
    if (comm->parent) {
        snprintf(line + used, INIT_LINE - (size_t)used, "parent %p childCount %d color %d key %d",
                 (const void *)comm->parent, (int)comm->parent->child_count, comm->color,
                 comm->key);
    } else {
        snprintf(line + used, INIT_LINE - (size_t)used, "commId 0x%llx",
                 (unsigned long long)m->comm_id);
    }
}

void tt_report_start(const struct tt_comm *comm)
{
    char line[INIT_LINE];
    if (!tt_log_on(TT_LOG_INFO, TT_LOG_INIT)) return;
    describe(comm, line);
    if (comm->parent) {
        tt_info(TT_LOG_INIT, "%s- Init START", line);
    } else {
        tt_info(TT_LOG_INIT, "[Rank %d] %s - Init START", comm->member.rank, line);
    }
}

void tt_report_complete(const struct tt_init *init)
{
    const struct tt_comm *comm = init->comm;
    char line[INIT_LINE];
    if (!tt_log_on(TT_LOG_INFO, TT_LOG_INIT)) return;
    describe(comm, line);
    tt_info(TT_LOG_INIT, "%s - Init COMPLETE", line);
    double rest_sec = init->total_sec - init->alloc_sec - init->bootstrap_sec -
                      init->allgathers_sec - init->topo_sec - init->connections_sec;
    tt_info(TT_LOG_INIT,
            "Init timings - %s: rank %d nranks %d total %.2f (kernels %.2f, alloc %.2f, bootstrap "
            "%.2f, allgathers %.2f, topo %.2f, graphs %.2f, connections %.2f, rest %.2f)",
            comm->func, comm->member.rank, comm->member.nranks, init->total_sec, 0.0,
            init->alloc_sec, init->bootstrap_sec, init->allgathers_sec, init->topo_sec, 0.0,
            init->connections_sec, rest_sec < 0 ? 0.0 : rest_sec);
}

void tt_report_end(const struct tt_comm *comm, const char *what)
{
    if (!tt_log_on(TT_LOG_INFO, TT_LOG_DESTROY)) return;
    const struct tt_member *m = &comm->member;
    tt_info(TT_LOG_DESTROY, "comm %p rank %d nranks %d cudaDev %d busId %lx - %s",
            (const void *)comm, m->rank, m->nranks, m->device, (unsigned long)where_is(comm).bus,
            what);
}

/* ---- channels ---- */

/* Ends in "..." when it does not fit. */
static void report_ring(const struct tt_topo_plan *plan, int channel)
{
    char line[RING_LINE + 1];
    int width = snprintf(NULL, 0, "%d", plan->nranks - 1);
    int used = snprintf(line, sizeof(line), "Channel %02d/%02d :", channel, plan->nchannels);
    for (int k = 0; k < plan->nranks; k++) {
        if (used + width + 1 > RING_LINE - 3) {
            memcpy(line + RING_LINE - 3, "...", 4);
            for (int fill = used; fill < RING_LINE - 3; fill++)
                line[fill] = ' ';
            break;
        }
        used += snprintf(line + used, sizeof(line) - (size_t)used, " %*d", width,
                         tt_topo_ring(plan, channel)[k]);
    }
    tt_info(TT_LOG_INIT, "%s", line);
}

static void report_trees(const struct tt_topo_plan *plan, int rank)
{
    char line[TREE_LINE + 1] = "";
    size_t used = 0;
    for (int c = 0; c < plan->nchannels && used < sizeof(line) - 1; c++) {
        const struct tt_tree_links *at = &tt_topo_tree(plan, c)[rank];
        int n = snprintf(line + used, sizeof(line) - used, " [%d] %d/%d/%d->%d->%d", c,
                         at->child[0], at->child[1], at->child[2], rank, at->parent);
        used += n > 0 ? (size_t)n : 0;
    }
    tt_info(TT_LOG_INIT, "Trees%s", line);
}

static void report_neighbours(const struct tt_topo_plan *plan, int rank)
{
    int n = plan->nranks;
    for (int c = 0; c < plan->nchannels; c++) {
        const int *ring = tt_topo_ring(plan, c);
        int k = 0;
        while (k < n - 1 && ring[k] != rank)
            k++;
        tt_info(TT_LOG_GRAPH, "Ring %02d : %d -> %d -> %d", c, ring[(k + n - 1) % n], rank,
                ring[(k + 1) % n]);
        const struct tt_tree_links *at = &tt_topo_tree(plan, c)[rank];
        tt_info(TT_LOG_GRAPH, "Tree %d : %d -> %d -> %d/%d/%d", c, at->parent, rank, at->child[0],
                at->child[1], at->child[2]);
    }
}

/* Nodes are hosts, or what the machine's graph makes of them. */
static void report_nodes(const struct tt_comm *comm, const struct tt_agreement *agreed)
{
    const struct tt_topo_layout *layout = comm->topo.layout;
    const struct tt_member *m = &comm->member;
    int nodes = agreed->nnodes, ranks = agreed->local_ranks, before = agreed->local_rank;
    if (layout) {
        nodes = layout->nnodes;
        ranks = before = 0;
        for (int r = 0; r < m->nranks; r++) {
            if (layout->node_of[r] != layout->node_of[m->rank]) continue;
            before += r < m->rank;
            ranks++;
        }
    }
    tt_info(TT_LOG_INIT, "comm %p rank %d nRanks %d nNodes %d localRanks %d localRank %d MNNVL %d",
            (const void *)comm, m->rank, m->nranks, nodes, ranks, before, agreed->clique_size > 0);
}

void tt_report_plan(const struct tt_comm *comm, const struct tt_agreement *agreed)
{
    const struct tt_topo_plan *plan = &comm->topo;
    const struct tt_member *m = &comm->member;
    if (!tt_log_on(TT_LOG_INFO, TT_LOG_INIT | TT_LOG_GRAPH | TT_LOG_TUNING | TT_LOG_ENV)) return;
    report_nodes(comm, agreed);
    for (int c = 0; c < plan->nchannels && m->rank == 0; c++)
        report_ring(plan, c);
    report_trees(plan, m->rank);
    if (tt_log_on(TT_LOG_INFO, TT_LOG_GRAPH)) report_neighbours(plan, m->rank);
    tt_tune_report(&comm->tune, m->rank);
    /* each chain has a head of its own, so there are no more than ranks on a node */
    int chains = comm->tune.ppn < plan->nchannels ? comm->tune.ppn : plan->nchannels;
    tt_info(TT_LOG_INIT,
            "%d coll channels, %d collnet channels, %d nvls channels, %d p2p channels, %d p2p "
            "channels per peer",
            plan->nchannels, comm->coll_comm ? chains : 0, plan->nvls_channels, plan->p2p_channels,
            plan->p2p_per_peer);
    tt_info(TT_LOG_INIT, "Connected all rings, use ring PXN 0 GDR 0");
    tt_info(TT_LOG_INIT, "Connected all trees");
}
