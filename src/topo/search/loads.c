/* What the channels of a graph ask of every link and port: the graph found is placed once more on
 * whole budgets, without looking for another, and what is gone was used.
 * Source: spec topology, section 6. */
#include "loads.h"

#include "budget.h"
#include "search.h"

#include "base/error.h"
#include "base/mem.h"
#include "topo/graph/paths.h"

#include <stdio.h>
#include <stdlib.h>

struct replay {
    struct tt_topo_system *system;
    const struct tt_topo_graph *graph;
};

static struct tt_topo_node *gpu_of(const struct replay *replay, int channel, int position)
{
    const struct tt_topo_list *gpus = &replay->system->list[TT_NODE_GPU];
    const struct tt_topo_graph *graph = replay->graph;
    int rank = graph->intra[(size_t)channel * (size_t)graph->ngpus + (size_t)position];
    for (int g = 0; g < gpus->count; g++) {
        if (gpus->node[g]->rank == rank) return gpus->node[g];
    }
    return NULL;
}

static void charge(const struct tt_topo_node *from, const struct tt_topo_node *to, float bw)
{
    if (from && to && from != to && bw > 0) tt_budget_charge(from, to, bw);
}

/* Ports that are one under several numbers share what they have. */
static void charge_port(const struct replay *replay, const struct tt_topo_node *port, float bw)
{
    const struct tt_topo_list *nets = &replay->system->list[TT_NODE_NET];
    for (int n = 0; n < nets->count; n++) {
        struct tt_topo_node *net = nets->node[n];
        if (net->guid == port->guid && net->port == port->port) net->budget -= bw;
    }
}

static void charge_hub(const struct replay *replay, const struct tt_topo_node *head)
{
    const struct tt_topo_list *gpus = &replay->system->list[TT_NODE_GPU];
    const struct tt_topo_list *switches = &replay->system->list[TT_NODE_NVS];
    float bw = replay->graph->bw_intra;
    for (int g = 0; g < gpus->count && switches->count; g++) {
        struct tt_topo_node *gpu = gpus->node[g];
        charge(switches->node[0], gpu, gpu == head ? 2 * bw : bw);
        charge(gpu, switches->node[0], gpu == head ? 2 * bw : bw);
    }
}

static void charge_links(const struct replay *replay, const struct tt_topo_node *head)
{
    const struct tt_topo_list *gpus = &replay->system->list[TT_NODE_GPU];
    float bw = replay->graph->bw_intra / (float)(gpus->count > 1 ? gpus->count - 1 : 1);
    for (int g = 0; g < gpus->count; g++) {
        charge(head, gpus->node[g], bw);
        charge(gpus->node[g], head, bw);
    }
}

/* In by the first NIC, and out by the last from the GPU, or the two, that the pattern says. */
static void charge_nets(const struct replay *replay, int c)
{
    const struct tt_topo_graph *graph = replay->graph;
    const struct tt_topo_node *in =
        tt_topo_node_find(replay->system, TT_NODE_NET, graph->inter[c].first);
    const struct tt_topo_node *out =
        tt_topo_node_find(replay->system, TT_NODE_NET, graph->inter[c].last);
    struct tt_topo_node *first = gpu_of(replay, c, 0);
    struct tt_topo_node *second = graph->ngpus > 1 ? gpu_of(replay, c, 1) : first;
    if (graph->inter[c].first == TT_NET_NONE || !in || !out) return;
    charge_port(replay, in, graph->bw_inter);
    charge(in, first, graph->bw_inter);
    switch (graph->pattern) {
    case TT_PATTERN_RING: charge(gpu_of(replay, c, graph->ngpus - 1), out, graph->bw_inter); break;
    case TT_PATTERN_BALANCED:
        charge(first, out, graph->bw_inter / 2);
        charge(second, out, graph->bw_inter / 2);
        break;
    case TT_PATTERN_SPLIT: charge(second, out, graph->bw_inter); break;
    default: charge(first, out, graph->bw_inter); break;
    }
}

static void charge_channel(const struct replay *replay, int c, bool inter)
{
    const struct tt_topo_graph *graph = replay->graph;
    if (inter) charge_nets(replay, c);
    if (graph->pattern == TT_PATTERN_NVLS) {
        charge_hub(replay, gpu_of(replay, c, 0));
        return;
    }
    if (graph->pattern == TT_PATTERN_DIRECT) {
        charge_links(replay, gpu_of(replay, c, 0));
        return;
    }
    for (int p = 0; p + 1 < graph->ngpus; p++)
        charge(gpu_of(replay, c, p), gpu_of(replay, c, p + 1), graph->bw_intra);
    if (graph->pattern == TT_PATTERN_RING && !inter && graph->ngpus > 1)
        charge(gpu_of(replay, c, graph->ngpus - 1), gpu_of(replay, c, 0), graph->bw_intra);
}

/* ---- what is gone ---- */

static int is_fuller(const void *a, const void *b)
{
    const struct tt_topo_load *left = a;
    const struct tt_topo_load *right = b;
    float x = left->used / left->bw;
    float y = right->used / right->bw;
    if (x != y) return x < y ? 1 : -1;
    return left->order - right->order;
}

static void add(struct tt_topo_loads *loads, struct tt_topo_load load)
{
    if (load.used < 0.001f || load.bw >= TT_TOPO_LOC_BW) return;
    load.order = loads->count;
    loads->load[loads->count++] = load;
}

static void name(char text[16], const struct tt_topo_node *node)
{
    (void)snprintf(text, 16, "%s/%d", tt_topo_type_name(node->type), node->index);
}

static void collect_node(const struct tt_topo_node *node, struct tt_topo_loads *loads)
{
    struct tt_topo_load load = {.type = TT_PATH_NET, .bw = node->bw};
    load.used = node->bw - node->budget;
    name(load.from, node);
    if (node->type == TT_NODE_NET) add(loads, load);
    for (int l = 0; l < node->nlinks; l++) {
        const struct tt_topo_link *link = &node->links[l];
        load.type = link->type;
        load.bw = link->bw;
        load.used = link->bw - link->budget;
        name(load.to, link->peer);
        if (link->type != TT_PATH_NET) add(loads, load);
    }
}

static bool collect(const struct tt_topo_system *system, struct tt_topo_loads *loads)
{
    size_t most = 1;
    for (int type = 0; type < TT_NODE_COUNT_; type++) {
        for (int k = 0; k < system->list[type].count; k++)
            most += 1 + (size_t)system->list[type].node[k]->nlinks;
    }
    loads->load = tt_calloc(most, sizeof(*loads->load));
    if (!loads->load) return false;
    for (int type = 0; type < TT_NODE_COUNT_; type++) {
        for (int k = 0; k < system->list[type].count; k++)
            collect_node(system->list[type].node[k], loads);
    }
    qsort(loads->load, (size_t)loads->count, sizeof(*loads->load), is_fuller);
    return true;
}

/* ---- the domain's part of the machine ---- */

static bool has_rank(const struct tt_topo_domain *domain, int rank)
{
    for (int k = 0; k < domain->nranks; k++) {
        if (domain->rank[k] == rank) return true;
    }
    return false;
}

static ncclResult_t trim(struct tt_topo_system *system, const struct tt_topo_domain *domain)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    if (gpus->count == domain->nranks) return ncclSuccess;
    for (int g = gpus->count - 1; g >= 0; g--) {
        if (!has_rank(domain, gpus->node[g]->rank)) tt_topo_gpu_drop(system, gpus->node[g]);
    }
    return tt_topo_paths_make(system);
}

void tt_topo_loads_free(struct tt_topo_loads loads[TT_GRAPH_COUNT_])
{
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++) {
        free(loads[kind].load);
        loads[kind] = (struct tt_topo_loads){0};
    }
}

ncclResult_t tt_topo_loads_make(const struct tt_topo_file *file,
                                const struct tt_topo_options *options,
                                const struct tt_topo_domain *domain,
                                struct tt_topo_loads loads[TT_GRAPH_COUNT_])
{
    struct tt_topo_system *system = NULL;
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++)
        loads[kind] = (struct tt_topo_loads){0};
    ncclResult_t rc = tt_topo_system_make(file, options, &system);
    if (!rc) rc = trim(system, domain);
    for (int kind = 0; kind < TT_GRAPH_COUNT_ && !rc; kind++) {
        const struct replay replay = {system, &domain->graph[kind]};
        if (!domain->graph[kind].pattern || domain->graph[kind].nchannels == 0) continue;
        tt_search_budgets(system);
        for (int c = 0; c < domain->graph[kind].nchannels; c++)
            charge_channel(&replay, c, domain->inter);
        if (!collect(system, &loads[kind]))
            rc = tt_fail(ncclSystemError, "topology: out of memory for the loads of links");
    }
    if (rc) tt_topo_loads_free(loads);
    tt_topo_system_free(system);
    return rc;
}
