/* Graph files (NCCL_GRAPH_FILE): channels that are given, not searched. Private to the room. */
#pragma once

#include "topo/file/xml.h"
#include "topo/graph/system.h"

/* Errors: ncclInvalidUsage "NAME:LINE: ..." for anything that is no graph file of version 1. */
ncclResult_t tt_graph_file_parse(const char *name, const char *text, size_t text_bytes,
                                 struct tt_xml_node **root_out);

/* Read the channels of graph->kind for the node `system` into *graph, which tt_graph_init() made.
 * graph->nchannels stays 0 where the file has no usable ones.
 * Errors: ncclInvalidUsage "NAME:LINE: ..."; *graph is half filled then. */
ncclResult_t tt_graph_file_take(const struct tt_xml_node *root, const char *name,
                                const struct tt_topo_system *system, bool inter,
                                struct tt_topo_graph *graph);
