/* Rings and trees over the ranks of flat hosts: nodes in the order of their first rank, ranks of a
 * node side by side, so that a ring crosses each host border once. Depends on nothing but its
 * arguments: all ranks compute the same plan. */
#include "tree.h"

#include "base/error.h"
#include "base/mem.h"
#include "topo/topo.h"

#include <stdlib.h>

struct nodes { /* ranks grouped by node: those of node v are member[first[v] .. first[v+1]-1] */
    int count;
    int *first;  /* owned, count + 1 */
    int *member; /* owned, nranks */
};

static ncclResult_t count_nodes(const struct tt_topo_rank *ranks, int nranks, int *count_out)
{
    int count = 0;
    for (int r = 0; r < nranks; r++) {
        if (ranks[r].node < 0 || ranks[r].node > count) {
            return tt_fail(ncclInvalidArgument,
                           "topology: rank %d is on node %d, but only %d nodes came before it", r,
                           ranks[r].node, count);
        }
        if (ranks[r].node == count) count++;
    }
    *count_out = count;
    return ncclSuccess;
}

static ncclResult_t nodes_init(struct nodes *nodes, const struct tt_topo_rank *ranks, int nranks)
{
    ncclResult_t rc = count_nodes(ranks, nranks, &nodes->count);
    if (rc) return rc;
    nodes->first = tt_calloc((size_t)nodes->count + 2, sizeof(int));
    nodes->member = tt_calloc((size_t)nranks, sizeof(int));
    if (!nodes->first || !nodes->member) {
        return tt_fail(ncclSystemError, "topology: out of memory for %d ranks", nranks);
    }
    /* first[v + 2] counts node v, so that after summing up first[v + 1] is where v begins and
     * moves to where it ends while members are put in. */
    for (int r = 0; r < nranks; r++)
        nodes->first[ranks[r].node + 2]++;
    for (int v = 0; v < nodes->count; v++)
        nodes->first[v + 2] += nodes->first[v + 1];
    for (int r = 0; r < nranks; r++)
        nodes->member[nodes->first[ranks[r].node + 1]++] = r;
    return ncclSuccess;
}

/* Channel c leaves and enters every node at another of its ranks. */
static void fill_ring(const struct nodes *nodes, int channel, int *ring)
{
    int pos = 0;
    for (int v = 0; v < nodes->count; v++) {
        int first = nodes->first[v];
        int size = nodes->first[v + 1] - first;
        for (int k = 0; k < size; k++)
            ring[pos++] = nodes->member[first + (k + channel) % size];
    }
}

static int head(const struct nodes *nodes, int node)
{
    return node < 0 ? -1 : nodes->member[nodes->first[node]];
}

/* The chain inside node `v`. */
static void fill_chain(const struct nodes *nodes, int v, struct tt_tree_links *all)
{
    int end = nodes->first[v + 1];
    for (int k = nodes->first[v]; k < end; k++) {
        struct tt_tree_links *links = &all[nodes->member[k]];
        *links = (struct tt_tree_links){.parent = -1, .child = {-1, -1, -1}};
        if (k + 1 < end) links->child[0] = nodes->member[k + 1];
        if (k > nodes->first[v]) links->parent = nodes->member[k - 1];
    }
}

/* A chain inside each node; its head carries the edges of the node in the tree between nodes. */
static void fill_tree(const struct nodes *nodes, int tree, struct tt_tree_links *all)
{
    for (int v = 0; v < nodes->count; v++) {
        fill_chain(nodes, v, all);
        if (nodes->first[v] == nodes->first[v + 1]) continue;
        struct tt_tree_links *links = &all[head(nodes, v)];
        struct tt_tree_node node = tt_tree_node(tree, v, nodes->count);
        links->parent = head(nodes, node.parent);
        bool only_second = node.child[0] < 0; /* of the root */
        links->child[1] = head(nodes, node.child[only_second ? 1 : 0]);
        links->child[2] = head(nodes, only_second ? -1 : node.child[1]);
    }
}

static bool hosts_are_even(const struct nodes *nodes, int nranks)
{
    bool even = nranks % nodes->count == 0;
    for (int v = 0; even && v < nodes->count; v++)
        even = nodes->first[v + 1] - nodes->first[v] == nranks / nodes->count;
    return even;
}

static ncclResult_t allocate(struct tt_topo_plan *plan)
{
    size_t n = (size_t)plan->nranks;
    bool complete = true;
    plan->nrings = plan->nchannels;
    plan->ntrees = 2;
    for (int c = 0; c < plan->nchannels; c++) {
        plan->ring_of[c] = c;
        plan->tree_of[c] = c > 0 && c * 2 >= plan->nchannels; /* a tree for each half */
        plan->ring[c] = tt_calloc(n, sizeof(int));
        complete = complete && plan->ring[c];
    }
    for (int t = 0; t < plan->ntrees; t++) {
        plan->tree[t] = tt_calloc(n, sizeof(struct tt_tree_links));
        complete = complete && plan->tree[t];
    }
    if (complete) return ncclSuccess;
    return tt_fail(ncclSystemError, "topology: out of memory for %d ranks", plan->nranks);
}

static int channel_count(int requested)
{
    if (requested <= 0) return 2;
    return requested < TT_MAX_CHANNELS ? requested : TT_MAX_CHANNELS;
}

ncclResult_t tt_topo_plan_make(const struct tt_topo_rank *ranks, int nranks,
                               int nchannels_requested, struct tt_topo_plan *plan_out)
{
    struct nodes nodes = {0};
    struct tt_topo_plan plan = {.nranks = nranks, .nchannels = channel_count(nchannels_requested)};
    if (nranks < 1) return tt_fail(ncclInvalidArgument, "topology: %d ranks", nranks);
    ncclResult_t rc = nodes_init(&nodes, ranks, nranks);
    if (rc) goto out;
    rc = allocate(&plan);
    if (rc) goto out;
    plan.nnodes = nodes.count;
    plan.p2p_channels = plan.nchannels;
    plan.p2p_per_peer = 1;
    for (int c = 0; c < plan.nchannels; c++)
        fill_ring(&nodes, c, plan.ring[c]);
    for (int t = 0; t < plan.ntrees; t++)
        fill_tree(&nodes, t, plan.tree[t]);
    plan.by_host = nodes.member;
    nodes.member = NULL;
    if (!hosts_are_even(&nodes, nranks)) {
        plan.host_first = nodes.first;
        nodes.first = NULL;
    }
    *plan_out = plan;
    plan = (struct tt_topo_plan){0};
out:
    tt_topo_plan_free(&plan);
    free(nodes.first);
    free(nodes.member);
    return rc;
}

void tt_topo_plan_free(struct tt_topo_plan *plan)
{
    for (int c = 0; c < TT_MAX_CHANNELS; c++) {
        free(plan->ring[c]);
        free(plan->tree[c]);
    }
    free(plan->by_host);
    free(plan->host_first);
    tt_topo_layout_free(plan->layout);
    *plan = (struct tt_topo_plan){0};
}
