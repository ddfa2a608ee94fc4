/* Channel graphs: storage and names. The lists of a graph have always room for all channels. */
#include "graph.h"

#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

bool tt_graph_init(struct tt_topo_graph *graph, enum tt_graph_kind kind, int ngpus)
{
    *graph = (struct tt_topo_graph){.kind = kind, .ngpus = ngpus};
    graph->intra = tt_calloc((size_t)TT_MAX_CHANNELS * (size_t)ngpus, sizeof(int));
    graph->inter = tt_calloc(TT_MAX_CHANNELS, sizeof(*graph->inter));
    return graph->intra && graph->inter;
}

void tt_graph_fini(struct tt_topo_graph *graph)
{
    free(graph->intra);
    free(graph->inter);
    *graph = (struct tt_topo_graph){0};
}

void tt_graph_copy(struct tt_topo_graph *into, const struct tt_topo_graph *from)
{
    int *intra = into->intra;
    struct tt_topo_ends *inter = into->inter;
    size_t nchannels = (size_t)from->nchannels;
    memcpy(intra, from->intra, nchannels * (size_t)from->ngpus * sizeof(int));
    memcpy(inter, from->inter, nchannels * sizeof(*inter));
    *into = *from;
    into->intra = intra;
    into->inter = inter;
}

void tt_graph_copy_channel(struct tt_topo_graph *graph, int to, int from)
{
    size_t n = (size_t)graph->ngpus;
    memcpy(graph->intra + (size_t)to * n, graph->intra + (size_t)from * n, n * sizeof(int));
    graph->inter[to] = graph->inter[from];
}

const char *tt_graph_kind_name(enum tt_graph_kind kind)
{
    static const char *const names[TT_GRAPH_COUNT_] = {"ring", "tree", "collnet_chain", "nvls",
                                                       "collnet_direct"};
    return names[kind];
}

const char *tt_graph_pattern_name(enum tt_graph_pattern pattern)
{
    static const char *const names[] = {"none", "balanced_tree", "split_tree",    "tree",
                                        "ring", "nvls",          "collnet_direct"};
    return names[pattern];
}
