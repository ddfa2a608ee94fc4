/* Connect the channels of nodes to rings and trees of a communicator. Private to the room. */
#pragma once

#include "topo/topo.h"

/* Nodes in the order of their first rank. */
struct tt_layout_nodes {
    const struct tt_topo_comm_node **comm_node; /* owned; borrowed entries */
    int count;
};

/* Rank at a position of a channel of a node. */
static inline int tt_layout_rank(const struct tt_topo_comm_node *comm_node, enum tt_graph_kind kind,
                                 int channel, int position)
{
    const struct tt_topo_graph *graph = &comm_node->domain->graph[kind];
    int rank = graph->intra[(size_t)channel * (size_t)graph->ngpus + (size_t)position];
    return tt_topo_rank_at(comm_node, rank);
}

/* layout_rings.c, layout_trees.c: the first `nchannels` channels' rings, and twice as many trees,
 * one allocation each; equal ones are kept once. Errors: ncclSystemError. */
ncclResult_t tt_layout_rings(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                             int nchannels);
ncclResult_t tt_layout_trees(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                             int nchannels);

/* channels.c: set the numbers of channels, when all nodes have the same graphs and `base` channels
 * are placed. */
void tt_layout_channels(struct tt_topo_layout *layout, const struct tt_topo_config *config,
                        int base);
void tt_layout_p2p_channels(struct tt_topo_layout *layout, const struct tt_topo_config *config,
                            int per_peer);
/* A limit on channels: from the config (requested), else from the variable, else `fallback`. */
int tt_layout_limit(int requested, const char *variable, int fallback);

/* layout_nvls.c. */
ncclResult_t tt_layout_nvls(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                            const struct tt_topo_config *config);
