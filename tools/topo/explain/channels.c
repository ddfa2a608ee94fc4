/* Why the channels of a node run as they do: which links they fill, where they begin and end, in
 * which order they visit GPUs. */
#include "explain.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- limits ---- */

/* "PCI/3" as people call it; a device by the number of its GPU, a port by that of its NET. */
static void name_end(const struct box *box, const char *end, char *text, size_t bytes)
{
    const char *slash = strchr(end, '/');
    int index = slash ? (int)strtol(slash + 1, NULL, 10) : 0;
    if (!strncmp(end, "DEV/", 4)) {
        int node = box_find(box, BOX_GPU, index);
        (void)snprintf(text, bytes, "GPU %d", node < 0 ? index : box->node[node].gpu);
    } else if (!strncmp(end, "NET/", 4)) {
        char name[BOX_NAME_BYTES];
        box_net_name(box, index, name);
        (void)snprintf(text, bytes, "%s", name);
    } else if (!strncmp(end, "NVS/", 4)) {
        (void)snprintf(text, bytes, "the NVSwitch");
    } else if (!strncmp(end, "PCI/", 4)) {
        (void)snprintf(text, bytes, "PCI switch %d", index);
    } else {
        (void)snprintf(text, bytes, "%.3s %d", end, index);
    }
}

static void add_group(const struct box *box, struct text *text, const struct load_group *group)
{
    char from[BOX_NAME_BYTES];
    char to[BOX_NAME_BYTES];
    const struct tt_topo_load *first = &group->first;
    name_end(box, first->from, from, sizeof(from));
    name_end(box, first->to, to, sizeof(to));
    if (text->bytes) text_add(text, "; ");
    if (!*group->to && group->count == 1) {
        text_add(text, "the port %s", from);
    } else if (!*group->to) {
        text_add(text, "%d ports, such as %s", group->count, from);
    } else if (group->count == 1) {
        text_add(text, "the link from %s to %s", from, to);
    } else {
        text_add(text, "%d links %s to %s, such as %s > %s", group->count, group->from, group->to,
                 from, to);
    }
    if (group->both) text_add(text, ", and back");
    text_add(text, " (%.4g of %.4g GB/s in use)", (double)first->used, (double)first->bw);
}

/* Between GPU and NIC, Intel's host bridges give less. */
static bool costs_more(const struct box *box, const struct tt_topo_graph *graph)
{
    bool intel = !strcmp(box_text(box, "cpus", 0, "vendor"), "intel");
    return intel && (graph->type_intra == TT_PATH_PHB || graph->type_inter == TT_PATH_PHB);
}

static void explain_limit(const struct report *report, const struct tt_topo_graph *graph,
                          const struct tt_topo_loads *loads)
{
    const char *name = tt_graph_kind_name(graph->kind);
    struct load_group groups[LOAD_GROUPS];
    struct text full = {0};
    int count = load_groups_of(loads, groups);
    bool nearly = false;
    for (int g = 0; g < count && g < 4 && load_group_is_full(&groups[g]); g++) {
        add_group(report->box, &full, &groups[g]);
        nearly = groups[g].first.used < 0.95F * groups[g].first.bw;
    }
    if (full.bytes) {
        report_add(report, "limit", "%s: the limit is where links are full%s: %s.%s", name,
                   nearly ? " or nearly so" : "", text_get(&full),
                   costs_more(report->box, graph)
                       ? " PCI through an Intel CPU counts one fifth more than it carries."
                       : "");
    } else if (count) {
        add_group(report->box, &full, &groups[0]);
        report_add(
            report, "limit",
            "%s: no link is full; the fullest: %s. Channels have one of NCCL's fixed speeds, "
            "and the search found no way to fit the next higher one or a further channel.",
            name, text_get(&full));
    } else {
        report_add(report, "limit", "%s: nothing is in the way: no link is used.", name);
    }
    text_free(&full);
    const double once = (double)graph->bw_intra * graph->nchannels;
    const double used = count ? (double)groups[0].first.used : 0;
    if (graph->kind == TT_GRAPH_NVLS && used > once && used <= 1.01 * (once + graph->bw_intra)) {
        report_add(report, "why",
                   "nvls: the link of a GPU carries each of the %d channels, and the one that the "
                   "GPU heads a second time: %d x %.4g GB/s.",
                   graph->nchannels, graph->nchannels + 1, (double)graph->bw_intra);
    }
}

/* ---- ends and orders ---- */

static void explain_ends(const struct report *report, const struct tt_topo_graph *graph)
{
    if (graph->kind == TT_GRAPH_NVLS) {
        report_add(report, "why",
                   "nvls: each channel has a GPU as its head, which sends and receives for the "
                   "node, the NVSwitch spreads and sums.");
    } else if (graph->kind == TT_GRAPH_RING && graph->cross_nic == 2) {
        report_add(
            report, "why",
            "ring: channels come in pairs: the odd one begins at the NIC where the even one "
            "ends, so that on the next node, which swaps the two, both meet equal NICs and "
            "stay on their rail (NCCL_CROSS_NIC=2 allows it where one NIC for both ends gives "
            "less).");
    } else if (graph->kind == TT_GRAPH_RING) {
        report_add(report, "why",
                   "ring: every channel leaves by the NIC by which it came, so that equal NICs of "
                   "all nodes meet and traffic stays on its rail (NCCL_CROSS_NIC: this is tried "
                   "first).");
    } else if (graph->pattern == TT_PATTERN_BALANCED) {
        report_add(report, "why",
                   "%s: the first GPU of a channel speaks with the parent node and one child node, "
                   "the second GPU with the other child: that shares what the NIC costs PCI.",
                   tt_graph_kind_name(graph->kind));
    } else if (graph->pattern == TT_PATTERN_TREE && graph->ngpus > 1) {
        report_add(
            report, "why",
            "%s: the first GPU of a channel speaks with all neighbour nodes; a second one "
            "would share that (balanced tree, which is tried first), but has no path as good "
            "to the same NIC.",
            tt_graph_kind_name(graph->kind));
    }
}

static bool is_one_order(const struct tt_topo_graph *graph)
{
    size_t bytes = (size_t)graph->ngpus * sizeof(int);
    for (int c = 1; c < graph->nchannels; c++) {
        if (memcmp(graph->intra, graph->intra + (size_t)c * (size_t)graph->ngpus, bytes) != 0)
            return false;
    }
    return true;
}

static int rank_at(const struct tt_topo_graph *graph, int channel, int position)
{
    return graph->intra[(size_t)channel * (size_t)graph->ngpus + (size_t)position];
}

struct steps {
    int types[TT_PATH_COUNT_]; /* by type of path */
    int shared;                /* without direct access */
};

/* inter: in a communicator over nodes, where rings do not close in the node */
static struct steps count_steps(const struct box *box, const struct tt_topo_graph *graph, int c,
                                bool inter)
{
    struct steps steps = {0};
    bool closed = graph->pattern == TT_PATTERN_RING && !inter;
    int most = graph->ngpus > 1 ? graph->ngpus - !closed : 0;
    for (int p = 0; p < most; p++) {
        int from = box_gpu_of_rank(box, rank_at(graph, c, p));
        int to = box_gpu_of_rank(box, rank_at(graph, c, (p + 1) % graph->ngpus));
        steps.types[path_type_of(box_path_type(box, "gpu_gpu", from, to))]++;
        steps.shared += !box_access(box, "p2p", from, to);
    }
    return steps;
}

/* Why GPUs follow each other as they do, by the paths that all channels take. */
static const char *order_reason(const struct box *box, const struct tt_topo_domain *domain,
                                const struct tt_topo_graph *graph)
{
    int linked = 0;
    int other = 0;
    int across = 0;
    bool linkable = false;
    for (int c = 0; c < graph->nchannels; c++) {
        const struct steps steps = count_steps(box, graph, c, domain->inter);
        for (int type = 0; type < TT_PATH_COUNT_; type++)
            *(type <= TT_PATH_NVB ? &linked : &other) += steps.types[type];
        across += steps.types[TT_PATH_SYS];
    }
    for (int k = 0; k < box->count; k++)
        linkable = linkable || box->node[k].nvlink > 0;
    if (linked && other) {
        return "NVLinks join some of the GPUs: channels follow them where they are and take the "
               "best other paths between.";
    }
    if (linked && domain->nvswitch) {
        return domain->inter ? "behind an NVSwitch all GPUs are equally near: channels go through "
                               "them in the file's order, up or down, from the GPU next to their "
                               "NIC on."
                             : "behind an NVSwitch all GPUs are equally near: channels go through "
                               "them in the file's order, up or down.";
    }
    if (linked && graph->ngpus == 2) return "NVLink joins the two GPUs.";
    if (linked) {
        return "there is no NVSwitch: the search steps to the neighbour whose NVLinks have most "
               "bandwidth left, and turns back where GPUs would remain unvisited or a link would "
               "be promised twice.";
    }
    if (linkable) {
        return "no step takes NVLink, as direct access is not allowed there: the fastest next "
               "step is to a GPU below the same PCI switch or CPU.";
    }
    if (across) {
        return "without NVLink the fastest next step is to a GPU below the same PCI switch, then "
               "below the same CPU; so channels cross between CPUs as rarely as they can.";
    }
    return "without NVLink the fastest next step is to a GPU below the same PCI switch, then "
           "below the same CPU.";
}

static void explain_order(const struct report *report, const struct tt_topo_domain *domain,
                          const struct tt_topo_graph *graph)
{
    const char *name = tt_graph_kind_name(graph->kind);
    if (graph->kind == TT_GRAPH_NVLS || graph->ngpus < 2) return;
    report_add(report, "why", "%s: %s", name, order_reason(report->box, domain, graph));
    if (graph->nchannels < 2) return;
    if (is_one_order(graph)) {
        report_add(report, "why",
                   "%s: one order of GPUs is repeated for every channel, because links have room "
                   "for it; the search asks for that first.",
                   name);
    } else {
        report_add(report, "why",
                   "%s: channels differ, because repeating one order would have used fewer %s.",
                   name, domain->inter ? "links or NICs" : "links");
    }
}

/* ---- channels ---- */

/* "NET 3 (PXN by rank 2)"; in: towards the GPU. */
static void add_net(const struct box *box, struct text *text, int rank, uint64_t net, bool in)
{
    int n = net == TT_NET_NONE ? -1 : box_net_index(box, net);
    int g = box_gpu_of_rank(box, rank);
    if (n < 0 || g < 0) {
        text_add(text, "no NIC");
        return;
    }
    const char *type =
        in ? box_path_type(box, "net_gpu", n, g) : box_path_type(box, "gpu_net", g, n);
    int proxy = box_access(box, "pxn_proxy_rank", g, n);
    bool direct = box_access(box, in ? "gdr_recv" : "gdr_send", g, n);
    char name[BOX_NAME_BYTES];
    box_net_name(box, n, name);
    text_add(text, "%s", name);
    if (net >> 56) text_add(text, " of host %d", (int)(net >> 56));
    text_add(text, " (%s", type);
    if (!in && !strcmp(type, "PXN")) text_add(text, " by rank %d", proxy);
    text_add(text, "%s)", direct ? "" : ", through host memory");
}

static void add_steps(struct text *text, const struct steps *steps)
{
    bool any = false;
    for (int type = 0; type < TT_PATH_COUNT_; type++) {
        if (steps->types[type] == 0) continue;
        text_add(text, "%s%d %s", any ? ", " : "; steps: ", steps->types[type],
                 path_type_meaning(type));
        any = true;
    }
    if (steps->shared) {
        text_add(text, " (%d without direct access, by shared host memory)", steps->shared);
    }
}

static bool is_same(const struct tt_topo_graph *graph, int a, int b)
{
    size_t gpus = graph->kind == TT_GRAPH_NVLS ? 1 : (size_t)graph->ngpus;
    return graph->inter[a].first == graph->inter[b].first &&
           graph->inter[a].last == graph->inter[b].last &&
           memcmp(graph->intra + (size_t)a * (size_t)graph->ngpus,
                  graph->intra + (size_t)b * (size_t)graph->ngpus, gpus * sizeof(int)) == 0;
}

static bool is_repeat(const struct tt_topo_graph *graph, int c)
{
    for (int k = 0; k < c; k++) {
        if (is_same(graph, k, c)) return true;
    }
    return false;
}

static void add_numbers(struct text *text, const struct tt_topo_graph *graph, int c)
{
    for (int k = c; k < graph->nchannels; k++) {
        if (is_same(graph, k, c)) text_add(text, "%s%d", k > c ? ", " : "", k);
    }
}

/* "0 > 71 > 70 .. 1": what counts up or down by one, from four ranks on, is a range. */
static void add_ranks(struct text *text, const struct tt_topo_graph *graph, int c, int last)
{
    const int *ranks = graph->intra + (size_t)c * (size_t)graph->ngpus;
    for (int p = 0; p <= last;) {
        int run = topo_rank_run(ranks, p, last + 1);
        text_add(text, "%s%d", p ? " > " : "", rank_at(graph, c, p));
        if (run > 1) text_add(text, " .. %d", rank_at(graph, c, p + run - 1));
        p += run;
    }
}

static void explain_channel(const struct report *report, const struct tt_topo_graph *graph, int c,
                            bool inter)
{
    struct text text = {0};
    bool ring = graph->pattern == TT_PATTERN_RING;
    bool nvls = graph->kind == TT_GRAPH_NVLS;
    int last = nvls ? 0 : graph->ngpus - 1;
    add_numbers(&text, graph, c);
    text_add(&text, ": ");
    if (inter) add_net(report->box, &text, rank_at(graph, c, 0), graph->inter[c].first, true);
    if (inter) text_add(&text, "%s", ring ? " > " : " <> ");
    add_ranks(&text, graph, c, last);
    if (inter && ring) text_add(&text, " > ");
    if (inter && ring)
        add_net(report->box, &text, rank_at(graph, c, last), graph->inter[c].last, false);
    if (!inter && ring && last > 0) text_add(&text, " > %d", rank_at(graph, c, 0));
    if (nvls) text_add(&text, " heads it");
    struct steps steps = {0};
    if (!nvls) steps = count_steps(report->box, graph, c, inter);
    add_steps(&text, &steps);
    report_add(report, "channel", "%s channel %s.", tt_graph_kind_name(graph->kind),
               text_get(&text));
    text_free(&text);
}

/* ---- graphs ---- */

static void explain_graph(const struct report *report, const struct tt_topo_domain *domain,
                          const struct tt_topo_graph *graph, const struct tt_topo_loads *loads)
{
    const char *name = tt_graph_kind_name(graph->kind);
    if (!graph->pattern) return;
    if (graph->nchannels == 0) {
        report_add(report, "graph", "%s: none was found.", name);
        return;
    }
    const char *noun = graph->nchannels == 1 ? "channel" : "channels";
    struct text text = {0};
    if (graph->ngpus > 1) {
        text_add(&text, " %.4g GB/s between GPUs, by paths up to %s (%s)", (double)graph->bw_intra,
                 tt_path_type_name(graph->type_intra), path_type_meaning((int)graph->type_intra));
    }
    if (domain->inter) {
        text_add(&text, "%s %.4g GB/s by NICs, up to %s (%s)", text.bytes ? ", and" : "",
                 (double)graph->bw_inter, tt_path_type_name(graph->type_inter),
                 path_type_meaning((int)graph->type_inter));
    }
    report_add(report, "graph", "%s: %d %s%s%s.", name, graph->nchannels, noun,
               text.bytes ? " of" : "; a lone GPU needs no links", text_get(&text));
    text_free(&text);
    if (graph->ngpus > 1 || domain->inter) explain_limit(report, graph, loads);
    if (domain->inter) explain_ends(report, graph);
    explain_order(report, domain, graph);
    for (int c = 0; c < graph->nchannels; c++) {
        if (!is_repeat(graph, c)) explain_channel(report, graph, c, domain->inter);
    }
}

void explain_domain(const struct report *report, const struct tt_topo_domain *domain,
                    const struct tt_topo_loads loads[TT_GRAPH_COUNT_])
{
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++)
        explain_graph(report, domain, &domain->graph[kind], &loads[kind]);
}
