/* Graph files: channels that somebody wrote down. Private to the room. */
#pragma once

#include "topo/file/xml.h"
#include "topo/graph/system.h"

/* Errors: ncclInvalidUsage "NAME:LINE: ..." for anything that is no graph file of version 1. */
ncclResult_t tt_graph_file_parse(const char *name, const char *text, size_t text_bytes,
                                 struct tt_xml_node **root_out);

/* Take the channels of graph->kind, for the node that `system` is; graph->nchannels stays 0 when
 * the file has none that may be used. *graph is one that tt_graph_init() made.
 * Errors: ncclInvalidUsage "NAME:LINE: ..."; *graph is half filled then. */
ncclResult_t tt_graph_file_take(const struct tt_xml_node *root, const char *name,
                                const struct tt_topo_system *system, bool inter,
                                struct tt_topo_graph *graph);
