/* Load of links and ports by a graph, to show what limits it. Each graph is considered alone, as in
 * the search. */
#pragma once

#include "topo/topo.h"

struct tt_topo_load { /* a link in one direction, or a port (type NET, `to` empty) */
    enum tt_path_type type;
    char from[16], to[16]; /* TYPE/index as in the report */
    float bw, used;        /* GB/s */
    int order;             /* among equally loaded ones */
};

struct tt_topo_loads {
    struct tt_topo_load *load; /* owned; those in use, the highest load first */
    int count;
};

/* The load of links and ports by each graph of a domain, which tt_topo_domains_make() made from the
 * same file and options. Release with tt_topo_loads_free(). Errors: as tt_topo_system_make();
 * nothing is to be released then. */
ncclResult_t tt_topo_loads_make(const struct tt_topo_file *file,
                                const struct tt_topo_options *options,
                                const struct tt_topo_domain *domain,
                                struct tt_topo_loads loads[TT_GRAPH_COUNT_]);
void tt_topo_loads_free(struct tt_topo_loads loads[TT_GRAPH_COUNT_]);
