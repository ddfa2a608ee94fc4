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
        (void)snprintf(text, bytes, "NET %d", box_int(box, "nets", index, "dev"));
    } else if (!strncmp(end, "NVS/", 4)) {
        (void)snprintf(text, bytes, "the NVSwitch");
    } else if (!strncmp(end, "PCI/", 4)) {
        (void)snprintf(text, bytes, "PCI switch %d", index);
    } else {
        (void)snprintf(text, bytes, "%.3s %d", end, index);
    }
}

static void add_group(const struct box *box, struct words *words, const struct tale_group *group)
{
    char from[32];
    char to[32];
    const struct tt_topo_load *first = &group->first;
    name_end(box, first->from, from, sizeof(from));
    name_end(box, first->to, to, sizeof(to));
    if (words->bytes) words_add(words, "; ");
    if (!*group->to && group->count == 1) {
        words_add(words, "the port NET %s", from + 4);
    } else if (!*group->to) {
        words_add(words, "%d ports, such as %s", group->count, from);
    } else if (group->count == 1) {
        words_add(words, "the link %s > %s", from, to);
    } else {
        words_add(words, "%d links %s to %s, such as %s > %s", group->count, group->from, group->to,
                  from, to);
    }
    if (group->both) words_add(words, ", and back");
    words_add(words, " (%.4g of %.4g GB/s in use)", (double)first->used, (double)first->bw);
}

/* Between GPU and NIC, Intel's host bridges give less. */
static bool costs_more(const struct box *box, const struct tt_topo_graph *graph)
{
    bool intel = !strcmp(box_text(box, "cpus", 0, "vendor"), "intel");
    return intel && (graph->type_intra == TT_WAY_PHB || graph->type_inter == TT_WAY_PHB);
}

static void explain_limit(const struct tale *tale, const struct tt_topo_graph *graph,
                          const struct tt_topo_loads *loads)
{
    const char *name = tt_graph_kind_name(graph->kind);
    struct tale_group groups[TALE_GROUPS];
    struct words full = {0};
    int count = tale_groups(loads, groups);
    for (int g = 0; g < count && g < 4 && tale_is_full(&groups[g]); g++)
        add_group(tale->box, &full, &groups[g]);
    if (full.bytes) {
        tale_say(tale, "limit", "%s: the limit is where links are full: %s.%s", name,
                 words_text(&full),
                 costs_more(tale->box, graph)
                     ? " PCI through an Intel CPU counts one fifth more than it carries."
                     : "");
    } else if (count) {
        add_group(tale->box, &full, &groups[0]);
        tale_say(tale, "limit",
                 "%s: no link is full; the fullest: %s. Channels have one of NCCL's fixed speeds, "
                 "and the search found no way to fit the next higher one or a further channel.",
                 name, words_text(&full));
    } else {
        tale_say(tale, "limit", "%s: nothing is in the way: no link is used.", name);
    }
    words_free(&full);
}

/* ---- ends and orders ---- */

static void explain_ends(const struct tale *tale, const struct tt_topo_graph *graph)
{
    if (graph->kind == TT_GRAPH_NVLS) {
        tale_say(tale, "why",
                 "nvls: the GPU next to each NIC heads a channel: it sends and receives for the "
                 "node, the NVSwitch spreads and sums.");
    } else if (graph->kind == TT_GRAPH_RING && graph->cross_nic == 2) {
        tale_say(tale, "why",
                 "ring: channels come in pairs: the odd one begins at the NIC where the even one "
                 "ends, so that on the next node, which swaps the two, both meet equal NICs and "
                 "stay on their rail (NCCL_CROSS_NIC=2 allows it where one NIC for both ends gives "
                 "less).");
    } else if (graph->kind == TT_GRAPH_RING) {
        tale_say(tale, "why",
                 "ring: every channel leaves by the NIC by which it came, so that equal NICs of "
                 "all nodes meet and traffic stays on its rail (NCCL_CROSS_NIC: this is tried "
                 "first).");
    } else if (graph->pattern == TT_PATTERN_BALANCED) {
        tale_say(tale, "why",
                 "%s: the first GPU of a channel speaks with the parent node and one child node, "
                 "the second GPU with the other child: that shares what the NIC costs PCI.",
                 tt_graph_kind_name(graph->kind));
    } else if (graph->pattern == TT_PATTERN_TREE && graph->ngpus > 1) {
        tale_say(tale, "why",
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

static void explain_order(const struct tale *tale, const struct tt_topo_domain *domain,
                          const struct tt_topo_graph *graph)
{
    const char *name = tt_graph_kind_name(graph->kind);
    bool linked = graph->type_intra == TT_WAY_NVL || graph->type_intra == TT_WAY_NVB;
    if (graph->kind == TT_GRAPH_NVLS || graph->ngpus < 2) return;
    if (domain->nvswitch && linked) {
        tale_say(tale, "why",
                 "%s: behind an NVSwitch all GPUs are equally near: channels go through them by "
                 "number, up or down%s.",
                 name, domain->inter ? ", from the GPU next to their NIC on" : "");
    } else if (linked) {
        tale_say(tale, "why",
                 "%s: NVLinks join certain pairs only: the search steps to the neighbour with most "
                 "bandwidth left and turns back where GPUs would remain unvisited or a link would "
                 "be promised twice.",
                 name);
    } else {
        tale_say(tale, "why",
                 "%s: without NVLink the fastest next step is to a GPU below the same PCI switch, "
                 "then below the same CPU; so channels cross between CPUs as rarely as they can.",
                 name);
    }
    if (graph->nchannels < 2) return;
    tale_say(tale, "why", "%s: %s", name,
             is_one_order(graph)
                 ? "one order of GPUs is repeated for every channel, because links have room for "
                   "it; the search asks for that first."
                 : "channels differ, because repeating one order would have used fewer links or "
                   "NICs.");
}

/* ---- channels ---- */

static int rank_at(const struct tt_topo_graph *graph, int channel, int position)
{
    return graph->intra[(size_t)channel * (size_t)graph->ngpus + (size_t)position];
}

static int net_index(const struct box *box, uint64_t net)
{
    int host = (int)(net >> 56);
    int dev = (int)(net & 0xffffff);
    for (int n = 0; n < tale_count(box, "nets"); n++) {
        if (box_int(box, "nets", n, "dev") == dev && box_int(box, "nets", n, "host") == host)
            return n;
    }
    return -1;
}

/* "NET 3 (PXN by rank 2)"; in: towards the GPU. */
static void add_net(const struct box *box, struct words *words, int rank, uint64_t net, bool in)
{
    int n = net == TT_NET_NONE ? -1 : net_index(box, net);
    int g = tale_index(box, rank);
    if (n < 0 || g < 0) {
        words_add(words, "no NIC");
        return;
    }
    const char *way = in ? box_way(box, "net_gpu", n, g) : box_way(box, "gpu_net", g, n);
    int proxy = tale_access(box, "pxn_proxy_rank", g, n);
    bool direct = tale_access(box, in ? "gdr_recv" : "gdr_send", g, n);
    words_add(words, "NET %d", (int)(net & 0xffffff));
    if (net >> 56) words_add(words, " of host %d", (int)(net >> 56));
    words_add(words, " (%s", way);
    if (!in && !strcmp(way, "PXN")) words_add(words, " by rank %d", proxy);
    words_add(words, "%s)", direct ? "" : ", through host memory");
}

struct steps {
    int ways[TT_WAY_COUNT_]; /* by type of path */
    int shared;              /* without direct access */
};

static struct steps count_steps(const struct box *box, const struct tt_topo_graph *graph, int c,
                                bool closed)
{
    struct steps steps = {0};
    int most = graph->ngpus > 1 ? graph->ngpus - !closed : 0;
    for (int p = 0; p < most; p++) {
        int from = tale_index(box, rank_at(graph, c, p));
        int to = tale_index(box, rank_at(graph, c, (p + 1) % graph->ngpus));
        steps.ways[tale_way(box_way(box, "gpu_gpu", from, to))]++;
        steps.shared += !tale_access(box, "p2p", from, to);
    }
    return steps;
}

static void add_steps(struct words *words, const struct steps *steps)
{
    bool any = false;
    for (int way = 0; way < TT_WAY_COUNT_; way++) {
        if (steps->ways[way] == 0) continue;
        words_add(words, "%s%d %s", any ? ", " : "; steps: ", steps->ways[way], tale_meaning(way));
        any = true;
    }
    if (steps->shared) {
        words_add(words, " (%d without direct access, by shared host memory)", steps->shared);
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

static void add_numbers(struct words *words, const struct tt_topo_graph *graph, int c)
{
    for (int k = c; k < graph->nchannels; k++) {
        if (is_same(graph, k, c)) words_add(words, "%s%d", k > c ? ", " : "", k);
    }
}

static void explain_channel(const struct tale *tale, const struct tt_topo_graph *graph, int c,
                            bool inter)
{
    struct words words = {0};
    bool ring = graph->pattern == TT_PATTERN_RING;
    bool nvls = graph->kind == TT_GRAPH_NVLS;
    int last = nvls ? 0 : graph->ngpus - 1;
    add_numbers(&words, graph, c);
    words_add(&words, ": ");
    if (inter) add_net(tale->box, &words, rank_at(graph, c, 0), graph->inter[c].first, true);
    if (inter) words_add(&words, "%s", ring ? " > " : " <> ");
    for (int p = 0; p <= last; p++)
        words_add(&words, "%s%d", p ? " > " : "", rank_at(graph, c, p));
    if (inter && ring) words_add(&words, " > ");
    if (inter && ring)
        add_net(tale->box, &words, rank_at(graph, c, last), graph->inter[c].last, false);
    if (!inter && ring && last > 0) words_add(&words, " > %d", rank_at(graph, c, 0));
    if (nvls) words_add(&words, " heads it");
    struct steps steps = {0};
    if (!nvls) steps = count_steps(tale->box, graph, c, ring && !inter);
    add_steps(&words, &steps);
    tale_say(tale, "channel", "%s channel %s.", tt_graph_kind_name(graph->kind),
             words_text(&words));
    words_free(&words);
}

/* ---- graphs ---- */

static void explain_graph(const struct tale *tale, const struct tt_topo_domain *domain,
                          const struct tt_topo_graph *graph, const struct tt_topo_loads *loads)
{
    const char *name = tt_graph_kind_name(graph->kind);
    if (!graph->pattern) return;
    if (graph->nchannels == 0) {
        tale_say(tale, "graph", "%s: none was found.", name);
        return;
    }
    const char *noun = graph->nchannels == 1 ? "channel" : "channels";
    struct words words = {0};
    if (graph->ngpus > 1) {
        words_add(&words, " %.4g GB/s between GPUs, by paths up to %s (%s)",
                  (double)graph->bw_intra, tt_topo_way_name(graph->type_intra),
                  tale_meaning((int)graph->type_intra));
    }
    if (domain->inter) {
        words_add(&words, "%s %.4g GB/s by NICs, up to %s (%s)", words.bytes ? ", and" : "",
                  (double)graph->bw_inter, tt_topo_way_name(graph->type_inter),
                  tale_meaning((int)graph->type_inter));
    }
    tale_say(tale, "graph", "%s: %d %s%s%s.", name, graph->nchannels, noun,
             words.bytes ? " of" : "; a lone GPU needs no links", words_text(&words));
    words_free(&words);
    if (graph->ngpus > 1 || domain->inter) explain_limit(tale, graph, loads);
    if (domain->inter) explain_ends(tale, graph);
    explain_order(tale, domain, graph);
    for (int c = 0; c < graph->nchannels; c++) {
        if (!is_repeat(graph, c)) explain_channel(tale, graph, c, domain->inter);
    }
}

void explain_domain(const struct tale *tale, const struct tt_topo_domain *domain,
                    const struct tt_topo_loads loads[TT_GRAPH_COUNT_])
{
    for (int kind = 0; kind < TT_GRAPH_COUNT_; kind++)
        explain_graph(tale, domain, &domain->graph[kind], &loads[kind]);
}
