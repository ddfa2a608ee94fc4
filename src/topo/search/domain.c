/* Domains of a machine: GPUs that reach each other without the network form a node; its channel
 * graphs, and what of it the whole communicator must know.
 * Source: spec topology, sections 3.7, 5 and 9.1. */
#include "budget.h"
#include "graph.h"
#include "graph_file.h"
#include "search.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"
#include "topo/file/file.h"
#include "topo/graph/access.h"
#include "topo/graph/build.h"
#include "topo/graph/paths.h"
#include "topo/graph/system.h"

#include <stdlib.h>

/* ---- which GPUs stay together ---- */

/* domain[g]: index of the first GPU of GPU g's domain. */
static void group(const struct tt_topo_system *system, int *domain)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    for (int g = 0; g < gpus->count; g++) {
        domain[g] = g;
        for (int p = 0; p < g; p++) {
            bool near = tt_topo_path(gpus->node[g], gpus->node[p])->type < TT_PATH_NET;
            if (near && domain[p] < domain[g]) domain[g] = domain[p];
        }
    }
}

/* ---- what the communicator must know ---- */

struct nets_of { /* NICs of a GPU over its channels */
    int count;
    float bw; /* GB/s together */
};

/* As many as the way to the CPU can feed. */
static struct nets_of nets_of(const struct tt_topo_system *system, const struct tt_topo_node *gpu)
{
    const struct tt_topo_node *first = tt_topo_net_of(system, gpu, 0);
    const struct tt_topo_node *net = first;
    const struct tt_topo_node *cpu = tt_topo_local_cpu(system, gpu);
    float limit = cpu ? tt_topo_path(gpu, cpu)->bw : 0;
    struct nets_of nets = {0, 0};
    while (net && (nets.count == 0 || net != first)) {
        nets.bw += tt_topo_path(gpu, net)->bw;
        nets.count++;
        if (nets.bw >= limit) break;
        net = tt_topo_net_of(system, gpu, nets.count);
    }
    return nets;
}

/* Channels for messages to a peer on another node. */
static int channels_over_net(const struct tt_topo_system *system, const struct tt_topo_node *gpu,
                             const struct tt_topo_config *config)
{
    int64_t requested = config ? config->net_peer_channels : 0;
    if (requested <= 0) requested = tt_param_int("NCCL_NCHANNELS_PER_NET_PEER");
    if (requested > 0) return requested < TT_MAX_CHANNELS ? (int)requested : TT_MAX_CHANNELS;
    int64_t per_channel = tt_param_int("NCCL_P2P_PER_CHANNEL_NET_BW");
    struct nets_of nets = nets_of(system, gpu);
    if (per_channel < 1) return nets.count;
    int64_t by_bw = ((int)nets.bw + per_channel - 1) / per_channel;
    if (by_bw > TT_MAX_CHANNELS) by_bw = TT_MAX_CHANNELS;
    return by_bw > nets.count ? (int)by_bw : nets.count;
}

/* Channels for messages to a peer on this node: two for each NVLink. */
static int channels_inside(const struct tt_topo_node *gpu, const struct tt_topo_node *peer)
{
    const struct tt_topo_path *path = tt_topo_path(peer, gpu);
    if (path->type != TT_PATH_NVL && path->type != TT_PATH_NVB) return 2;
    int links = (int)(path->bw / tt_topo_nvlink_bw(gpu->cc));
    return 2 * (links > 1 ? links : 1);
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int p2p_channels(const struct tt_topo_system *system, bool inter,
                        const struct tt_topo_config *config)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    int count = TT_MAX_CHANNELS;
    for (int g = 0; g < gpus->count; g++) {
        for (int p = 0; p < gpus->count; p++) {
            if (p != g) count = least(count, channels_inside(gpus->node[g], gpus->node[p]));
        }
        if (inter) count = least(count, channels_over_net(system, gpus->node[g], config));
    }
    return count;
}

/* Of the path to one NIC, however many a GPU has: all its nearest are equally wide. */
static float least_net_bw(const struct tt_topo_system *system)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    float bw = 0;
    for (int g = 0; g < gpus->count; g++) {
        const struct tt_topo_node *net = tt_topo_net_of(system, gpus->node[g], 0);
        float own = net ? tt_topo_path(gpus->node[g], net)->bw : 0;
        if (g == 0 || own < bw) bw = own;
    }
    return bw;
}

static void fill_facts(struct tt_topo_domain *domain, const struct tt_topo_system *system,
                       const struct tt_topo_config *config)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    const struct tt_topo_list *cpus = &system->list[TT_NODE_CPU];
    struct tt_search_limits limits = tt_search_limits(system, domain->inter);
    domain->max_bw = limits.max_bw;
    domain->total_bw = limits.total_bw;
    domain->nvswitch = system->list[TT_NODE_NVS].count > 0;
    domain->arch = cpus->count ? cpus->node[0]->arch : TT_ARCH_NONE;
    domain->vendor = cpus->count ? cpus->node[0]->vendor : TT_VENDOR_NONE;
    domain->cc_least = domain->cc_most = gpus->node[0]->cc;
    for (int g = 0; g < gpus->count; g++) {
        int cc = gpus->node[g]->cc;
        const struct tt_topo_node *gpu = gpus->node[g];
        domain->rank[g] = gpu->rank;
        domain->device[g] = tt_topo_id(tt_topo_host(gpu), (uint64_t)gpu->dev_number);
        domain->cc_least = least(domain->cc_least, cc);
        if (cc > domain->cc_most) domain->cc_most = cc;
    }
    domain->p2p_channels = p2p_channels(system, domain->inter, config);
    domain->net_bw = least_net_bw(system);
}

/* ---- its graphs ---- */

/* Multicast: a switch with it, two GPUs at least, and a GPU for each rank. */
static bool has_multicast(const struct tt_topo_system *system, const struct tt_topo_domain *domain)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    bool able = domain->nranks > 1 && domain->nvswitch && domain->cc_least >= 90;
    for (int g = 0; g < gpus->count && able; g++)
        able = gpus->node[g]->dev->ngpus == 1;
    return able && tt_param_int("NCCL_NVLS_ENABLE") != 0;
}

static bool is_wanted(const struct tt_topo_domain *domain, const struct tt_topo_system *system,
                      const struct tt_topo_options *options, enum tt_graph_kind kind)
{
    bool collnet = domain->inter && !options->no_collnet && tt_param_int("NCCL_COLLNET_ENABLE") > 0;
    switch (kind) {
    case TT_GRAPH_CHAIN:
    case TT_GRAPH_DIRECT: return collnet;
    case TT_GRAPH_NVLS: return !options->no_multicast && has_multicast(system, domain);
    default: return true;
    }
}

static ncclResult_t read_graph_file(struct tt_xml_node **root_out)
{
    const char *path = tt_param_str("NCCL_GRAPH_FILE");
    char *text = NULL;
    size_t bytes = 0;
    *root_out = NULL;
    if (!path || !*path) return ncclSuccess;
    ncclResult_t rc = tt_topo_file_text(path, &text, &bytes);
    if (!rc) rc = tt_graph_file_parse(path, text, bytes, root_out);
    free(text);
    return rc;
}

static ncclResult_t fill_graphs(struct tt_topo_domain *domain, struct tt_topo_system *system,
                                const struct tt_topo_options *options)
{
    static const enum tt_graph_kind kinds[] = {TT_GRAPH_RING, TT_GRAPH_TREE, TT_GRAPH_CHAIN,
                                               TT_GRAPH_DIRECT, TT_GRAPH_NVLS};
    struct tt_search_request request = {.inter = domain->inter};
    struct tt_xml_node *file = NULL;
    request.limits = (struct tt_search_limits){domain->max_bw, domain->total_bw};
    const char *path = tt_param_str("NCCL_GRAPH_FILE");
    ncclResult_t rc = read_graph_file(&file);
    tt_search_budgets(system);
    for (size_t k = 0; k < TT_LEN(kinds) && !rc; k++) {
        struct tt_topo_graph *graph = &domain->graph[kinds[k]];
        graph->kind = kinds[k];
        if (!is_wanted(domain, system, options, kinds[k])) continue;
        if (!tt_graph_init(graph, kinds[k], domain->nranks)) {
            rc = tt_fail(ncclSystemError, "topology: out of memory for a graph");
            continue;
        }
        request.kind = kinds[k];
        if (file) rc = tt_graph_file_take(file, path, system, request.inter, graph);
        if (!rc && !graph->nchannels) rc = tt_search_run(system, &request, graph);
        if (kinds[k] == TT_GRAPH_RING) request.ring_channels = graph->nchannels;
    }
    tt_xml_free(file);
    return rc;
}

static ncclResult_t domain_init(struct tt_topo_domain *domain, struct tt_topo_system *system,
                                const struct tt_topo_options *options, bool inter)
{
    domain->nranks = system->list[TT_NODE_GPU].count;
    domain->inter = inter;
    domain->rank = tt_calloc((size_t)domain->nranks, sizeof(int));
    domain->device = tt_calloc((size_t)domain->nranks, sizeof(uint64_t));
    if (!domain->rank || !domain->device)
        return tt_fail(ncclSystemError, "topology: out of memory for a domain");
    fill_facts(domain, system, options->config);
    return fill_graphs(domain, system, options);
}

/* ---- all of them ---- */

void tt_topo_domains_free(struct tt_topo_domain *domains, int ndomains)
{
    for (int d = 0; domains && d < ndomains; d++) {
        for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++)
            tt_graph_fini(&domains[d].graph[kind]);
        free(domains[d].rank);
        free(domains[d].device);
    }
    free(domains);
}

/* The graph of GPU `first`'s domain alone, with paths made anew. */
static ncclResult_t trimmed(const struct tt_topo_file *file, const struct tt_topo_options *options,
                            const int *domain, int first, struct tt_topo_system **system_out)
{
    struct tt_topo_system *system = NULL;
    ncclResult_t rc = tt_topo_system_make(file, options, &system);
    if (rc) return rc;
    for (int g = system->list[TT_NODE_GPU].count - 1; g >= 0; g--) {
        if (domain[g] != first) tt_topo_gpu_drop(system, system->list[TT_NODE_GPU].node[g]);
    }
    rc = tt_topo_paths_make(system);
    if (rc) {
        tt_topo_system_free(system);
        return rc;
    }
    *system_out = system;
    return ncclSuccess;
}

struct split { /* a machine about to be cut into domains */
    const struct tt_topo_file *file;
    const struct tt_topo_options *options;
    struct tt_topo_system *whole;
    int domain[TT_TOPO_NODES]; /* of every GPU: its domain's first GPU */
    int ngpus, ndomains;
};

static ncclResult_t make_domain(const struct split *split, int first, bool inter,
                                struct tt_topo_domain *domain)
{
    if (split->ndomains == 1) return domain_init(domain, split->whole, split->options, inter);
    struct tt_topo_system *system = NULL;
    ncclResult_t rc = trimmed(split->file, split->options, split->domain, first, &system);
    if (rc) return rc;
    rc = domain_init(domain, system, split->options, inter);
    tt_topo_system_free(system);
    return rc;
}

static ncclResult_t make_all(const struct split *split, int nmachines,
                             struct tt_topo_domain *domains)
{
    ncclResult_t rc = ncclSuccess;
    int d = 0;
    for (int g = 0; g < split->ngpus && !rc; g++) {
        if (split->domain[g] != g) continue;
        bool inter = nmachines > 1 || split->ndomains > 1;
        rc = make_domain(split, g, inter, &domains[d++]);
    }
    return rc;
}

ncclResult_t tt_topo_domains_make(const struct tt_topo_file *file,
                                  const struct tt_topo_options *options, int nmachines,
                                  struct tt_topo_domain **domains_out, int *ndomains_out)
{
    struct split split = {.file = file, .options = options};
    struct tt_topo_domain *domains = NULL;
    ncclResult_t rc = tt_topo_system_make(file, options, &split.whole);
    if (rc) return rc;
    split.ngpus = split.whole->list[TT_NODE_GPU].count;
    if (split.ngpus == 0) {
        rc = tt_fail(ncclInvalidUsage,
                     "topology of %s: no GPU with a rank, hence no channels; a machine file with "
                     "GPUs is needed",
                     file->name);
        goto out;
    }
    group(split.whole, split.domain);
    for (int g = 0; g < split.ngpus; g++)
        split.ndomains += split.domain[g] == g;
    domains = tt_calloc((size_t)split.ndomains, sizeof(*domains));
    if (!domains) {
        rc = tt_fail(ncclSystemError, "topology: out of memory for domains");
        goto out;
    }
    rc = make_all(&split, nmachines, domains);
    if (rc) goto out;
    *domains_out = domains;
    *ndomains_out = split.ndomains;
    domains = NULL;
out:
    tt_topo_domains_free(domains, split.ndomains);
    tt_topo_system_free(split.whole);
    return rc;
}
