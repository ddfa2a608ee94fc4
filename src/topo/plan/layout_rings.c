/* Rings over nodes: the chains of all nodes joined end to end, node after node. */
#include "layout.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

/* Where rails pair up (cross_nic 2), the end of an even channel meets the start of the odd one, so
 * every other node swaps the two. */
static int channel_on(const struct tt_topo_layout *layout, int nchannels, int node, int channel)
{
    bool paired = layout->graph[TT_GRAPH_RING].cross_nic == 2 && nchannels % 2 == 0;
    return paired && node % 2 == 1 ? channel ^ 1 : channel;
}

/* One node's part of the ring, from index `at` on; returns where the next begins. */
static int fill_node(const struct tt_topo_comm_node *node, int channel, int *ring, int at)
{
    for (int k = 0; k < node->domain->nranks; k++)
        ring[at++] = tt_layout_rank(node, TT_GRAPH_RING, channel, k);
    return at;
}

/* Begin with rank 0. */
static bool turn(int *ring, int nranks)
{
    int zero = 0;
    while (ring[zero] != 0) {
        zero++;
    }
    int *before = tt_calloc((size_t)zero + 1, sizeof(int));
    if (!before) return false;
    memcpy(before, ring, (size_t)zero * sizeof(int));
    memmove(ring, ring + zero, (size_t)(nranks - zero) * sizeof(int));
    memcpy(ring + nranks - zero, before, (size_t)zero * sizeof(int));
    free(before);
    return true;
}

/* NULL when memory is short. */
static int *make_ring(const struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                      int nchannels, int channel)
{
    int *ring = tt_calloc((size_t)layout->nranks, sizeof(int));
    int at = 0;
    for (int v = 0; v < nodes->count && ring; v++) {
        int own = channel_on(layout, nchannels, v, channel);
        at = fill_node(nodes->comm_node[v], own, ring, at);
    }
    if (ring && turn(ring, layout->nranks)) return ring;
    free(ring);
    return NULL;
}

ncclResult_t tt_layout_rings(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                             int nchannels)
{
    size_t bytes = (size_t)layout->nranks * sizeof(int);
    for (int c = 0; c < nchannels; c++) {
        int *ring = make_ring(layout, nodes, nchannels, c);
        if (!ring) return tt_fail(ncclSystemError, "topology: out of memory for rings");
        int same = 0;
        while (same < layout->nrings && memcmp(layout->ring[same], ring, bytes) != 0) {
            same++;
        }
        layout->ring_of[c] = same;
        if (same < layout->nrings) {
            free(ring);
        } else {
            layout->ring[layout->nrings++] = ring;
        }
    }
    return ncclSuccess;
}
