/* From nodes to a communicator: what all agree upon, then rings, trees, multicast and channels.
 * Every rank computes all of it alone from the same input. Source: spec topology, section 8. */
#include "layout.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"

#include <stdlib.h>

/* ---- nodes ---- */

static int first_rank(const struct tt_topo_comm_node *comm_node)
{
    int first = tt_topo_rank_at(comm_node, comm_node->domain->rank[0]);
    for (int k = 1; k < comm_node->domain->nranks; k++) {
        int rank = tt_topo_rank_at(comm_node, comm_node->domain->rank[k]);
        if (rank < first) first = rank;
    }
    return first;
}

static ncclResult_t claim(struct tt_topo_layout *layout, const struct tt_topo_comm_node *comm_node,
                          int number)
{
    for (int k = 0; k < comm_node->domain->nranks; k++) {
        int rank = tt_topo_rank_at(comm_node, comm_node->domain->rank[k]);
        if (rank < 0 || rank >= layout->nranks || layout->node_of[rank] >= 0) {
            return tt_fail(ncclInvalidArgument,
                           "topology: rank %d of %d is out of range or on two nodes", rank,
                           layout->nranks);
        }
        layout->node_of[rank] = number;
    }
    return ncclSuccess;
}

/* Every rank's node first, then numbers by the first rank. */
static ncclResult_t order_nodes(struct tt_topo_layout *layout,
                                const struct tt_topo_comm_node *comm_nodes,
                                struct tt_layout_nodes *nodes)
{
    for (int r = 0; r < layout->nranks; r++)
        layout->node_of[r] = -1;
    for (int p = 0; p < layout->nnodes; p++) {
        ncclResult_t rc = claim(layout, &comm_nodes[p], p);
        if (rc) return rc;
    }
    for (int r = 0; r < layout->nranks; r++) {
        const struct tt_topo_comm_node *comm_node = &comm_nodes[layout->node_of[r]];
        if (first_rank(comm_node) == r) nodes->comm_node[nodes->count++] = comm_node;
    }
    for (int v = 0; v < nodes->count; v++) {
        const struct tt_topo_comm_node *comm_node = nodes->comm_node[v];
        for (int k = 0; k < comm_node->domain->nranks; k++)
            layout->node_of[tt_topo_rank_at(comm_node, comm_node->domain->rank[k])] = v;
    }
    return ncclSuccess;
}

/* ---- agreement ---- */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int most(int a, int b)
{
    return a > b ? a : b;
}

static void agree_on_graph(struct tt_topo_graph *all, const struct tt_topo_graph *one)
{
    all->nchannels = least(all->nchannels, one->nchannels);
    all->same_channels = least(all->same_channels, one->same_channels);
    if (one->bw_intra < all->bw_intra) all->bw_intra = one->bw_intra;
    if (one->bw_inter < all->bw_inter) all->bw_inter = one->bw_inter;
    if (one->type_intra > all->type_intra) all->type_intra = one->type_intra;
    if (one->type_inter > all->type_inter) all->type_inter = one->type_inter;
    all->cross_nic = most(all->cross_nic, one->cross_nic);
}

static void agree_on_facts(struct tt_topo_layout *layout, const struct tt_topo_domain *domain)
{
    layout->least_local = least(layout->least_local, domain->nranks);
    layout->most_local = most(layout->most_local, domain->nranks);
    layout->cc_least = least(layout->cc_least, domain->cc_least);
    layout->cc_most = most(layout->cc_most, domain->cc_most);
    layout->nvswitch = layout->nvswitch && domain->nvswitch;
    if (layout->arch != domain->arch) layout->arch = TT_ARCH_MIXED;
    if (layout->vendor != domain->vendor) layout->vendor = TT_VENDOR_MIXED;
    enum tt_graph_pattern pattern = domain->graph[TT_GRAPH_TREE].pattern;
    if (pattern > layout->tree_pattern) layout->tree_pattern = pattern;
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++)
        agree_on_graph(&layout->graph[kind], &domain->graph[kind]);
}

static void agree(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes)
{
    const struct tt_topo_domain *first = nodes->comm_node[0]->domain;
    layout->least_local = layout->most_local = first->nranks;
    layout->cc_least = first->cc_least;
    layout->cc_most = first->cc_most;
    layout->arch = first->arch;
    layout->vendor = first->vendor;
    layout->nvswitch = first->nvswitch;
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++) {
        layout->graph[kind] = first->graph[kind];
        layout->graph[kind].intra = NULL; /* channel lists stay with the nodes */
        layout->graph[kind].inter = NULL;
    }
    for (int v = 0; v < nodes->count; v++)
        agree_on_facts(layout, nodes->comm_node[v]->domain);
    bool enough = layout->nnodes >= tt_param_int("NCCL_COLLNET_NODE_THRESHOLD");
    layout->collnet = layout->graph[TT_GRAPH_CHAIN].nchannels > 0 && enough;
}

/* ---- making ---- */

void tt_topo_layout_free(struct tt_topo_layout *layout)
{
    if (!layout) return;
    for (int c = 0; c < TT_MAX_CHANNELS; c++) {
        free(layout->ring[c]);
        free(layout->tree[c]);
    }
    free(layout->nvls[0]);
    free(layout->nvls[1]);
    free(layout->node_of);
    free(layout);
}

static int log2_floor(int value)
{
    int log = 0;
    while (value >> (log + 1)) {
        log++;
    }
    return log;
}

static ncclResult_t join(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                         const struct tt_topo_config *config)
{
    int base =
        least(layout->graph[TT_GRAPH_RING].nchannels, layout->graph[TT_GRAPH_TREE].nchannels);
    layout->graph[TT_GRAPH_RING].nchannels = base;
    layout->graph[TT_GRAPH_TREE].nchannels = base;
    layout->tree_depth = layout->nranks / layout->nnodes - 1 + log2_floor(layout->nnodes);
    ncclResult_t rc = tt_layout_rings(layout, nodes, base);
    if (rc) return rc;
    rc = tt_layout_trees(layout, nodes, base);
    if (rc) return rc;
    int per_peer = TT_MAX_CHANNELS;
    for (int v = 0; v < nodes->count; v++)
        per_peer = least(per_peer, nodes->comm_node[v]->domain->p2p_channels);
    tt_layout_channels(layout, config, base);
    tt_layout_p2p_channels(layout, config, per_peer);
    return tt_layout_nvls(layout, nodes, config);
}

ncclResult_t tt_topo_layout_make(const struct tt_topo_comm_node *comm_nodes, int ncomm_nodes,
                                 const struct tt_topo_config *config,
                                 struct tt_topo_layout **layout_out)
{
    static const struct tt_topo_config none;
    struct tt_topo_layout *layout = tt_calloc(1, sizeof(*layout));
    struct tt_layout_nodes nodes = {.comm_node =
                                        tt_calloc((size_t)ncomm_nodes, sizeof(*nodes.comm_node))};
    ncclResult_t rc = ncclSuccess;
    size_t nranks = 0;
    for (int p = 0; p < ncomm_nodes; p++)
        nranks += (size_t)comm_nodes[p].domain->nranks;
    if (layout) layout->node_of = tt_calloc(nranks, sizeof(int));
    if (!layout || !layout->node_of || !nodes.comm_node || nranks > 1 << 24) {
        rc = tt_fail(ncclSystemError, "topology: out of memory for %zu ranks", nranks);
        goto out;
    }
    layout->nranks = (int)nranks;
    layout->nnodes = ncomm_nodes;
    rc = order_nodes(layout, comm_nodes, &nodes);
    if (rc) goto out;
    agree(layout, &nodes);
    rc = join(layout, &nodes, config ? config : &none);
    if (rc) goto out;
    *layout_out = layout;
    layout = NULL;
out:
    free(nodes.comm_node);
    tt_topo_layout_free(layout);
    return rc;
}
