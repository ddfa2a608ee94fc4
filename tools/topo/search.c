/* `tutti topo search`: the channels of a machine in a communicator, as text, with search times. */
#include "box.h"
#include "machine.h"

#include "base/system/clock.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- channels as text ---- */

static void put_net(const struct box *box, char *text, size_t bytes, uint64_t net)
{
    int host = (int)(net >> 56);
    int index = net == TT_NET_NONE ? -1 : box_net_index(box, net);
    char name[BOX_NAME_BYTES];
    if (net == TT_NET_NONE) {
        (void)snprintf(text, bytes, "no NIC");
        return;
    }
    (void)snprintf(name, sizeof(name), "NIC %d", (int)(net & 0xffffff));
    if (index >= 0) box_net_name(box, index, name);
    if (host) {
        (void)snprintf(text, bytes, "%s of host %d", name, host);
    } else {
        (void)snprintf(text, bytes, "%s", name);
    }
}

static bool same_channel(const struct tt_topo_graph *graph, int a, int b)
{
    int width = graph->kind == TT_GRAPH_NVLS ? 1 : graph->ngpus;
    bool same = graph->inter[a].first == graph->inter[b].first &&
                graph->inter[a].last == graph->inter[b].last;
    for (int p = 0; same && p < width; p++) {
        same = graph->intra[(size_t)a * (size_t)graph->ngpus + (size_t)p] ==
               graph->intra[(size_t)b * (size_t)graph->ngpus + (size_t)p];
    }
    return same;
}

static void print_numbers(const struct tt_topo_graph *graph, int first)
{
    int count = 0;
    for (int c = first; c < graph->nchannels; c++) {
        if (!same_channel(graph, first, c)) continue;
        printf("%s%d", count++ ? "," : "  channel ", c);
    }
    printf(":");
}

static void print_channel(const struct box *box, const struct tt_topo_graph *graph, int c,
                          bool inter)
{
    char from[BOX_NAME_BYTES + 32];
    char to[BOX_NAME_BYTES + 32];
    bool nvls = graph->kind == TT_GRAPH_NVLS;
    const int *gpus = graph->intra + (size_t)c * (size_t)graph->ngpus;
    put_net(box, from, sizeof(from), graph->inter[c].first);
    put_net(box, to, sizeof(to), graph->inter[c].last);
    if (inter) printf(" %s >", from);
    const int count = nvls ? 1 : graph->ngpus;
    for (int p = 0, run = 0; p < count; p += run) {
        run = topo_rank_run(gpus, p, count);
        printf(" %d", gpus[p]);
        if (run > 1) printf(" .. %d", gpus[p + run - 1]);
    }
    if (nvls) printf(" heads the multicast");
    if (inter && !nvls) printf(" > %s", to);
    printf("\n");
}

static void print_graph(const struct box *box, const struct tt_topo_graph *graph, bool inter)
{
    if (graph->nchannels == 0) {
        printf("%s: none\n", tt_graph_kind_name(graph->kind));
        return;
    }
    printf("%s (%s): %d channels x %.7g GB/s inside", tt_graph_kind_name(graph->kind),
           tt_graph_pattern_name(graph->pattern), graph->nchannels, (double)graph->bw_intra);
    if (inter) printf(", %.7g GB/s between nodes", (double)graph->bw_inter);
    printf("; paths up to %s", tt_path_type_name(graph->type_intra));
    if (inter) printf(", to NICs up to %s", tt_path_type_name(graph->type_inter));
    printf("; %d hops\n", graph->hops);
    for (int c = 0; c < graph->nchannels; c++) {
        bool shown = false;
        for (int earlier = 0; earlier < c && !shown; earlier++)
            shown = same_channel(graph, earlier, c);
        if (shown) continue;
        print_numbers(graph, c);
        print_channel(box, graph, c, inter);
    }
}

static void print_layout(const struct tt_topo_layout *layout)
{
    printf(
        "together: %d rank%s on %d node%s, %d channels over %d ring%s and %d tree%s of depth %d, ",
        layout->nranks, layout->nranks == 1 ? "" : "s", layout->nnodes,
        layout->nnodes == 1 ? "" : "s", layout->nchannels, layout->nrings,
        layout->nrings == 1 ? "" : "s", layout->ntrees, layout->ntrees == 1 ? "" : "s",
        layout->tree_depth);
    if (layout->nvls[0]) {
        printf("%d NVLS channels with %d heads, ", layout->nvls_channels, layout->nvls_heads);
    }
    printf("%d p2p channels (%d for a peer)\n", layout->p2p_channels, layout->p2p_per_peer);
}

static void print_scenario(const struct box *box, const struct topo_scenario *scenario)
{
    for (int d = 0; d < scenario->ndomains; d++) {
        const struct tt_topo_domain *domain = &scenario->domains[d];
        if (scenario->ndomains > 1) {
            printf("%sGPUs of rank", d ? "\n" : "");
            for (int k = 0; k < domain->nranks; k++)
                printf(" %d", domain->rank[k]);
            printf(" (the network joins them to the others)\n");
        }
        for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++) {
            if (!domain->graph[kind].pattern) continue;
            print_graph(box, &domain->graph[kind], domain->inter);
        }
    }
    print_layout(scenario->layout);
}

/* ---- times ---- */

struct times { /* nsec */
    uint64_t search, layout;
};

static size_t layout_bytes(const struct tt_topo_layout *layout)
{
    size_t rank = sizeof(int) + (size_t)layout->nrings * sizeof(int) +
                  (size_t)layout->ntrees * sizeof(struct tt_tree_links);
    if (layout->nvls[0]) rank += 2 * sizeof(struct tt_nvls_links);
    return rank * (size_t)layout->nranks;
}

static bool make_timed(const struct tt_topo_file *file, const struct topo_options *options,
                       int nodes, struct topo_scenario *scenario, struct times *times)
{
    uint64_t begin = tt_now_nsec();
    *scenario = (struct topo_scenario){.nodes = nodes};
    if (!topo_domains(file, &options->look, scenario)) return false;
    uint64_t middle = tt_now_nsec();
    if (!topo_join(scenario)) {
        topo_scenario_free(scenario);
        return false;
    }
    times->search = middle - begin;
    times->layout = tt_now_nsec() - middle;
    return true;
}

static json_t *times_json(const struct times *times, const struct tt_topo_layout *layout)
{
    return json_pack("{s:o, s:o, s:I, s:I}", "search_msec",
                     topo_number((double)times->search / 1e6), "layout_msec",
                     topo_number((double)times->layout / 1e6), "layout_bytes",
                     (json_int_t)layout_bytes(layout), "layout_bytes_per_rank",
                     (json_int_t)(layout_bytes(layout) / (size_t)layout->nranks));
}

static void print_times(const struct times *times, const struct tt_topo_layout *layout)
{
    printf("time: %.1f ms for graph, paths and search, %.1f ms to join %d node%s; every rank "
           "holds %.1f MB, %zu bytes for each rank\n",
           (double)times->search / 1e6, (double)times->layout / 1e6, layout->nnodes,
           layout->nnodes == 1 ? "" : "s", (double)layout_bytes(layout) / 1e6,
           layout_bytes(layout) / (size_t)layout->nranks);
}

/* ---- the command ---- */

static json_t *answer_json(const struct topo_options *options, const struct topo_scenario *scenario,
                           const struct times *times)
{
    bool brief =
        options->time && scenario->layout->nranks > 4096; /* rings of megabytes are of no use */
    json_t *answer =
        brief ? json_pack("{s:i, s:i}", "nodes", scenario->nodes, "ranks", scenario->layout->nranks)
              : topo_scenario_json(scenario);
    if (options->time) {
        json_object_set_new(answer, "time", times_json(times, scenario->layout));
    }
    return answer;
}

/* box: for the names in text. */
static bool search_one(const struct tt_topo_file *file, const struct box *box,
                       const struct topo_options *options, int nodes, json_t *list)
{
    struct topo_scenario scenario;
    struct times times;
    if (!make_timed(file, options, nodes, &scenario, &times)) return false;
    bool whole = !options->time || scenario.layout->nranks <= 4096;
    bool done = !list || !whole || topo_is_printable(scenario.layout);
    if (list && done) {
        json_array_append_new(list, answer_json(options, &scenario, &times));
    } else if (done) {
        printf("%d x %s\n", nodes, topo_name(options->paths[0]));
        if (whole) print_scenario(box, &scenario);
        if (options->time) print_times(&times, scenario.layout);
    }
    topo_scenario_free(&scenario);
    return done;
}

/* The first node's graphs, for NCCL_GRAPH_FILE. */
static int search_xml(const struct topo_options *options)
{
    struct tt_topo_file *file = topo_open(options, options->paths[0]);
    struct topo_scenario scenario = {.nodes = options->nodes[0]};
    char *text = NULL;
    bool done = file && topo_domains(file, &options->look, &scenario);
    const struct tt_topo_comm_node comm_node = {.domain = scenario.domains};
    if (done && tt_topo_graphs_print(&comm_node, &text)) topo_print_error();
    if (text) (void)fputs(text, stdout);
    topo_scenario_free(&scenario);
    tt_topo_file_free(file);
    int status = text ? 0 : 1;
    free(text);
    return status;
}

int topo_search(const struct topo_options *options)
{
    if (options->xml) return search_xml(options);
    if (options->svg) return topo_search_svg(options);
    struct tt_topo_file *file = topo_open(options, options->paths[0]);
    json_t *list = options->json ? json_array() : NULL;
    json_t *machine = file && !list ? topo_system(file, &options->look) : NULL;
    struct box box = {0};
    bool done = file && (list || (machine && box_init(&box, machine)));
    for (int k = 0; done && k < options->ncounts; k++) {
        if (k && !list) printf("\n");
        done = search_one(file, &box, options, options->nodes[k], list);
    }
    if (list && done) topo_print(list);
    json_decref(list);
    box_fini(&box);
    json_decref(machine);
    tt_topo_file_free(file);
    return done ? 0 : 1;
}
