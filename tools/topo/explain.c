/* `tutti topo explain`: why channels run where they do, which limit they meet, and what would move
 * it, in sentences. Every sentence is of one kind of finding; --json lists them with their kind. */
#include "box.h"
#include "machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tale {
    const struct box *box; /* borrowed */
    json_t *findings;      /* owned; NULL: text on standard output */
};

static void say(const struct tale *tale, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void say(const struct tale *tale, const char *kind, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (tale->findings) {
        json_array_append_new(tale->findings, json_pack("{s:s, s:s}", "kind", kind, "text", text));
    } else {
        printf("%s%s\n", strcmp(kind, "title") == 0 ? "" : "  ", text);
    }
}

static int count_of(const struct box *box, const char *list)
{
    return (int)json_array_size(json_object_get(json_object_get(box->machine, "system"), list));
}

/* ---- between GPUs ---- */

enum { MOST_WAYS = 12 };

struct ways { /* pairs by type of path */
    int pairs[MOST_WAYS];
    double least[MOST_WAYS], most[MOST_WAYS]; /* GB/s */
};

static const char *meaning_of(int way)
{
    static const char *const meanings[MOST_WAYS] = {"on the same device",
                                                    "by NVLink",
                                                    "by NVLink through another GPU",
                                                    "by chip-to-chip links",
                                                    "through one PCI switch",
                                                    "through several PCI switches",
                                                    "by a chip-to-chip link, then PCI",
                                                    "through the GPU that is next to the NIC",
                                                    "through a CPU's host bridge",
                                                    "across CPUs",
                                                    "by the network alone",
                                                    "not at all"};
    return meanings[way];
}

static int way_number(const char *name)
{
    for (int way = 0; way < TT_WAY_COUNT_; way++) {
        if (strcmp(name, tt_topo_way_name((enum tt_topo_way)way)) == 0) return way;
    }
    return TT_WAY_DIS;
}

static void count_ways(const struct box *box, struct ways *ways)
{
    *ways = (struct ways){0};
    for (int a = 0; a < count_of(box, "gpus"); a++) {
        for (int b = 0; b < count_of(box, "gpus"); b++) {
            int way = way_number(box_way(box, "gpu_gpu", a, b));
            double bw = box_way_bw(box, "gpu_gpu", a, b);
            if (a == b) continue;
            if (ways->pairs[way] == 0 || bw < ways->least[way]) ways->least[way] = bw;
            if (bw > ways->most[way]) ways->most[way] = bw;
            ways->pairs[way]++;
        }
    }
}

static void explain_pairs(const struct tale *tale)
{
    struct ways ways;
    count_ways(tale->box, &ways);
    for (int way = 0; way < MOST_WAYS; way++) {
        if (ways.pairs[way] == 0) continue;
        char bw[48];
        (void)snprintf(bw, sizeof(bw), "%.4g GB/s", ways.least[way]);
        if (ways.most[way] > ways.least[way]) {
            (void)snprintf(bw, sizeof(bw), "%.4g to %.4g GB/s", ways.least[way], ways.most[way]);
        }
        say(tale, "pairs", "%d ordered pairs of GPUs reach each other %s (%s), %s.",
            ways.pairs[way], meaning_of(way), tt_topo_way_name((enum tt_topo_way)way), bw);
    }
}

static int blocked_pairs(const struct box *box)
{
    json_t *rows = json_object_get(json_object_get(box->machine, "access"), "p2p");
    int blocked = 0;
    for (size_t a = 0; a < json_array_size(rows); a++) {
        for (size_t b = 0; b < json_array_size(rows); b++) {
            json_t *cell = json_array_get(json_array_get(rows, a), b);
            blocked += a != b && !json_integer_value(cell);
        }
    }
    return blocked;
}

/* ---- to NICs ---- */

/* Nearest type of path from any GPU. */
static int nearest(const struct box *box, int net)
{
    int best = TT_WAY_DIS;
    for (int g = 0; g < count_of(box, "gpus"); g++) {
        int way = way_number(box_way(box, "gpu_net", g, net));
        if (way < best) best = way;
    }
    return best;
}

static void explain_nets(const struct tale *tale)
{
    const struct box *box = tale->box;
    for (int n = 0; n < count_of(box, "nets"); n++) {
        int way = nearest(box, n);
        json_t *rank = json_object_get(box_row(box, "nets", n), "local_gpu_rank");
        int dev = box_int(box, "nets", n, "dev");
        if (json_is_integer(rank)) {
            say(tale, "nic",
                "NET %d (%.4g GB/s) serves rank %d first; its nearest GPU is reached %s "
                "(%s).",
                dev, box_real(box, "nets", n, "bw"), (int)json_integer_value(rank), meaning_of(way),
                tt_topo_way_name((enum tt_topo_way)way));
        } else {
            say(tale, "nic",
                "NET %d (%.4g GB/s) is no GPU's first choice: others are as near or "
                "faster for all of them.",
                dev, box_real(box, "nets", n, "bw"));
        }
    }
}

/* ---- channels ---- */

static int index_of_rank(const struct box *box, int rank)
{
    for (int g = 0; g < count_of(box, "gpus"); g++) {
        if (box_int(box, "gpus", g, "rank") == rank) return g;
    }
    return -1;
}

struct narrowest { /* step of a channel */
    int from, to;  /* GPUs */
    double bw;
};

static int rank_at(const struct tt_topo_graph *graph, int channel, int position)
{
    return graph->intra[(size_t)channel * (size_t)graph->ngpus + (size_t)position];
}

static struct narrowest find_narrowest(const struct box *box, const struct tt_topo_graph *graph)
{
    struct narrowest found = {-1, -1, 0};
    for (int c = 0; c < graph->nchannels; c++) {
        for (int p = 0; p + 1 < graph->ngpus; p++) {
            int from = index_of_rank(box, rank_at(graph, c, p));
            int to = index_of_rank(box, rank_at(graph, c, p + 1));
            double bw = box_way_bw(box, "gpu_gpu", from, to);
            if (found.from < 0 || bw < found.bw) found = (struct narrowest){from, to, bw};
        }
    }
    return found;
}

/* Ports that are not the same one under two numbers. */
static double ports_bw(const struct box *box)
{
    double sum = 0;
    for (int n = 0; n < count_of(box, "nets"); n++) {
        bool known = false;
        for (int k = 0; k < n; k++) {
            known = known ||
                    (!strcmp(box_text(box, "nets", k, "guid"), box_text(box, "nets", n, "guid")) &&
                     box_int(box, "nets", k, "port") == box_int(box, "nets", n, "port"));
        }
        if (!known) sum += box_real(box, "nets", n, "bw");
    }
    return sum;
}

static void explain_limit(const struct tale *tale, const struct tt_topo_domain *domain,
                          const struct tt_topo_graph *graph)
{
    const char *name = tt_graph_kind_name(graph->kind);
    bool chain = graph->kind != TT_GRAPH_NVLS && graph->ngpus > 1;
    struct narrowest step =
        chain ? find_narrowest(tale->box, graph) : (struct narrowest){-1, -1, 0};
    double ports = ports_bw(tale->box);
    double inside = graph->nchannels * (double)graph->bw_intra;
    double outside = graph->nchannels * (double)graph->bw_inter;
    if (domain->inter && ports > 0 && outside >= 0.8 * ports) {
        say(tale, "limit",
            "%s: the ports are the limit: they give %.4g GB/s together, the channels "
            "use %.4g.",
            name, ports, outside);
    } else if (inside >= 0.8 * (double)domain->total_bw) {
        say(tale, "limit",
            "%s: the GPUs' links are the limit: %.4g GB/s for each, the channels use "
            "%.4g.",
            name, (double)domain->total_bw, inside);
    } else if (step.from >= 0 && inside >= 0.4 * step.bw && step.bw < (double)domain->total_bw) {
        say(tale, "limit",
            "%s: the step from GPU %d to GPU %d is the limit: %.4g GB/s (%s), the "
            "channels use %.4g of it.",
            name, step.from, step.to, step.bw, box_way(tale->box, "gpu_gpu", step.from, step.to),
            inside);
    } else {
        say(tale, "limit",
            "%s: no single part is full: channels share links on their way, and "
            "speeds are taken from a list of steps (%.4g of %.4g GB/s for a GPU%s).",
            name, inside, (double)domain->total_bw, domain->inter ? ", ports aside" : "");
    }
}

static void explain_ends(const struct tale *tale, const struct tt_topo_graph *graph)
{
    if (graph->kind == TT_GRAPH_NVLS) {
        say(tale, "why",
            "nvls: the GPU next to each NIC heads a channel: it sends and receives for "
            "the node, the NVSwitch spreads and sums.");
    } else if (graph->kind == TT_GRAPH_RING && graph->cross_nic == 2) {
        say(tale, "why",
            "ring: channels come in pairs: the odd one begins at the NIC where the even "
            "one ends, so that on the next node, which swaps the two, both meet equal NICs.");
    } else if (graph->kind == TT_GRAPH_RING) {
        say(tale, "why",
            "ring: every channel leaves by the NIC by which it came, because equal NICs "
            "of all nodes hang on the same switches (NCCL_CROSS_NIC).");
    } else if (graph->pattern == TT_PATTERN_BALANCED) {
        say(tale, "why",
            "tree: the first GPU of a channel speaks with the parent node and one child "
            "node, the second GPU with the other child, to share what the NIC costs PCI.");
    } else if (graph->pattern == TT_PATTERN_TREE) {
        say(tale, "why",
            "tree: the first GPU of a channel speaks with all neighbour nodes; a "
            "second one is not as near to the NIC.");
    }
}

static void explain_channel(const struct tale *tale, const struct tt_topo_graph *graph, int c)
{
    const struct box *box = tale->box;
    char text[512];
    size_t at = 0;
    struct ways ways = {0};
    for (int p = 0; p < graph->ngpus && at < sizeof(text) - 16; p++) {
        at += (size_t)snprintf(text + at, sizeof(text) - at, "%s%d", p ? " > " : "",
                               rank_at(graph, c, p));
        if (p == 0) continue;
        int from = index_of_rank(box, rank_at(graph, c, p - 1));
        int to = index_of_rank(box, rank_at(graph, c, p));
        ways.pairs[way_number(box_way(box, "gpu_gpu", from, to))]++;
    }
    char steps[256];
    at = 0;
    steps[0] = '\0';
    for (int way = 0; way < MOST_WAYS && at < sizeof(steps) - 48; way++) {
        if (ways.pairs[way] == 0) continue;
        at += (size_t)snprintf(steps + at, sizeof(steps) - at, "%s%d %s", at ? ", " : "",
                               ways.pairs[way], meaning_of(way));
    }
    say(tale, "channel", "%s channel %d: %s; steps: %s.", tt_graph_kind_name(graph->kind), c, text,
        *steps ? steps : "none");
}

static bool is_repeat(const struct tt_topo_graph *graph, int c)
{
    size_t bytes = (size_t)graph->ngpus * sizeof(int);
    for (int k = 0; k < c; k++) {
        const int *earlier = graph->intra + (size_t)k * (size_t)graph->ngpus;
        const int *own = graph->intra + (size_t)c * (size_t)graph->ngpus;
        bool same = graph->inter[k].first == graph->inter[c].first &&
                    graph->inter[k].last == graph->inter[c].last;
        if (same && memcmp(earlier, own, bytes) == 0) return true;
    }
    return false;
}

static void explain_graph(const struct tale *tale, const struct tt_topo_domain *domain,
                          const struct tt_topo_graph *graph)
{
    if (!graph->pattern) return;
    const char *name = tt_graph_kind_name(graph->kind);
    if (graph->nchannels == 0) {
        say(tale, "graph", "%s: none was found.", name);
        return;
    }
    say(tale, "graph", "%s: %d %s of %.4g GB/s, by paths up to %s (%s).", name, graph->nchannels,
        graph->nchannels == 1 ? "channel" : "channels",
        (double)(domain->inter ? graph->bw_inter : graph->bw_intra),
        tt_topo_way_name(graph->type_intra), meaning_of((int)graph->type_intra));
    explain_limit(tale, domain, graph);
    if (domain->inter) explain_ends(tale, graph);
    for (int c = 0; graph->kind != TT_GRAPH_NVLS && c < graph->nchannels; c++) {
        if (!is_repeat(graph, c)) explain_channel(tale, graph, c);
    }
}

/* ---- advice ---- */

static void advise_links(const struct tale *tale)
{
    const struct box *box = tale->box;
    double best = 0;
    for (int k = 0; k < box->count; k++) {
        if (box->node[k].kind == BOX_GPU && box->node[k].up_bw > best) best = box->node[k].up_bw;
    }
    for (int k = 0; k < box->count; k++) {
        const struct box_node *node = &box->node[k];
        if (node->kind == BOX_GPU && node->up_bw < 0.9 * best) {
            say(tale, "advice",
                "GPU %d has a PCI link of %.4g GB/s where others have %.4g: look at "
                "its slot and at the link's training.",
                node->gpu, node->up_bw, best);
        }
        if (node->kind != BOX_NET) continue;
        const struct box_node *nic = &box->node[node->parent];
        if (nic->kind == BOX_NIC && nic->up_bw < 0.9 * node->up_bw) {
            say(tale, "advice",
                "NET %d's port gives %.4g GB/s, but the PCI link of its NIC only "
                "%.4g.",
                box_int(box, "nets", node->index, "dev"), node->up_bw, nic->up_bw);
        }
    }
}

static void advise_direct(const struct tale *tale)
{
    const struct box *box = tale->box;
    for (int n = 0; n < count_of(box, "nets"); n++) {
        if (box_int(box, "nets", n, "gdr")) continue;
        say(tale, "advice",
            "NET %d has no GPU-direct: its data takes a detour through the CPU's "
            "memory. Drivers that can (nvidia-peermem, DMA-BUF) remove it.",
            box_int(box, "nets", n, "dev"));
    }
    for (int n = 0; n < count_of(box, "nets"); n++) {
        if (nearest(box, n) < TT_WAY_PHB || !box_int(box, "nets", n, "gdr")) continue;
        say(tale, "advice",
            "NET %d shares no PCI switch with any GPU: its data crosses a CPU. A "
            "slot below a GPU's switch would be faster.",
            box_int(box, "nets", n, "dev"));
    }
    int blocked = blocked_pairs(box);
    if (blocked) {
        say(tale, "advice",
            "%d ordered pairs have no direct access, data goes through the CPU's "
            "memory; NCCL_P2P_LEVEL=SYS would allow it. NVLink or a common PCI switch would be "
            "faster than either.",
            blocked);
    }
}

static void advise(const struct tale *tale, const struct topo_scenario *scenario)
{
    advise_links(tale);
    advise_direct(tale);
    if (scenario->ndomains > 1) {
        say(tale, "advice",
            "The NICs are faster than the ways between GPUs, so the machine falls "
            "into %d nodes joined by the network; NCCL_NET_DISABLE_INTRA=1 keeps it together.",
            scenario->ndomains);
    }
}

/* ---- the command ---- */

static void tell(const struct tale *tale, const char *path, const struct topo_scenario *scenario)
{
    say(tale, "title", "%d x %s: GPUs %d, network ports %d, CPUs %d", scenario->nodes, path,
        count_of(tale->box, "gpus"), count_of(tale->box, "nets"), count_of(tale->box, "cpus"));
    say(tale, "title", "ways");
    explain_pairs(tale);
    explain_nets(tale);
    for (int d = 0; d < scenario->ndomains; d++) {
        const struct tt_topo_domain *domain = &scenario->domains[d];
        say(tale, "title", "channels of the %d GPUs from rank %d on", domain->nranks,
            domain->rank[0]);
        for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++)
            explain_graph(tale, domain, &domain->graph[kind]);
    }
    say(tale, "title", "what would be faster");
    advise(tale, scenario);
}

int topo_explain(const struct topo_options *options)
{
    struct tt_topo_file *file = topo_open(options->paths[0]);
    json_t *machine = file ? topo_system(file, &options->look) : NULL;
    struct topo_scenario scenario = {0};
    struct box box = {0};
    bool done = machine && box_init(&box, machine) &&
                topo_scenario_make(file, &options->look, options->nodes[0], &scenario);
    if (done) {
        struct tale tale = {.box = &box, .findings = options->json ? json_array() : NULL};
        tell(&tale, topo_name(options->paths[0]), &scenario);
        if (tale.findings) topo_print(tale.findings);
        json_decref(tale.findings);
    }
    topo_scenario_free(&scenario);
    box_fini(&box);
    json_decref(machine);
    tt_topo_file_free(file);
    return done ? 0 : 1;
}
