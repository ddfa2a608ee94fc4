/* Search for the channels of one node: which GPUs in which order, over which NICs, how fast.
 * Private to the room. Rounding errors of earlier searches, up to a thousandth of a GB/s, stay in
 * the budgets of links, as in NCCL: set the budgets once, then search in the order of
 * tt_graph_kind. */
#pragma once

#include "topo/graph/system.h"

struct tt_search_limits { /* GB/s */
    float max_bw;         /* of a path that leaves a GPU */
    float total_bw;       /* of a GPU's links together */
};

/* Largest bandwidths between devices, or between devices and NICs when `inter`. */
struct tt_search_limits tt_search_limits(const struct tt_topo_system *system, bool inter);
struct tt_search_request {
    enum tt_graph_kind kind;
    bool inter;        /* channels leave the node by NICs */
    int ring_channels; /* trees and chains have as many channels as the ring */
    struct tt_search_limits limits;
};

/* Search. *graph is one that tt_graph_init() made; nchannels 0 afterwards: there is none.
 * Bounded by steps, not by time. Errors: ncclSystemError when memory is short.
 * Source: spec topology, section 5. */
ncclResult_t tt_search_run(struct tt_topo_system *system, const struct tt_search_request *request,
                           struct tt_topo_graph *graph);
