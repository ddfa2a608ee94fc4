/* Domains and layouts as JSON; numbers with the seven digits that single precision holds. */
#include "machine.h"

#include <stdio.h>
#include <stdlib.h>

json_t *topo_number(double value)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%.7g", value);
    double short_value = strtod(text, NULL);
    bool whole = short_value == (double)(json_int_t)short_value;
    return whole ? json_integer((json_int_t)short_value) : json_real(short_value);
}

static json_t *integers(const int *values, int count)
{
    json_t *list = json_array();
    for (int k = 0; k < count; k++)
        json_array_append_new(list, json_integer(values[k]));
    return list;
}

/* NICs are named host x 1000 + dev. */
static json_t *net_name(uint64_t id)
{
    if (id == TT_NET_NONE) return json_integer(-1);
    return json_integer((json_int_t)((id >> 56) * 1000 + (id & 0xffffffffffffffull)));
}

static json_t *intra_json(const struct tt_topo_graph *graph)
{
    int width = graph->kind == TT_GRAPH_NVLS ? 1 : graph->ngpus;
    json_t *list = json_array();
    for (int c = 0; c < graph->nchannels; c++) {
        json_array_append_new(list,
                              integers(graph->intra + (size_t)c * (size_t)graph->ngpus, width));
    }
    return list;
}

static json_t *inter_json(const struct tt_topo_graph *graph)
{
    json_t *list = json_array();
    for (int c = 0; c < graph->nchannels; c++) {
        json_t *nets = json_array();
        json_array_append_new(nets, net_name(graph->inter[c].first));
        if (graph->kind != TT_GRAPH_NVLS) {
            json_array_append_new(nets, net_name(graph->inter[c].last));
        }
        json_array_append_new(list, nets);
    }
    return list;
}

static json_t *graph_json(const struct tt_topo_graph *graph, bool inter)
{
    json_t *object =
        json_pack("{s:i, s:s, s:i, s:o, s:o, s:o, s:s, s:s, s:i, s:i, s:i, s:o}", "pattern_id",
                  (int)graph->pattern, "pattern", tt_graph_pattern_name(graph->pattern), "channels",
                  graph->nchannels, "bw_intra", topo_number(graph->bw_intra), "bw_inter",
                  topo_number(graph->bw_inter), "latency_inter", topo_number(graph->latency_inter),
                  "type_intra", tt_path_type_name(graph->type_intra), "type_inter",
                  tt_path_type_name(graph->type_inter), "same_channels", graph->same_channels,
                  "cross_nic", graph->cross_nic, "hops", graph->hops, "intra", intra_json(graph));
    if (inter) json_object_set_new(object, "inter", inter_json(graph));
    return object;
}

json_t *topo_domain_json(const struct tt_topo_domain *domain)
{
    json_t *graphs = json_object();
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++) {
        const struct tt_topo_graph *graph = &domain->graph[kind];
        if (!graph->pattern) continue; /* not searched for */
        json_object_set_new(graphs, tt_graph_kind_name(graph->kind),
                            graph_json(graph, domain->inter));
    }
    return json_pack("{s:o, s:i, s:o, s:o, s:o}", "ranks", integers(domain->rank, domain->nranks),
                     "inter", (int)domain->inter, "max_bw", topo_number(domain->max_bw), "total_bw",
                     topo_number(domain->total_bw), "graphs", graphs);
}

static json_t *trees_json(const struct tt_topo_layout *layout)
{
    json_t *trees = json_array();
    for (int t = 0; t < layout->ntrees; t++) {
        json_t *tree = json_array();
        for (int r = 0; r < layout->nranks; r++) {
            const struct tt_tree_links *links = &layout->tree[t][r];
            json_array_append_new(tree, json_integer(links->parent));
            for (int k = 0; k < 3; k++)
                json_array_append_new(tree, json_integer(links->child[k]));
        }
        json_array_append_new(trees, tree);
    }
    return trees;
}

static json_t *nvls_links_json(const struct tt_nvls_links *links)
{
    return json_pack("[i, i, i, i, i]", links->head, links->parent, links->child[0],
                     links->child[1], links->child[2]);
}

static json_t *nvls_json(const struct tt_topo_layout *layout)
{
    json_t *ranks = json_array();
    for (int r = 0; r < layout->nranks; r++) {
        json_array_append_new(ranks, json_pack("[o, o]", nvls_links_json(&layout->nvls[0][r]),
                                               nvls_links_json(&layout->nvls[1][r])));
    }
    return json_pack("{s:i, s:i, s:i, s:o}", "heads", layout->nvls_heads, "chunk_size",
                     layout->nvls_chunk_bytes, "tree_max_chunk_size", layout->nvls_tree_chunk_bytes,
                     "per_rank", ranks);
}

json_t *topo_layout_json(const struct tt_topo_layout *layout)
{
    json_t *rings = json_array();
    for (int k = 0; k < layout->nrings; k++)
        json_array_append_new(rings, integers(layout->ring[k], layout->nranks));
    json_t *object = json_pack(
        "{s:i, s:o, s:i, s:i, s:i, s:i, s:o, s:o, s:o, s:o, s:i}", "logical_nodes", layout->nnodes,
        "rank_to_node", integers(layout->node_of, layout->nranks), "channels", layout->nchannels,
        "nvls_channels", layout->nvls_channels, "p2p_channels", layout->p2p_channels,
        "p2p_channels_per_peer", layout->p2p_per_peer, "ring_of_channel",
        integers(layout->ring_of, layout->nchannels), "rings", rings, "tree_of_channel",
        integers(layout->tree_of, layout->nchannels), "trees", trees_json(layout), "tree_depth",
        layout->tree_depth);
    if (layout->nvls[0]) json_object_set_new(object, "nvls", nvls_json(layout));
    return object;
}
