/* A machine in words, as NCCL's GRAPH log has it: the tree under each CPU, every node's paths, and
 * the channels that the search found. Source of the layout: spec debug log, section 7.4. */
#include "describe.h"

#include "base/error.h"
#include "topo/file/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDENT = 512 };

static unsigned long long local_id(uint64_t id)
{
    return id & 0xffffffffffffffull;
}

static void print_name(FILE *out, const struct tt_topo_node *node)
{
    (void)fprintf(out, "%s/%x-%llx", tt_topo_type_name(node->type), tt_topo_host(node),
                  local_id(node->id));
}

/* What a type says beside its name. */
static void print_node(FILE *out, const struct tt_topo_node *node)
{
    print_name(out, node);
    if (node->type == TT_NODE_GPU) (void)fprintf(out, " (%d)", node->rank);
    if (node->type == TT_NODE_CPU)
        (void)fprintf(out, " (%d/%d/%d)", (int)node->arch, (int)node->vendor, (int)node->model);
    if (node->type == TT_NODE_PCI) (void)fprintf(out, " (%llx)", (unsigned long long)node->pci_id);
    if (node->type == TT_NODE_NET) {
        (void)fprintf(out, " (%d/%llx/%d/%.1f)", node->coll, (unsigned long long)node->guid,
                      node->port, (double)node->bw);
    }
}

const char *tt_topo_link_name(enum tt_path_type type)
{
    return type == TT_PATH_PIX ? "PCI" : tt_path_type_name(type);
}

/* PCI leads on; GPUs and NICs too, so that what they are and have hangs below them. */
static bool leads_down(const struct tt_topo_node *node, const struct tt_topo_link *link)
{
    bool holds = node->type == TT_NODE_DEV || node->type == TT_NODE_NIC;
    return link->type == TT_PATH_PIX || (link->type == TT_PATH_LOC && holds) ||
           link->type == TT_PATH_NET;
}

/* The lines below `node`; the first line, with its name, is the caller's. */
static void print_below(FILE *out, const struct tt_topo_node *node, const struct tt_topo_node *from,
                        int indent)
{
    for (int l = 0; l < node->nlinks && indent < INDENT; l++) {
        const struct tt_topo_link *link = &node->links[l];
        if (link->peer == from) continue;
        int width = fprintf(out, "%*s+ %s[%.1f] - ", indent, "", tt_topo_link_name(link->type),
                            (double)link->bw);
        bool down = leads_down(node, link);
        if (down) {
            print_node(out, link->peer);
        } else {
            print_name(out, link->peer);
        }
        (void)fputc('\n', out);
        if (down) print_below(out, link->peer, node, width);
    }
}

static void print_tree(FILE *out, const struct tt_topo_system *system,
                       const struct tt_topo_domain *domain)
{
    const struct tt_topo_list *cpus = &system->list[TT_NODE_CPU];
    (void)fprintf(out, "=== System : maxBw %.1f totalBw %.1f ===\n", (double)domain->max_bw,
                  (double)domain->total_bw);
    for (int c = 0; c < cpus->count; c++) {
        print_node(out, cpus->node[c]);
        (void)fputc('\n', out);
        print_below(out, cpus->node[c], NULL, 0);
    }
    (void)fprintf(out, "==========================================\n");
}

static void print_paths(FILE *out, const struct tt_topo_node *node,
                        const struct tt_topo_list *targets)
{
    for (int t = 0; t < targets->count; t++) {
        const struct tt_topo_path *path = tt_topo_path(node, targets->node[t]);
        print_name(out, targets->node[t]);
        (void)fprintf(out, " (%d/%.1f/%s) ", path->hops, (double)path->bw,
                      tt_path_type_name(path->type));
    }
}

static void print_paths_of(FILE *out, const struct tt_topo_system *system,
                           const struct tt_topo_node *node)
{
    static const enum tt_topo_type to[] = {TT_NODE_GPU, TT_NODE_NVS, TT_NODE_CPU, TT_NODE_NET};
    print_name(out, node);
    (void)fputs(" :", out);
    for (size_t t = 0; t < sizeof(to) / sizeof(to[0]); t++) {
        if (node->paths[to[t]]) print_paths(out, node, &system->list[to[t]]);
    }
    (void)fputc('\n', out);
}

static void print_all_paths(FILE *out, const struct tt_topo_system *system)
{
    static const enum tt_topo_type from[] = {TT_NODE_GPU, TT_NODE_NET};
    for (size_t f = 0; f < sizeof(from) / sizeof(from[0]); f++) {
        const struct tt_topo_list *list = &system->list[from[f]];
        for (int k = 0; k < list->count; k++) {
            print_paths_of(out, system, list->node[k]);
        }
    }
}

/* ---- channels ---- */

static void print_net(FILE *out, uint64_t net)
{
    if (net == TT_NET_NONE) return;
    (void)fprintf(out, " NET/%x-%llx", (unsigned)(net >> 56), local_id(net));
}

static void print_channel(FILE *out, const struct tt_topo_system *system,
                          const struct tt_topo_graph *graph, int channel)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    int length = graph->kind == TT_GRAPH_NVLS ? 1 : graph->ngpus;
    (void)fprintf(out, "%2d :", channel);
    if (graph->inter) print_net(out, graph->inter[channel].first);
    for (int p = 0; p < length; p++) {
        int rank = graph->intra[channel * graph->ngpus + p];
        for (int g = 0; g < gpus->count; g++) {
            if (gpus->node[g]->rank != rank) continue;
            (void)fputc(' ', out);
            print_name(out, gpus->node[g]);
        }
    }
    if (graph->inter) print_net(out, graph->inter[channel].last);
    (void)fputc('\n', out);
}

static void print_graph(FILE *out, const struct tt_topo_system *system,
                        const struct tt_topo_graph *graph)
{
    (void)fprintf(out,
                  "Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %s/%s, sameChannels %d\n",
                  (int)graph->pattern, graph->cross_nic, graph->nchannels, (double)graph->bw_intra,
                  (double)graph->bw_inter, tt_path_type_name(graph->type_intra),
                  tt_path_type_name(graph->type_inter), graph->same_channels);
    for (int c = 0; c < graph->nchannels; c++)
        print_channel(out, system, graph, c);
}

char *tt_topo_describe(const struct tt_topo_system *system, const struct tt_topo_domain *domains,
                       int ndomains)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) return NULL;
    if (ndomains > 0) print_tree(out, system, &domains[0]);
    print_all_paths(out, system);
    for (int d = 0; d < ndomains; d++) {
        for (int g = 0; g < TT_GRAPH_COUNT_; g++)
            if (domains[d].graph[g].nchannels > 0) print_graph(out, system, &domains[d].graph[g]);
    }
    if (!fclose(out)) return text;
    free(text);
    return NULL;
}
