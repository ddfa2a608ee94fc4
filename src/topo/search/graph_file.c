/* Channel graphs as NCCL's graph files: printed, and read in place of a search. GPUs and NICs are
 * named by host << 56 | dev in hexadecimal, GPUs by rank as well; a rank that is not on this node
 * is found by its device, so that one file serves all nodes of equal machines.
 * Source: spec topology, section 7. */
#include "graph_file.h"

#include "graph.h"

#include "base/error.h"
#include "base/mem.h"
#include "topo/file/words.h"
#include "topo/file/xml.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- words ---- */

static const enum tt_path_type writable[] = {TT_PATH_LOC, TT_PATH_NVL, TT_PATH_NVB,
                                             TT_PATH_PIX, TT_PATH_PXB, TT_PATH_P2C,
                                             TT_PATH_PXN, TT_PATH_PHB, TT_PATH_SYS};

static const char *type_word(enum tt_path_type type)
{
    for (size_t k = 0; k < TT_LEN(writable); k++) {
        if (writable[k] == type) return tt_path_type_name(type);
    }
    return NULL;
}

static bool word_type(const char *word, enum tt_path_type *type_out)
{
    for (size_t k = 0; word && k < TT_LEN(writable); k++) {
        if (strcmp(word, tt_path_type_name(writable[k])) != 0) continue;
        *type_out = writable[k];
        return true;
    }
    return false;
}

/* ---- printing ---- */

static bool set_integer(struct tt_xml_node *node, const char *key, int64_t value)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%lld", (long long)value);
    return tt_xml_set(node, key, text);
}

static bool set_number(struct tt_xml_node *node, const char *key, float value)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%g", (double)value);
    return tt_xml_set(node, key, text);
}

static bool set_id(struct tt_xml_node *node, uint64_t id)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "0x%llx", (unsigned long long)id);
    return tt_xml_set(node, "dev", text);
}

static bool add_net(struct tt_xml_node *channel, uint64_t id)
{
    struct tt_xml_node *net = tt_xml_add(channel, "net");
    return net && set_id(net, id);
}

static bool add_gpu(struct tt_xml_node *channel, const struct tt_topo_comm_node *comm_node,
                    int rank)
{
    struct tt_xml_node *gpu = tt_xml_add(channel, "gpu");
    const struct tt_topo_domain *domain = comm_node->domain;
    int at = 0;
    while (at + 1 < domain->nranks && domain->rank[at] != rank) {
        at++;
    }
    return gpu && set_id(gpu, domain->device[at]) &&
           set_integer(gpu, "rank", tt_topo_rank_at(comm_node, rank));
}

static bool add_channel(struct tt_xml_node *parent, const struct tt_topo_comm_node *comm_node,
                        const struct tt_topo_graph *graph, int c)
{
    struct tt_xml_node *channel = tt_xml_add(parent, "channel");
    bool nvls = graph->kind == TT_GRAPH_NVLS;
    bool done = channel != NULL;
    bool inter = comm_node->domain->inter;
    if (inter) done = done && add_net(channel, graph->inter[c].first);
    for (int p = 0; p < (nvls ? 1 : graph->ngpus) && done; p++) {
        done =
            add_gpu(channel, comm_node, graph->intra[(size_t)c * (size_t)graph->ngpus + (size_t)p]);
    }
    if (inter) done = done && add_net(channel, nvls ? graph->inter[c].first : graph->inter[c].last);
    return done;
}

static bool add_graph(struct tt_xml_node *root, const struct tt_topo_comm_node *comm_node,
                      const struct tt_topo_graph *graph)
{
    struct tt_xml_node *node = tt_xml_add(root, "graph");
    bool done = node && set_integer(node, "id", graph->kind) &&
                set_integer(node, "pattern", graph->pattern) &&
                set_integer(node, "crossnic", graph->cross_nic) &&
                set_integer(node, "nchannels", graph->nchannels) &&
                set_number(node, "speedintra", graph->bw_intra) &&
                set_number(node, "speedinter", graph->bw_inter) &&
                set_number(node, "latencyinter", graph->latency_inter) &&
                tt_xml_set(node, "typeintra", type_word(graph->type_intra)) &&
                tt_xml_set(node, "typeinter", type_word(graph->type_inter)) &&
                set_integer(node, "samechannels", graph->same_channels);
    for (int c = 0; c < graph->nchannels && done; c++)
        done = add_channel(node, comm_node, graph, c);
    return done;
}

ncclResult_t tt_topo_graphs_print(const struct tt_topo_comm_node *comm_node, char **text_out)
{
    static const enum tt_graph_kind order[] = {TT_GRAPH_RING, TT_GRAPH_TREE, TT_GRAPH_DIRECT,
                                               TT_GRAPH_CHAIN, TT_GRAPH_NVLS};
    struct tt_xml_node *root = tt_xml_add(NULL, "graphs");
    bool done = root && tt_xml_set(root, "version", "1");
    ncclResult_t rc = ncclSuccess;
    for (size_t k = 0; k < TT_LEN(order) && done && !rc; k++) {
        const struct tt_topo_graph *graph = &comm_node->domain->graph[order[k]];
        if (graph->nchannels == 0) continue;
        if (!type_word(graph->type_intra) || !type_word(graph->type_inter)) {
            rc = tt_fail(ncclInvalidUsage,
                         "graph file: paths of type %s/%s of the %s cannot be written in this "
                         "format",
                         tt_path_type_name(graph->type_intra), tt_path_type_name(graph->type_inter),
                         tt_graph_kind_name(graph->kind));
        } else {
            done = add_graph(root, comm_node, graph);
        }
    }
    char *text = done && !rc ? tt_xml_print(root) : NULL;
    tt_xml_free(root);
    if (rc) return rc;
    if (!text) return tt_fail(ncclSystemError, "graph file: out of memory");
    *text_out = text;
    return ncclSuccess;
}

/* ---- reading ---- */

struct reader {
    const char *name; /* of the file */
    const struct tt_topo_system *system;
    bool inter;
    struct tt_topo_graph *graph;
};

static ncclResult_t refuse(const struct reader *reader, const struct tt_xml_node *node,
                           const char *what)
{
    return tt_fail(ncclInvalidUsage, "%s:%d: <%s>: %s", reader->name, node->line, node->name, what);
}

static bool read_int(const struct tt_xml_node *node, const char *key, int least, int most,
                     int *value_out)
{
    const char *text = tt_xml_get(node, key);
    int64_t value = 0;
    if (!text || !tt_word_int(text, &value) || value < least || value > most) return false;
    *value_out = (int)value;
    return true;
}

static bool read_float(const struct tt_xml_node *node, const char *key, float *value_out)
{
    const char *text = tt_xml_get(node, key);
    double value = 0;
    if (!text || !tt_word_float(text, &value) || value < 0 || value > 1e6) return false;
    *value_out = (float)value;
    return true;
}

static bool fits(enum tt_graph_kind kind, int pattern)
{
    switch (kind) {
    case TT_GRAPH_RING: return pattern == TT_PATTERN_RING;
    case TT_GRAPH_CHAIN: return pattern == TT_PATTERN_TREE;
    case TT_GRAPH_NVLS: return pattern == TT_PATTERN_NVLS;
    case TT_GRAPH_DIRECT: return pattern == TT_PATTERN_DIRECT;
    default: return pattern >= TT_PATTERN_BALANCED && pattern <= TT_PATTERN_TREE;
    }
}

static ncclResult_t read_values(struct reader *reader, const struct tt_xml_node *node)
{
    struct tt_topo_graph *graph = reader->graph;
    int pattern = 0;
    if (!read_int(node, "pattern", 1, 6, &pattern) || !fits(graph->kind, pattern))
        return refuse(reader, node, "pattern is missing or not one of this id");
    graph->pattern = (enum tt_graph_pattern)pattern;
    if (!read_int(node, "crossnic", 0, 2, &graph->cross_nic))
        return refuse(reader, node, "crossnic is missing or not 0, 1 or 2");
    if (!read_int(node, "nchannels", 0, TT_MAX_CHANNELS, &graph->nchannels))
        return refuse(reader, node, "nchannels is missing or not from 0 to 64");
    if (!read_float(node, "speedintra", &graph->bw_intra) ||
        !read_float(node, "speedinter", &graph->bw_inter))
        return refuse(reader, node, "speedintra or speedinter is missing or no GB/s");
    graph->latency_inter = 0;
    if (tt_xml_get(node, "latencyinter") &&
        !read_float(node, "latencyinter", &graph->latency_inter))
        return refuse(reader, node, "latencyinter is no number of microseconds");
    if (!word_type(tt_xml_get(node, "typeintra"), &graph->type_intra) ||
        !word_type(tt_xml_get(node, "typeinter"), &graph->type_inter))
        return refuse(reader, node, "typeintra or typeinter is missing or no type of path");
    if (!read_int(node, "samechannels", 0, 1, &graph->same_channels))
        return refuse(reader, node, "samechannels is missing or not 0 or 1");
    return ncclSuccess;
}

static const struct tt_topo_node *find_gpu(const struct reader *reader,
                                           const struct tt_xml_node *node)
{
    const struct tt_topo_list *gpus = &reader->system->list[TT_NODE_GPU];
    int rank = -1;
    uint64_t id = 0;
    bool by_id = tt_xml_get(node, "dev") && tt_word_hex(tt_xml_get(node, "dev"), &id);
    if (read_int(node, "rank", 0, INT32_MAX, &rank)) {
        for (int g = 0; g < gpus->count; g++) {
            if (gpus->node[g]->rank == rank) return gpus->node[g];
        }
    }
    for (int g = 0; by_id && g < gpus->count; g++) {
        const struct tt_topo_node *gpu = gpus->node[g];
        if (tt_topo_id(tt_topo_host(gpu), (uint64_t)gpu->dev_number) == id) return gpu;
    }
    return NULL;
}

struct filling { /* of a channel */
    int channel, gpus, nets;
};

static ncclResult_t take_gpu(struct reader *reader, const struct tt_xml_node *node,
                             struct filling *at)
{
    struct tt_topo_graph *graph = reader->graph;
    const struct tt_topo_node *gpu = find_gpu(reader, node);
    int *channel = graph->intra + (size_t)at->channel * (size_t)graph->ngpus;
    if (!gpu) return refuse(reader, node, "neither its rank nor its dev is a GPU of this node");
    if (at->gpus == graph->ngpus) return refuse(reader, node, "more GPUs than the node has");
    for (int p = 0; p < at->gpus; p++) {
        if (channel[p] == gpu->rank) return refuse(reader, node, "the GPU is there twice");
    }
    channel[at->gpus++] = gpu->rank;
    return ncclSuccess;
}

static ncclResult_t take_net(struct reader *reader, const struct tt_xml_node *node,
                             struct filling *at)
{
    uint64_t id = 0;
    bool known = tt_xml_get(node, "dev") && tt_word_hex(tt_xml_get(node, "dev"), &id) &&
                 tt_topo_node_find(reader->system, TT_NODE_NET, id);
    if (!known) return refuse(reader, node, "its dev is no NIC of this node");
    if (at->nets == 2) return refuse(reader, node, "a third NIC");
    struct tt_topo_ends *ends = &reader->graph->inter[at->channel];
    if (at->nets++ == 0) {
        ends->first = id;
    } else {
        ends->last = id;
    }
    return ncclSuccess;
}

static ncclResult_t read_channel(struct reader *reader, const struct tt_xml_node *node, int c)
{
    struct tt_topo_graph *graph = reader->graph;
    struct filling at = {.channel = c};
    bool nvls = graph->kind == TT_GRAPH_NVLS;
    int gpus = nvls ? 1 : graph->ngpus;
    for (int k = 0; k < node->nchildren; k++) {
        const struct tt_xml_node *child = node->children[k];
        ncclResult_t rc = ncclSuccess;
        if (!strcmp(child->name, "gpu")) rc = take_gpu(reader, child, &at);
        if (!strcmp(child->name, "net")) rc = take_net(reader, child, &at);
        if (rc) return rc;
    }
    if (at.gpus != gpus) return refuse(reader, node, "GPUs of the node are missing");
    if (reader->inter && at.nets < (nvls ? 1 : 2)) return refuse(reader, node, "a NIC is missing");
    return ncclSuccess;
}

static ncclResult_t read_graph(struct reader *reader, const struct tt_xml_node *node)
{
    ncclResult_t rc = read_values(reader, node);
    int count = 0;
    if (!rc && reader->graph->cross_nic == 1 && reader->system->env.cross_nic == 0) {
        /* it does what the variable forbids: search instead */
        reader->graph->nchannels = 0;
        reader->graph->bw_intra = reader->graph->bw_inter = reader->graph->latency_inter = 0;
        return ncclSuccess;
    }
    for (int k = 0; k < node->nchildren && !rc; k++) {
        if (strcmp(node->children[k]->name, "channel") != 0) continue;
        if (count == reader->graph->nchannels)
            return refuse(reader, node->children[k], "more channels than nchannels says");
        rc = read_channel(reader, node->children[k], count++);
    }
    if (!rc && count != reader->graph->nchannels)
        return refuse(reader, node, "fewer channels than nchannels says");
    return rc;
}

ncclResult_t tt_graph_file_take(const struct tt_xml_node *root, const char *name,
                                const struct tt_topo_system *system, bool inter,
                                struct tt_topo_graph *graph)
{
    struct reader reader = {.name = name, .system = system, .inter = inter, .graph = graph};
    for (int k = 0; k < root->nchildren; k++) {
        const struct tt_xml_node *node = root->children[k];
        int id = -1;
        if (strcmp(node->name, "graph") != 0) continue;
        if (!read_int(node, "id", 0, TT_GRAPH_COUNT_ - 1, &id))
            return refuse(&reader, node, "id is missing or not from 0 to 4");
        if (id == (int)graph->kind) return read_graph(&reader, node);
    }
    return ncclSuccess;
}

ncclResult_t tt_graph_file_parse(const char *name, const char *text, size_t text_bytes,
                                 struct tt_xml_node **root_out)
{
    struct tt_topo_notes notes = {0};
    struct tt_xml_node *root = NULL;
    ncclResult_t rc = tt_xml_parse(name, text, text_bytes, &notes, &root);
    tt_topo_notes_fini(&notes);
    if (rc) return rc;
    int version = 0;
    if (strcmp(root->name, "graphs") != 0 || !read_int(root, "version", 1, 1, &version)) {
        rc = tt_fail(ncclInvalidUsage, "%s:%d: <%s>: no graph file of version 1", name, root->line,
                     root->name);
        tt_xml_free(root);
        return rc;
    }
    *root_out = root;
    return ncclSuccess;
}
