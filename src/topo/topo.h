/* The machine as a graph, and what follows from it: device list, nodes, rings, trees, channels.
 * Until the search lands: one flat host per node. Pure but for detect_*.c. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>

#define TT_MAX_CHANNELS 64

/* One rank as the planner sees it. */
struct tt_topo_rank {
    int node; /* index of its host, by first appearance in rank order */
    int local_rank;
    char bus_id[16];
};

struct tt_tree_place { /* a rank's place in one tree; -1: none */
    int parent;
    int child[3];
};

struct tt_topo_plan { /* owned by the caller of tt_topo_plan_make; free with tt_topo_plan_free */
    int nranks, nnodes, nchannels;
    int *ring[TT_MAX_CHANNELS];    /* ring[c][k] = rank at position k, nranks entries */
    struct tt_tree_place *tree[2]; /* double binary tree over ranks: place of every rank */
};

/* Rings and trees of a communicator; deterministic, equal on all ranks.
 * nchannels_wish  1..TT_MAX_CHANNELS (beyond: cut down); 0: own rule (two: one for each tree)
 * plan_out        filled only on success
 * Errors: ncclInvalidArgument naming a rank whose node number is not by first appearance;
 * ncclSystemError when memory is short. */
ncclResult_t tt_topo_plan_make(const struct tt_topo_rank *ranks, int nranks, int nchannels_wish,
                               struct tt_topo_plan *plan_out);
void tt_topo_plan_free(struct tt_topo_plan *plan);
