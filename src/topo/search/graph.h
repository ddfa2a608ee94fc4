/* Channel graphs: storage and names. Private to the room; topo.h has the struct. */
#pragma once

#include "topo/topo.h"

#include <stdbool.h>

/* Allocate TT_MAX_CHANNELS channels over `ngpus` GPUs. False: out of memory. tt_graph_fini() is
 * valid in both cases. */
bool tt_graph_init(struct tt_topo_graph *graph, enum tt_graph_kind kind, int ngpus);
void tt_graph_fini(struct tt_topo_graph *graph);

/* Copy the values and channels of a graph of the same size; `into` keeps its storage. */
void tt_graph_copy(struct tt_topo_graph *into, const struct tt_topo_graph *from);
/* Copy channel `from` to channel `to`. */
void tt_graph_copy_channel(struct tt_topo_graph *graph, int to, int from);
