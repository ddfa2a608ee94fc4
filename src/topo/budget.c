/* What links have left while channels are placed. All sums are rounded to a thousandth, as in the
 * reference: which channel still fits is decided by exact values.
 * Source: spec topology, section 6. */
#include "trial.h"

/* To the nearest thousandth, halves away from zero. */
static float rounded(float value)
{
    float thousands = value * 1000.0f;
    bool whole = thousands > 8388608.0f || thousands < -8388608.0f; /* floats beyond 2^23 are */
    if (whole) return thousands / 1000.0f;
    double half = thousands < 0 ? -0.5 : 0.5;
    return (float)(int)(thousands + half) / 1000.0f;
}

struct demand { /* GB/s on the links of a path */
    float other, pci;
};

/* Between PCI devices, Intel's root complex gives less than its links promise. */
static struct demand demand_of(const struct tt_topo_path *path, const struct tt_topo_node *from,
                               float bw)
{
    struct demand demand = {bw, bw};
    if (path->type != TT_WAY_PHB || from->type != TT_NODE_GPU) return demand;
    for (int k = 0; k < path->hops; k++) {
        const struct tt_topo_node *node = path->links[k]->peer;
        bool intel = node->type == TT_NODE_CPU && node->arch == TT_ARCH_X86 &&
                     node->vendor == TT_VENDOR_INTEL;
        if (intel) demand.pci = bw * 6 / 5;
    }
    return demand;
}

/* Acknowledgements cost the way back, too. */
static float demand_back(const struct tt_topo_link *link, const struct tt_topo_node *from, float bw)
{
    const struct tt_topo_node *peer = link->peer;
    float back = 0;
    if (peer->type == TT_NODE_DEV && peer->cc < 80 && from->type != TT_NODE_GPU) back += bw / 8;
    bool power = peer->type == TT_NODE_CPU && peer->arch == TT_ARCH_POWER;
    if (power && link->type == TT_WAY_NVL) back += bw;
    return back;
}

/* Take from the first `count` links of a path; returns how many had enough. */
static int walk(const struct tt_topo_path *path, const struct tt_topo_node *from, int count,
                float bw)
{
    struct demand demand = demand_of(path, from, bw);
    const struct tt_topo_node *node = from;
    for (int k = 0; k < count; k++) {
        struct tt_topo_link *link = path->links[k];
        float there = link->type == TT_WAY_PIX ? demand.pci : demand.other;
        float back = demand_back(link, from, there);
        struct tt_topo_link *reverse = back != 0 ? tt_topo_link_back(node, link) : NULL;
        if (link->budget < there || (reverse && reverse->budget < back)) return k;
        link->budget = rounded(link->budget - there);
        if (reverse) reverse->budget = rounded(reverse->budget - back);
        node = link->peer;
    }
    return count;
}

static bool inside(const struct tt_topo_node *node)
{
    return node->type == TT_NODE_GPU || node->type == TT_NODE_NVS;
}

static bool is_tree(enum tt_graph_pattern pattern)
{
    return pattern >= TT_PATTERN_BALANCED && pattern <= TT_PATTERN_TREE;
}

bool tt_budget_take(struct tt_trial *trial, struct tt_topo_node *from, struct tt_topo_node *to,
                    float share)
{
    struct tt_topo_graph *at = &trial->at;
    const struct tt_topo_path *path = tt_topo_path(from, to);
    bool intra = inside(from) && inside(to);
    enum tt_topo_way most = intra ? at->type_intra : at->type_inter;
    if (path->type >= TT_WAY_DIS) return false;
    if (share == 1 && path->type > most) return false;
    if (share == 1 && is_tree(at->pattern) && tt_topo_path(to, from)->type > most) return false;
    float bw = (intra ? at->bw_intra : at->bw_inter) * share;
    int done = walk(path, from, path->hops, bw);
    if (done < path->hops) {
        (void)walk(path, from, done, -bw);
        return false;
    }
    at->hops = (int)((float)at->hops + share * (float)path->hops);
    return true;
}
