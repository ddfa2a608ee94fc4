/* The plan of a communicator whose devices are those of machine files: the channel graphs of each
 * node (units.h), joined. Nodes with equal parts of the files share one search. Also the NICs that
 * a rank would use. */
#include "machine.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"
#include "topo/file/file.h"
#include "topo/file/words.h"
#include "topo/graph/access.h"
#include "topo/graph/make.h"
#include "topo/graph/system.h"
#include "topo/plan/units.h"

#include <stdlib.h>
#include <string.h>

/* ---- the plan ---- */

/* Same files for the same members, same devices in the same order. */
static bool are_equal(const struct tt_topo_units *units, int a, int b)
{
    struct tt_topo_unit one = tt_topo_unit_at(units, a), two = tt_topo_unit_at(units, b);
    const struct tt_topo_machine *machine = units->machine;
    if (one.count != two.count) return false;
    for (int k = 0; k < one.count; k++) {
        const struct tt_topo_rank *left = &machine->ranks[one.rank[k]];
        const struct tt_topo_rank *right = &machine->ranks[two.rank[k]];
        const struct tt_topo_host *left_host = &machine->hosts[left->node];
        const struct tt_topo_host *right_host = &machine->hosts[right->node];
        if (left_host->file != right_host->file) return false;
        if (left->node - left_host->domain != right->node - right_host->domain) return false;
        if (strcmp(left->bus_id, right->bus_id) != 0) return false;
    }
    return true;
}

struct nodes { /* of the communicator, until the layout has them */
    struct tt_topo_units units;
    int *same;                            /* owned; same[u]: the unit whose domains u shares */
    struct tt_topo_comm_node *comm_nodes; /* owned */
    int ncomm_nodes;
};

static ncclResult_t nodes_init(struct nodes *nodes, const struct tt_topo_machine *machine)
{
    nodes->same = tt_calloc((size_t)machine->nhosts, sizeof(int));
    nodes->comm_nodes = tt_calloc((size_t)machine->nranks, sizeof(struct tt_topo_comm_node));
    if (!nodes->same || !nodes->comm_nodes)
        return tt_fail(ncclSystemError, "topology: out of memory for %d ranks", machine->nranks);
    return tt_topo_units_init(&nodes->units, machine);
}

static void nodes_fini(struct nodes *nodes)
{
    tt_topo_units_fini(&nodes->units);
    free(nodes->same);
    free(nodes->comm_nodes);
}

static ncclResult_t add_comm_node(struct nodes *nodes, int u)
{
    struct tt_topo_units *units = &nodes->units;
    int same = u;
    for (int before = 0; before < u && same == u; before++)
        if (nodes->same[before] == before && are_equal(units, before, u)) same = before;
    nodes->same[u] = same;
    ncclResult_t rc = same == u ? tt_topo_unit_search(units, u) : ncclSuccess;
    for (int d = 0; d < units->ndomains[same] && !rc; d++) {
        nodes->comm_nodes[nodes->ncomm_nodes++] = (struct tt_topo_comm_node){
            .domain = &units->domains[same][d], .member = tt_topo_unit_at(units, u).rank};
    }
    return rc;
}

/* The rings and trees of the first channels move; the rest of the layout goes along. */
static void take_over(struct tt_topo_layout *layout, int nchannels, struct tt_topo_plan *plan)
{
    *plan = (struct tt_topo_plan){
        .nranks = layout->nranks,
        .nnodes = layout->nnodes,
        .nchannels = nchannels < layout->nchannels ? nchannels : layout->nchannels,
        .p2p_channels = layout->p2p_channels,
        .p2p_per_peer = layout->p2p_per_peer,
        .nvls_channels = layout->nvls_channels,
        .layout = layout,
        .nrings = layout->nrings,
        .ntrees = layout->ntrees,
    };
    memcpy(plan->ring_of, layout->ring_of, sizeof(plan->ring_of));
    memcpy(plan->tree_of, layout->tree_of, sizeof(plan->tree_of));
    memcpy(plan->ring, layout->ring, sizeof(plan->ring));
    memcpy(plan->tree, layout->tree, sizeof(plan->tree));
    memset(layout->ring, 0, sizeof(layout->ring));
    memset(layout->tree, 0, sizeof(layout->tree));
}

ncclResult_t tt_topo_plan_from_machine(const struct tt_topo_machine *machine, int nchannels_most,
                                       struct tt_topo_plan *plan_out)
{
    struct nodes nodes = {0};
    struct tt_topo_layout *layout = NULL;
    ncclResult_t rc = nodes_init(&nodes, machine);
    for (int u = 0; u < nodes.units.nunits && !rc; u++)
        rc = add_comm_node(&nodes, u);
    if (!rc)
        rc = tt_topo_layout_make(nodes.comm_nodes, nodes.ncomm_nodes, &machine->config, &layout);
    if (!rc) take_over(layout, nchannels_most, plan_out);
    nodes_fini(&nodes);
    return rc;
}

/* ---- NICs of a rank ---- */

/* NIC of a channel: where it begins for its first GPU, where it ends for all others. */
static int graph_nic(const struct tt_topo_graph *graph, int channel, int rank)
{
    if (graph->nchannels == 0 || !graph->inter) return -1;
    int c = channel % graph->nchannels;
    bool first = graph->intra[(size_t)c * (size_t)graph->ngpus] == rank;
    uint64_t net = first ? graph->inter[c].first : graph->inter[c].last;
    return net == TT_NET_NONE ? -1 : (int)(net & 0xffffffffffffffull);
}

static const struct tt_topo_node *gpu_number(const struct tt_topo_system *system,
                                             const struct tt_topo_node *own, int number)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    for (int g = 0; g < gpus->count; g++) {
        bool here = tt_topo_host(gpus->node[g]) == tt_topo_host(own);
        if (here && gpus->node[g]->dev_number == number) return gpus->node[g];
    }
    return NULL;
}

/* May the peer's NIC be taken, which then meets its own rail at the other end? */
static bool reaches(const struct tt_topo_system *system, const struct tt_topo_node *gpu,
                    const struct tt_topo_node *net)
{
    int64_t level = tt_param_int("NCCL_P2P_PXN_LEVEL");
    if (system->env.cross_nic == 0) return true;
    if (system->env.pxn_disable || level <= 0) return false;
    if (level == 1) return tt_topo_path(gpu, net)->type <= TT_PATH_PXN;
    const struct tt_topo_node *relay = tt_topo_gpu_of(system, net);
    return relay && tt_topo_path(relay, gpu)->type <= TT_PATH_NVL &&
           tt_topo_path(relay, net)->type <= TT_PATH_P2C &&
           tt_topo_gdr_check(system, relay, net, true);
}

static void fill_messages(const struct tt_topo_system *system, const struct tt_topo_node *gpu,
                          struct tt_topo_nics *nics)
{
    for (int c = 0; c < TT_MAX_CHANNELS; c++) {
        const struct tt_topo_node *own = tt_topo_net_of(system, gpu, c);
        nics->own[c] = own ? (int)own->dev_number : -1;
        for (int d = 0; d < TT_TOPO_DEVICES; d++) {
            const struct tt_topo_node *peer = gpu_number(system, gpu, d);
            const struct tt_topo_node *net = peer ? tt_topo_net_of(system, peer, c) : NULL;
            bool taken = net && net != own && reaches(system, gpu, net);
            nics->toward[d][c] = taken ? (int)net->dev_number : nics->own[c];
        }
    }
}

ncclResult_t tt_topo_machine_nics(const struct tt_topo_machine *machine, int rank,
                                  struct tt_topo_nics *nics)
{
    struct tt_topo_units units = {0};
    struct tt_topo_file part = {0};
    struct tt_topo_system *system = NULL;
    struct tt_topo_options options;
    ncclResult_t rc = tt_topo_units_init(&units, machine);
    int u = rc ? 0 : units.unit_of[machine->ranks[rank].node];
    if (!rc) rc = tt_topo_unit_part(&units, u, &part, &options);
    if (!rc) rc = tt_topo_system_make(&part, &options, &system);
    if (!rc) rc = tt_topo_unit_search(&units, u);
    if (rc) goto out;
    const int *member = tt_topo_unit_at(&units, u).rank;
    const struct tt_topo_domain *domain = tt_topo_unit_domain(&units, u, rank);
    int own = 0; /* number in the node */
    while (member[own] != rank) {
        own++;
    }
    for (int c = 0; c < TT_MAX_CHANNELS; c++) {
        nics->ring[c] = graph_nic(&domain->graph[TT_GRAPH_RING], c, own);
        nics->tree[c] = graph_nic(&domain->graph[TT_GRAPH_TREE], c, own);
    }
    for (int g = 0; g < system->list[TT_NODE_GPU].count; g++) {
        const struct tt_topo_node *gpu = system->list[TT_NODE_GPU].node[g];
        if (gpu->rank == own) fill_messages(system, gpu, nics);
    }
out:
    tt_xml_free(part.root);
    tt_topo_system_free(system);
    tt_topo_units_fini(&units);
    return rc;
}
