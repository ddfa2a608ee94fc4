/* Channel graphs: storage and names. Private to the room; topo.h has the struct. */
#pragma once

#include "topo/topo.h"

#include <stdbool.h>

/* Room for TT_MAX_CHANNELS channels over `ngpus`. False when memory is short; tt_graph_fini()
 * takes either. */
bool tt_graph_init(struct tt_topo_graph *graph, enum tt_graph_kind kind, int ngpus);
void tt_graph_fini(struct tt_topo_graph *graph);

/* Values and channels of a graph of the same size; `into` keeps its own storage. */
void tt_graph_copy(struct tt_topo_graph *into, const struct tt_topo_graph *from);
/* Channel `to` becomes as channel `from`. */
void tt_graph_copy_channel(struct tt_topo_graph *graph, int to, int from);
