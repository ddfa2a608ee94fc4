/* Multicast over nodes: heads of a node feed the NVSwitch; equal heads of all nodes form trees.
 * Source: spec topology 8.3, tuning 6. */
#include "layout.h"
#include "tree.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/param.h"

#include <stdlib.h>

enum { MOST_HEADS = 32 };

struct heads { /* a node's heads: distinct first GPUs of its channels */
    int rank[MOST_HEADS];
    int count;
};

static void find_heads(const struct tt_topo_comm_node *comm_node, struct heads *heads)
{
    int nchannels = comm_node->domain->graph[TT_GRAPH_NVLS].nchannels;
    heads->count = 0;
    for (int c = 0; c < nchannels && heads->count < MOST_HEADS; c++) {
        int rank = tt_layout_rank(comm_node, TT_GRAPH_NVLS, c, 0);
        bool known = false;
        for (int h = 0; h < heads->count; h++)
            known = known || heads->rank[h] == rank;
        if (!known) heads->rank[heads->count++] = rank;
    }
}

/* ---- channels and chunks ---- */

struct sizes {
    int channels, chunk, tree_chunk; /* bytes; tree_chunk -1: own rule */
};

enum { KIB = 1024 };

static struct sizes two_nodes(struct sizes sizes, const struct tt_topo_layout *layout, float net_bw)
{
    int local = layout->least_local;
    bool direct = layout->graph[TT_GRAPH_NVLS].type_inter <= TT_PATH_PXB;
    sizes.channels = 32;
    sizes.tree_chunk = 128 * KIB;
    if (local <= 4) {
        sizes.chunk = sizes.tree_chunk = 256 * KIB;
    } else if (local >= 16 || (local <= 8 && direct && net_bw < 96)) {
        sizes.tree_chunk = 64 * KIB;
    }
    return sizes;
}

static struct sizes many_nodes(struct sizes sizes, const struct tt_topo_layout *layout,
                               float net_bw)
{
    int local = layout->least_local;
    bool direct = layout->graph[TT_GRAPH_NVLS].type_inter <= TT_PATH_PXB;
    if (net_bw >= 96 && local <= 8) {
        sizes.channels = 24;
        sizes.chunk = sizes.tree_chunk = 256 * KIB;
    } else if (net_bw >= 96) {
        sizes.channels = 32;
        sizes.tree_chunk = (local >= 32 ? 64 : 128) * KIB;
    } else if (net_bw >= 48) {
        sizes.channels = 24;
        sizes.tree_chunk = (direct ? 64 : 128) * KIB;
    }
    return sizes;
}

static struct sizes sizes_for(const struct tt_topo_layout *layout, float net_bw)
{
    bool blackwell = layout->cc_least >= 100;
    bool several = layout->nnodes > 1;
    struct sizes sizes = {16, 128 * KIB, -1};
    if (!blackwell) return sizes;
    sizes.channels = several ? 32 : 24;
    if (layout->nnodes == 2 && net_bw >= 48) return two_nodes(sizes, layout, net_bw);
    return several ? many_nodes(sizes, layout, net_bw) : sizes;
}

static int within(int64_t value, int64_t low, int64_t high)
{
    if (value < low) return (int)low;
    return (int)(value > high ? high : value);
}

static float least_net_bw(const struct tt_layout_nodes *nodes)
{
    float bw = nodes->comm_node[0]->domain->net_bw;
    for (int v = 1; v < nodes->count; v++) {
        if (nodes->comm_node[v]->domain->net_bw < bw) bw = nodes->comm_node[v]->domain->net_bw;
    }
    return bw;
}

static void set_sizes(struct tt_topo_layout *layout, const struct tt_topo_config *config,
                      float net_bw)
{
    struct sizes sizes = sizes_for(layout, net_bw);
    int64_t tree_chunk = tt_param_int("NCCL_NVLSTREE_MAX_CHUNKSIZE");
    sizes.channels = tt_layout_limit(config->nvls_ctas, "NCCL_NVLS_NCHANNELS", sizes.channels);
    if (tt_param_is_set("NCCL_NVLS_CHUNKSIZE")) {
        sizes.chunk = within(tt_param_int("NCCL_NVLS_CHUNKSIZE"), 1, INT32_MAX);
    }
    if (tree_chunk > 0) sizes.tree_chunk = within(tree_chunk, 1, INT32_MAX);
    if (sizes.tree_chunk < 0) sizes.tree_chunk = layout->nnodes >= 4 ? 64 * KIB : sizes.chunk;
    layout->nvls_channels =
        within(sizes.channels, tt_layout_limit(config->ctas_least, "NCCL_MIN_CTAS", 1),
               tt_layout_limit(config->ctas_most, "NCCL_MAX_CTAS", TT_MAX_CHANNELS));
    layout->nvls_chunk_bytes = sizes.chunk;
    layout->nvls_tree_chunk_bytes = sizes.tree_chunk;
}

/* ---- trees ---- */

/* Places of a node's heads in tree `which`. */
static void link_heads(struct tt_topo_layout *layout, const struct heads *heads, int node,
                       int which)
{
    struct tt_tree_node comm_node = tt_tree_node(which, node, layout->nnodes);
    for (int h = 0; h < layout->nvls_heads; h++) {
        struct tt_nvls_links *own = &layout->nvls[which][heads[node].rank[h]];
        if (comm_node.parent >= 0) own->parent = heads[comm_node.parent].rank[h];
        for (int k = 0; k < 2; k++) {
            if (comm_node.child[k] >= 0)
                own->child[own->child[1] < 0 ? 1 : 2] = heads[comm_node.child[k]].rank[h];
        }
    }
}

static void fill_links(struct tt_topo_layout *layout, const struct heads *heads, int which)
{
    for (int r = 0; r < layout->nranks; r++) {
        struct tt_nvls_links *comm_node = &layout->nvls[which][r];
        *comm_node = (struct tt_nvls_links){.head = -1, .parent = -1, .child = {-1, -1, -1}};
    }
    for (int v = 0; v < layout->nnodes; v++) {
        for (int h = 0; h < layout->nvls_heads; h++)
            layout->nvls[which][heads[v].rank[h]].head = h;
    }
    if (layout->nnodes == 1) return;
    for (int r = 0; r < layout->nranks; r++) {
        struct tt_nvls_links *comm_node = &layout->nvls[which][r];
        comm_node->child[0] = layout->nranks + 1 + comm_node->head;
    }
    for (int v = 0; v < layout->nnodes; v++)
        link_heads(layout, heads, v, which);
}

ncclResult_t tt_layout_nvls(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                            const struct tt_topo_config *config)
{
    if (layout->graph[TT_GRAPH_NVLS].nchannels == 0) return ncclSuccess;
    struct heads *heads = tt_calloc((size_t)nodes->count, sizeof(*heads));
    for (int which = 0; which < 2; which++)
        layout->nvls[which] = tt_calloc((size_t)layout->nranks, sizeof(struct tt_nvls_links));
    if (!heads || !layout->nvls[0] || !layout->nvls[1]) {
        free(heads);
        return tt_fail(ncclSystemError, "topology: out of memory for multicast");
    }
    layout->nvls_heads = MOST_HEADS;
    for (int v = 0; v < nodes->count; v++) {
        find_heads(nodes->comm_node[v], &heads[v]);
        if (heads[v].count < layout->nvls_heads) layout->nvls_heads = heads[v].count;
    }
    set_sizes(layout, config, least_net_bw(nodes));
    fill_links(layout, heads, 0);
    fill_links(layout, heads, 1);
    free(heads);
    return ncclSuccess;
}
