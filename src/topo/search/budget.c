/* What links have left while channels are placed. All sums are rounded to a thousandth, as in the
 * reference: which channel still fits is decided by exact values.
 * Source: spec topology, section 6. */
#include "budget.h"

/* To the nearest thousandth, halves away from zero. */
static float rounded(float value)
{
    float thousands = value * 1000.0f;
    bool whole = thousands > 8388608.0f || thousands < -8388608.0f; /* floats beyond 2^23 are */
    if (whole) return thousands / 1000.0f;
    double half = thousands < 0 ? -0.5 : 0.5;
    return (float)(int)(thousands + half) / 1000.0f;
}

/* Between PCI devices, Intel's root complex gives less than its links promise. */
static float pci_demand(const struct tt_topo_path *path, const struct tt_topo_node *from, float bw)
{
    if (path->type != TT_PATH_PHB || from->type != TT_NODE_GPU) return bw;
    for (int k = 0; k < path->hops; k++) {
        if (path->links[k]->intel) return bw * 6 / 5;
    }
    return bw;
}

/* Take from the first `count` links of a path; returns how many had enough. */
static int walk(const struct tt_topo_path *path, const struct tt_topo_node *from, int count,
                float bw)
{
    float pci = pci_demand(path, from, bw);
    bool from_gpu = from->type == TT_NODE_GPU;
    for (int k = 0; k < count; k++) {
        struct tt_topo_link *link = path->links[k];
        struct tt_topo_link *reverse = link->back;
        float there = link->type == TT_PATH_PIX ? pci : bw;
        if (link->budget < there) return k;
        if (reverse) {
            float back = there * (from_gpu ? link->back_share : link->back_share_other);
            if (back != 0 && reverse->budget < back) return k;
            if (back != 0) reverse->budget = rounded(reverse->budget - back);
        }
        link->budget = rounded(link->budget - there);
    }
    return count;
}

/* What going over a link costs on the way back: acknowledgements of older GPUs, and the coherence
 * of Power's NVLinks. */
static void set_shares(const struct tt_topo_node *node, struct tt_topo_link *link)
{
    const struct tt_topo_node *peer = link->peer;
    bool power = peer->type == TT_NODE_CPU && peer->arch == TT_ARCH_POWER;
    bool old = peer->type == TT_NODE_DEV && peer->cc < 80;
    link->back_share = power && link->type == TT_PATH_NVL ? 1 : 0;
    link->back_share_other = link->back_share + (old ? 0.125f : 0);
    bool costs = link->back_share > 0 || link->back_share_other > 0;
    link->back = costs ? tt_topo_link_back(node, link) : NULL;
    link->intel =
        peer->type == TT_NODE_CPU && peer->arch == TT_ARCH_X86 && peer->vendor == TT_VENDOR_INTEL;
    link->budget = link->bw;
}

void tt_search_budgets(struct tt_topo_system *system)
{
    for (int type = 0; type < TT_NODE_COUNT_; type++) {
        for (int k = 0; k < system->list[type].count; k++) {
            struct tt_topo_node *node = system->list[type].node[k];
            node->budget = node->bw;
            for (int l = 0; l < node->nlinks; l++)
                set_shares(node, &node->links[l]);
        }
    }
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
    enum tt_path_type most = intra ? at->type_intra : at->type_inter;
    if (path->type >= TT_PATH_DIS) return false;
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

void tt_budget_charge(const struct tt_topo_node *from, const struct tt_topo_node *to, float bw)
{
    const struct tt_topo_path *path = tt_topo_path(from, to);
    float pci = pci_demand(path, from, bw);
    bool from_gpu = from->type == TT_NODE_GPU;
    for (int k = 0; k < path->hops && path->type < TT_PATH_NET; k++) {
        struct tt_topo_link *link = path->links[k];
        float there = link->type == TT_PATH_PIX ? pci : bw;
        float share = from_gpu ? link->back_share : link->back_share_other;
        link->budget -= there;
        if (link->back) link->back->budget -= there * share;
    }
}
