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

/* The ring from rank 0 on. */
static void fill_ring(const struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                      int nchannels, int channel, int *ring)
{
    int n = layout->nranks;
    int zero = 0;
    int at = 0;
    for (int pass = 0; pass < 2; pass++) { /* first find rank 0, then write from there */
        at = 0;
        for (int v = 0; v < nodes->count; v++) {
            int c = channel_on(layout, nchannels, v, channel);
            for (int k = 0; k < nodes->place[v]->domain->nranks; k++, at++) {
                int rank = tt_layout_rank(nodes->place[v], TT_GRAPH_RING, c, k);
                if (pass == 0 && rank == 0) zero = at;
                if (pass == 1) ring[(at - zero + n) % n] = rank;
            }
        }
    }
}

ncclResult_t tt_layout_rings(struct tt_topo_layout *layout, const struct tt_layout_nodes *nodes,
                             int nchannels)
{
    size_t bytes = (size_t)layout->nranks * sizeof(int);
    for (int c = 0; c < nchannels; c++) {
        int *ring = tt_calloc((size_t)layout->nranks, sizeof(int));
        if (!ring) return tt_fail(ncclSystemError, "topology: out of memory for rings");
        fill_ring(layout, nodes, nchannels, c, ring);
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
