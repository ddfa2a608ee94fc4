/* Trees over nodes: a chain inside each node, and between nodes a double binary tree whose edges
 * end at the GPUs that the node's pattern names: its first for the parent, its first or second for
 * the children. Channel c uses the first tree, channel c + nchannels the second. */
#include "layout.h"
#include "tree.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Rank of a node that talks to its child number `which` (0, 1), or to its parent (-1). */
static int speaker(const struct tt_topo_comm_node *comm_node, int channel, int which)
{
    enum tt_graph_pattern pattern = comm_node->domain->graph[TT_GRAPH_TREE].pattern;
    bool second =
        (which == 0 && pattern != TT_PATTERN_TREE) || (which == 1 && pattern == TT_PATTERN_SPLIT);
    if (comm_node->domain->nranks < 2) second = false;
    return tt_layout_rank(comm_node, TT_GRAPH_TREE, channel, second ? 1 : 0);
}

static void add_child(struct tt_tree_links *comm_node, int child)
{
    int slot = 0;
    while (slot < 2 && comm_node->child[slot] >= 0) {
        slot++;
    }
    comm_node->child[slot] = child;
}

static void fill_chain(const struct tt_topo_comm_node *node, int channel,
                       struct tt_tree_links *tree)
{
    int n = node->domain->nranks;
    for (int k = 0; k < n; k++) {
        struct tt_tree_links *comm_node = &tree[tt_layout_rank(node, TT_GRAPH_TREE, channel, k)];
        *comm_node = (struct tt_tree_links){.parent = -1, .child = {-1, -1, -1}};
        if (k > 0) comm_node->parent = tt_layout_rank(node, TT_GRAPH_TREE, channel, k - 1);
        if (k + 1 < n) comm_node->child[0] = tt_layout_rank(node, TT_GRAPH_TREE, channel, k + 1);
    }
}

static void fill_tree(const struct tt_layout_nodes *nodes, int which, int channel,
                      struct tt_tree_links *tree)
{
    for (int v = 0; v < nodes->count; v++)
        fill_chain(nodes->comm_node[v], channel, tree);
    for (int v = 0; v < nodes->count; v++) {
        struct tt_tree_node comm_node = tt_tree_node(which, v, nodes->count);
        int up = speaker(nodes->comm_node[v], channel, -1);
        if (comm_node.parent >= 0) {
            tree[up].parent = speaker(nodes->comm_node[comm_node.parent], channel, comm_node.which);
        }
        for (int k = 0; k < 2; k++) {
            if (comm_node.child[k] < 0) continue;
            add_child(&tree[speaker(nodes->comm_node[v], channel, k)],
                      speaker(nodes->comm_node[comm_node.child[k]], channel, -1));
        }
    }
}

ncclResult_t tt_layout_trees(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                             int nchannels)
{
    size_t bytes = (size_t)layout->nranks * sizeof(struct tt_tree_links);
    for (int c = 0; c < 2 * nchannels && c < TT_MAX_CHANNELS; c++) {
        struct tt_tree_links *tree = tt_calloc((size_t)layout->nranks, sizeof(*tree));
        if (!tree) return tt_fail(ncclSystemError, "topology: out of memory for trees");
        fill_tree(nodes, c / nchannels, c % nchannels, tree);
        int same = 0;
        while (same < layout->ntrees && memcmp(layout->tree[same], tree, bytes) != 0) {
            same++;
        }
        layout->tree_of[c] = same;
        if (same < layout->ntrees) {
            free(tree);
        } else {
            layout->tree[layout->ntrees++] = tree;
        }
    }
    return ncclSuccess;
}
