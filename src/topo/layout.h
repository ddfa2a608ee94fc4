/* Joining nodes to a communicator, in steps. Private to the room. */
#pragma once

#include "topo.h"

/* Nodes in the order of their first rank. */
struct tt_layout_nodes {
    const struct tt_topo_node_place **place; /* owned; borrowed entries */
    int count;
};

/* Rank at a position of a channel of a node. */
static inline int tt_layout_rank(const struct tt_topo_node_place *place, enum tt_graph_kind kind,
                                 int channel, int position)
{
    const struct tt_topo_graph *graph = &place->domain->graph[kind];
    return graph->intra[(size_t)channel * (size_t)graph->ngpus + (size_t)position] +
           place->rank_offset;
}

/* rings.c, layout_trees.c: the first `nchannels` channels' rings, and twice as many trees, one
 * allocation each; equal ones are kept once. Errors: ncclSystemError. */
ncclResult_t tt_layout_rings(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                             int nchannels);
ncclResult_t tt_layout_trees(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                             int nchannels);

/* channels.c: how many channels, once graphs are agreed upon and `base` of them are placed. */
void tt_layout_channels(struct tt_topo_layout *layout, int base);
void tt_layout_p2p_channels(struct tt_topo_layout *layout, int per_peer);

/* layout_nvls.c. `net_bw`, GB/s: least over the ranks. */
ncclResult_t tt_layout_nvls(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                            float net_bw);
