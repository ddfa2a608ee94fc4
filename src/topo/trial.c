/* One trial: channels are placed one after the other, GPU by GPU, each taking bandwidth from the
 * links on its way; a dead end gives back and tries the next candidate. Every visit of a GPU costs
 * a step, so a trial ends after a number of steps that does not depend on the machine that runs it,
 * and which solution is found depends on the order of candidates. That order is the reference's.
 * The recursion goes as deep as channels x GPUs, at most as deep as there are steps.
 * Source: spec topology, section 6. */
#include "trial.h"

#include "graph.h"

#include "base/mem.h"

#include <stdlib.h>

enum order { ORDER_FREE, ORDER_INDEX, ORDER_REPLAY };

enum { INDEX_STEPS = 1024 }; /* of the attempt in index order */

struct place { /* where a channel has come to */
    struct tt_topo_node *gpu;
    int at;         /* position of gpu */
    int back_net;   /* position from which the channel goes to a NIC; -1: none */
    int back_first; /* position from which it goes back to its first GPU; -1: none */
    enum order order;
};

static void begin_channel(struct tt_trial *trial);
static void advance(struct tt_trial *trial, struct place place);

static struct tt_topo_node *gpu_at(const struct tt_trial *trial, int index)
{
    return trial->system->list[TT_NODE_GPU].node[index];
}

static int *channel_of(const struct tt_trial *trial, int channel)
{
    return trial->at.intra + (size_t)channel * (size_t)trial->at.ngpus;
}

/* Of a rank that a channel holds, hence one of ours. */
static struct tt_topo_node *gpu_of_rank(const struct tt_trial *trial, int rank)
{
    int g = 0;
    while (g + 1 < trial->at.ngpus && gpu_at(trial, g)->rank != rank) {
        g++;
    }
    return gpu_at(trial, g);
}

/* What the channel before this one had at a position. */
static struct tt_topo_node *replay(const struct tt_trial *trial, int position)
{
    return gpu_of_rank(trial, channel_of(trial, trial->at.nchannels - 1)[position]);
}

/* ---- is it better? ---- */

static bool is_better(const struct tt_trial *trial)
{
    const struct tt_topo_graph *at = &trial->at;
    const struct tt_topo_graph *best = trial->best;
    if (at->nchannels < trial->min_channels) return false;
    if (at->pattern == TT_PATTERN_NVLS) {
        if (at->nchannels > best->nchannels && at->nchannels <= at->ngpus) return true;
        return (float)at->nchannels * at->bw_inter > (float)best->nchannels * best->bw_inter;
    }
    float ours = (float)at->nchannels * at->bw_intra;
    float theirs = (float)best->nchannels * best->bw_intra;
    if (ours != theirs) return ours > theirs;
    return at->pattern == best->pattern && at->cross_nic == best->cross_nic &&
           at->hops < best->hops;
}

static void end_channel(struct tt_trial *trial)
{
    trial->at.nchannels++;
    if (is_better(trial)) {
        tt_graph_copy(trial->best, &trial->at);
        trial->improved = true;
        if (trial->at.nchannels == trial->max_channels) trial->steps = -1;
    }
    if (trial->at.nchannels < trial->max_channels) begin_channel(trial);
    trial->at.nchannels--;
}

/* ---- next GPU ---- */

static int by_score(const void *left, const void *right)
{
    const struct tt_score *a = left;
    const struct tt_score *b = right;
    if (a->net_bw != b->net_bw) return b->net_bw > a->net_bw ? 1 : -1;
    if (a->pci_bw != b->pci_bw) return b->pci_bw > a->pci_bw ? 1 : -1;
    if (a->net_hops != b->net_hops) return a->net_hops > b->net_hops ? 1 : -1;
    if (a->bw != b->bw) return b->bw > a->bw ? 1 : -1;
    if (a->hops != b->hops) return a->hops > b->hops ? 1 : -1;
    return a->order > b->order ? 1 : -1;
}

/* Most nodes have few GPUs, in nearly the right order. */
static void sort(struct tt_score *scores, int count)
{
    if (count > 24) {
        qsort(scores, (size_t)count, sizeof(*scores), by_score);
        return;
    }
    for (int k = 1; k < count; k++) {
        struct tt_score moved = scores[k];
        int to = k;
        while (to > 0 && by_score(&scores[to - 1], &moved) > 0) {
            scores[to] = scores[to - 1];
            to--;
        }
        scores[to] = moved;
    }
}

/* Left on the device's PCI link, in the scarcer direction. */
static float pci_left(const struct tt_topo_node *dev)
{
    for (int k = 0; k < dev->nlinks; k++) {
        const struct tt_topo_link *link = &dev->links[k];
        if (link->type != TT_WAY_PIX) continue;
        const struct tt_topo_link *back = tt_topo_link_back(dev, link);
        return back && back->budget < link->budget ? back->budget : link->budget;
    }
    return -1;
}

static bool is_free(const struct tt_trial *trial, const struct tt_topo_node *from, int index)
{
    const struct tt_topo_node *gpu = gpu_at(trial, index);
    bool used = trial->used[index] >> trial->at.nchannels & 1;
    return gpu != from && !used && tt_topo_path(from, gpu)->hops > 0;
}

static void score_net(const struct tt_trial *trial, struct tt_score *score)
{
    struct tt_topo_node *net = trial->start[trial->at.nchannels];
    const struct tt_topo_node *gpu = gpu_at(trial, score->gpu);
    const struct tt_topo_path *path = tt_topo_path(net, gpu);
    score->net_bw = (int)path->bw;
    score->pci_bw = (int)pci_left(gpu->dev);
    score->net_hops = path->hops;
}

static int candidates(struct tt_trial *trial, const struct place *place)
{
    struct tt_score *scores = trial->scores;
    int n = trial->at.ngpus;
    int count = 0;
    for (int k = 1; k < n; k++) {
        int index = (place->gpu->index + k) % n;
        if (!is_free(trial, place->gpu, index)) continue;
        const struct tt_topo_path *path = tt_topo_path(place->gpu, gpu_at(trial, index));
        scores[count] =
            (struct tt_score){.bw = (int)path->bw, .hops = path->hops, .order = k, .gpu = index};
        if (place->back_net >= 0) score_net(trial, &scores[count]);
        count++;
    }
    sort(scores, count);
    return count;
}

static bool all_as_near(const struct tt_score *scores, int count)
{
    for (int k = 1; k < count; k++) {
        if (scores[k].bw != scores[0].bw || scores[k].hops != scores[0].hops) return false;
    }
    return true;
}

static int *reserve(struct tt_trial *trial, int count)
{
    size_t want = trial->next_count + (size_t)count;
    if (want > trial->next_room) {
        size_t room = 2 * want;
        int *grown = realloc(trial->next, room * sizeof(int));
        if (!grown) {
            trial->out_of_memory = true;
            trial->steps = -1;
            return NULL;
        }
        trial->next = grown;
        trial->next_room = room;
    }
    return trial->next + trial->next_count;
}

/* Push the candidates; returns how many. */
static int push_sorted(struct tt_trial *trial, const struct place *place)
{
    const struct tt_score *scores = trial->scores;
    int count = candidates(trial, place);
    int *next = reserve(trial, count);
    if (!next) return 0;
    bool backwards =
        place->back_net >= 0 && place->back_net != place->at + 1 && all_as_near(scores, count);
    for (int k = 0; k < count; k++)
        next[k] = scores[backwards ? count - 1 - k : k].gpu;
    trial->next_count += (size_t)count;
    return count;
}

/* Behind an NVSwitch every GPU is as near as any: neighbours by index, so that each talks to few.
 */
static int push_neighbours(struct tt_trial *trial, const struct place *place)
{
    int n = trial->at.ngpus;
    int after = (place->gpu->index + 1) % n;
    int before = (place->gpu->index + n - 1) % n;
    enum tt_graph_pattern pattern = trial->at.pattern;
    bool both =
        pattern == TT_PATTERN_RING || pattern == TT_PATTERN_SPLIT || pattern == TT_PATTERN_BALANCED;
    int wish[2] = {after, -1};
    if (both && before != after) {
        wish[0] = pattern == TT_PATTERN_RING ? before : after;
        wish[1] = pattern == TT_PATTERN_RING ? after : before;
    }
    int *next = reserve(trial, 2);
    int count = 0;
    for (int k = 0; next && k < 2; k++) {
        if (wish[k] >= 0 && is_free(trial, place->gpu, wish[k])) next[count++] = wish[k];
    }
    trial->next_count += (size_t)count;
    return count;
}

static int push_next(struct tt_trial *trial, const struct place *place)
{
    bool sorted = place->order == ORDER_FREE;
    if (sorted && trial->system->list[TT_NODE_NVS].count) return push_neighbours(trial, place);
    if (sorted) return push_sorted(trial, place);
    int *next = reserve(trial, 1);
    if (!next) return 0;
    next[0] = place->order == ORDER_INDEX ? place->at + 1 : replay(trial, place->at + 1)->index;
    trial->next_count++;
    return 1;
}

/* ---- steps ---- */

/* Take the way to place.gpu, from a GPU, a NIC or nowhere (NULL), and go on from there. */
static void enter(struct tt_trial *trial, struct tt_topo_node *from, struct place place)
{
    uint64_t bit = 1ull << trial->at.nchannels;
    if (from && !tt_budget_take(trial, from, place.gpu, 1)) return;
    trial->used[place.gpu->index] ^= bit;
    advance(trial, place);
    trial->used[place.gpu->index] ^= bit;
    if (from) (void)tt_budget_take(trial, from, place.gpu, -1);
}

static void go_on(struct tt_trial *trial, const struct place *place)
{
    size_t first = trial->next_count;
    int count = push_next(trial, place);
    for (int k = 0; k < count; k++) {
        struct place next = *place;
        next.gpu = gpu_at(trial, trial->next[first + (size_t)k]);
        next.at++;
        enter(trial, place->gpu, next);
    }
    trial->next_count = first;
}

static bool same_rail(const struct tt_trial *trial, const struct tt_topo_node *a,
                      const struct tt_topo_node *b)
{
    if (a->rail >= 0 && b->rail >= 0) return a->rail == b->rail;
    if (tt_topo_host(a) != tt_topo_host(b) && trial->system->env.rail_per_host) {
        return a->slot == b->slot && a->port == b->port;
    }
    return a->guid == b->guid && a->port == b->port;
}

static bool may_end_at(const struct tt_trial *trial, const struct place *place,
                       const struct tt_topo_node *net)
{
    int c = trial->at.nchannels;
    const struct tt_topo_node *start = trial->start[c];
    enum tt_graph_pattern pattern = trial->at.pattern;
    if (net->plane >= 0 && start->plane >= 0 && net->plane != start->plane) return false;
    if (pattern == TT_PATTERN_TREE && net != start) return false;
    if (pattern == TT_PATTERN_RING && trial->at.cross_nic == 2) {
        return c % 2 == 0 || net->id == trial->at.inter[c - 1].first;
    }
    if (trial->at.cross_nic == 0 && !same_rail(trial, start, net)) return false;
    bool second = pattern == TT_PATTERN_BALANCED && place->at > 0;
    return !second || net->id == trial->at.inter[c].last;
}

/* Balanced trees put half of what they send on each of their first two GPUs. */
static bool take_to_net(struct tt_trial *trial, const struct place *place, struct tt_topo_node *net,
                        float share)
{
    float bw = trial->at.bw_inter;
    if (trial->at.pattern == TT_PATTERN_BALANCED) trial->at.bw_inter /= 2;
    bool taken = tt_budget_take(trial, place->gpu, net, share);
    trial->at.bw_inter = bw;
    return taken;
}

static void leave_to_net(struct tt_trial *trial, const struct place *place)
{
    const struct tt_net_lists *lists = &trial->nets;
    int row = place->gpu->index;
    for (int k = 0; k < lists->count[row]; k++) {
        struct tt_topo_node *net = lists->net[(size_t)row * (size_t)lists->width + (size_t)k];
        if (!may_end_at(trial, place, net) || !take_to_net(trial, place, net, 1)) continue;
        trial->at.inter[trial->at.nchannels].last = net->id;
        struct place next = *place;
        bool again = trial->at.pattern == TT_PATTERN_BALANCED && place->at == 0;
        next.back_net = again ? 1 : -1;
        advance(trial, next);
        (void)take_to_net(trial, place, net, -1);
    }
}

static void close_ring(struct tt_trial *trial, const struct place *place)
{
    struct tt_topo_node *first = gpu_of_rank(trial, channel_of(trial, trial->at.nchannels)[0]);
    if (!tt_budget_take(trial, place->gpu, first, 1)) return;
    struct place end = *place;
    end.at++;
    end.back_first = -1;
    advance(trial, end);
    (void)tt_budget_take(trial, place->gpu, first, -1);
}

/* The channel is complete without further GPUs; that costs a step as well. */
static void finish(struct tt_trial *trial)
{
    struct place end = {.at = trial->at.ngpus, .back_net = -1, .back_first = -1};
    advance(trial, end);
}

/* ---- stars: every GPU at once ---- */

struct star { /* traffic between the hub and each GPU, one direction after the other */
    struct tt_topo_node *hub;  /* multicast: the NVSwitch; direct: the head */
    struct tt_topo_node *head; /* multicast: carries twice */
    float share;
};

static float share_of(const struct star *star, const struct tt_topo_node *gpu)
{
    return gpu == star->head ? 2 * star->share : star->share;
}

/* Take for GPUs 0, 1, ... in one direction; returns how many could. */
static int take_spokes(struct tt_trial *trial, const struct star *star, bool outwards)
{
    for (int g = 0; g < trial->at.ngpus; g++) {
        struct tt_topo_node *gpu = gpu_at(trial, g);
        float share = share_of(star, gpu);
        bool taken = outwards ? tt_budget_take(trial, star->hub, gpu, share)
                              : tt_budget_take(trial, gpu, star->hub, share);
        if (!taken) return g;
    }
    return trial->at.ngpus;
}

static void give_spokes(struct tt_trial *trial, const struct star *star, bool outwards, int count)
{
    for (int g = count - 1; g >= 0; g--) {
        struct tt_topo_node *gpu = gpu_at(trial, g);
        float share = -share_of(star, gpu);
        if (outwards) {
            (void)tt_budget_take(trial, star->hub, gpu, share);
        } else {
            (void)tt_budget_take(trial, gpu, star->hub, share);
        }
    }
}

static void fill_others(struct tt_trial *trial, const struct tt_topo_node *head)
{
    int *channel = channel_of(trial, trial->at.nchannels);
    int position = 1;
    for (int g = 0; g < trial->at.ngpus; g++) {
        if (gpu_at(trial, g) != head) channel[position++] = gpu_at(trial, g)->rank;
    }
}

static void place_star(struct tt_trial *trial, const struct place *place)
{
    bool multicast = trial->at.pattern == TT_PATTERN_NVLS;
    int n = trial->at.ngpus;
    struct star star = {.hub = place->gpu, .share = n > 1 ? 1.0f / (float)(n - 1) : 1.0f};
    if (multicast) {
        star.hub = trial->system->list[TT_NODE_NVS].node[0];
        star.head = place->gpu;
        star.share = 1;
    }
    int out = take_spokes(trial, &star, true);
    int in = out == n ? take_spokes(trial, &star, false) : 0;
    if (in == n) {
        fill_others(trial, place->gpu);
        finish(trial);
    }
    give_spokes(trial, &star, false, in);
    give_spokes(trial, &star, true, out);
}

static void advance(struct tt_trial *trial, struct place place)
{
    int n = trial->at.ngpus;
    if (trial->steps <= 0) return;
    trial->steps--;
    if (place.at == n || !place.gpu) {
        end_channel(trial);
        return;
    }
    channel_of(trial, trial->at.nchannels)[place.at] = place.gpu->rank;
    bool star = trial->at.pattern == TT_PATTERN_NVLS || trial->at.pattern == TT_PATTERN_DIRECT;
    if (place.at == place.back_net) {
        leave_to_net(trial, &place);
    } else if (star) {
        place_star(trial, &place);
    } else if (place.at < n - 1) {
        go_on(trial, &place);
    } else if (place.at == place.back_first) {
        close_ring(trial, &place);
    } else {
        finish(trial);
    }
}

/* ---- where channels begin ---- */

static struct place first_place(const struct tt_trial *trial, struct tt_topo_node *gpu,
                                enum order order)
{
    int last = trial->at.ngpus - 1;
    struct place place = {.gpu = gpu, .order = order, .back_net = -1, .back_first = -1};
    if (trial->inter) place.back_net = 0;
    if (trial->at.pattern == TT_PATTERN_RING) {
        place.back_net = trial->inter ? last : -1;
        place.back_first = trial->inter ? -1 : last;
    } else if (trial->at.pattern == TT_PATTERN_SPLIT && trial->inter) {
        place.back_net = 1;
    }
    return place;
}

/* Index order gives a first solution; it has steps of its own. */
static void try_index_order(struct tt_trial *trial, struct tt_topo_node *net)
{
    int steps = trial->steps;
    trial->steps = INDEX_STEPS;
    enter(trial, net, first_place(trial, gpu_at(trial, 0), ORDER_INDEX));
    if (trial->steps >= 0) trial->steps = steps;
}

static void try_local_gpus(struct tt_trial *trial, struct tt_topo_node *net)
{
    struct tt_topo_node *preferred = net->local_gpu;
    size_t first = trial->next_count;
    int *next = reserve(trial, trial->at.ngpus);
    if (!next) return;
    int count = 0;
    float bw = 0;
    enum tt_topo_way way = TT_WAY_DIS;
    for (int g = 0; g < trial->at.ngpus; g++) {
        const struct tt_topo_path *path = tt_topo_path(net, gpu_at(trial, g));
        bool better = path->bw > bw || (path->bw == bw && path->type < way);
        if (better) {
            bw = path->bw;
            way = path->type;
            count = 0;
        }
        if (way != TT_WAY_DIS && path->bw == bw && path->type == way) next[count++] = g;
    }
    trial->next_count += (size_t)count;
    if (preferred) enter(trial, net, first_place(trial, preferred, ORDER_FREE));
    for (int k = 0; k < count; k++) {
        struct tt_topo_node *gpu = gpu_at(trial, trial->next[first + (size_t)k]);
        if (gpu != preferred) enter(trial, net, first_place(trial, gpu, ORDER_FREE));
    }
    trial->next_count = first;
}

static void try_chain(struct tt_trial *trial, struct tt_topo_node *net)
{
    if (trial->at.nchannels > 0 && trial->at.same_channels) {
        enter(trial, net, first_place(trial, replay(trial, 0), ORDER_REPLAY));
        return;
    }
    bool first = trial->at.nchannels == 0 && trial->system->list[TT_NODE_NVS].count == 0;
    if (first) try_index_order(trial, net);
    try_local_gpus(trial, net);
}

static bool is_head(const struct tt_trial *trial, const struct tt_topo_node *gpu)
{
    for (int c = 0; c < trial->at.nchannels; c++) {
        if (channel_of(trial, c)[0] == gpu->rank) return true;
    }
    return false;
}

/* True when the NIC's GPU was tried as a head. */
static bool try_head(struct tt_trial *trial, struct tt_topo_node *net, int nnets)
{
    struct tt_topo_node *gpu = net->local_gpu;
    if (trial->at.nchannels >= nnets || !gpu || is_head(trial, gpu)) return false;
    enter(trial, net, first_place(trial, gpu, ORDER_FREE));
    return true;
}

static bool may_begin_at(const struct tt_trial *trial, const struct tt_topo_node *net, float bw)
{
    int c = trial->at.nchannels;
    if (trial->collnet && !net->coll) return false;
    if (net->budget < bw) return false;
    bool paired = trial->at.pattern == TT_PATTERN_RING && trial->at.cross_nic == 2 && c % 2 == 1;
    return !paired || net->id == trial->at.inter[c - 1].last;
}

/* Take from a port: all NICs on it share its bandwidth. */
static void take_port(struct tt_trial *trial, const struct tt_topo_node *net, float bw)
{
    const struct tt_topo_list *nets = &trial->system->list[TT_NODE_NET];
    for (int k = 0; k < nets->count; k++) {
        struct tt_topo_node *other = nets->node[k];
        if (other->guid == net->guid && other->port == net->port) other->budget -= bw;
    }
}

/* True when no further NIC is to be tried. */
static bool begin_at(struct tt_trial *trial, struct tt_topo_node *net, int nnets)
{
    int c = trial->at.nchannels;
    bool star = trial->at.pattern == TT_PATTERN_NVLS || trial->at.pattern == TT_PATTERN_DIRECT;
    float bw = (float)(int)trial->at.bw_inter;
    bool done = false;
    if (!may_begin_at(trial, net, bw)) return false;
    trial->at.inter[c].first = net->id;
    trial->start[c] = net;
    trial->at.latency_inter = net->latency;
    take_port(trial, net, bw);
    if (star) {
        done = try_head(trial, net, nnets);
    } else {
        try_chain(trial, net);
    }
    take_port(trial, net, -bw);
    return done;
}

static void begin_at_nets(struct tt_trial *trial)
{
    const struct tt_net_lists *lists = &trial->nets;
    int all = lists->rows - 1;
    int count = lists->count[all];
    int channels = trial->at.nchannels;
    bool done = false;
    for (int k = 0; k < count && !done; k++) {
        size_t cell = (size_t)all * (size_t)lists->width + (size_t)((channels + k) % count);
        done = begin_at(trial, lists->net[cell], count);
    }
}

static void begin_inside(struct tt_trial *trial)
{
    bool first = trial->at.nchannels == 0;
    if (trial->at.pattern == TT_PATTERN_NVLS) {
        struct tt_topo_node *head = gpu_at(trial, trial->at.nchannels);
        enter(trial, NULL, first_place(trial, head, ORDER_FREE));
        return;
    }
    struct tt_topo_node *start = first ? gpu_at(trial, 0) : replay(trial, 0);
    enter(trial, NULL, first_place(trial, start, first ? ORDER_INDEX : ORDER_REPLAY));
    if (trial->at.same_channels && !first) return;
    for (int g = 0; g < trial->at.ngpus; g++)
        enter(trial, NULL, first_place(trial, gpu_at(trial, g), ORDER_FREE));
}

static void begin_channel(struct tt_trial *trial)
{
    if (trial->inter) {
        begin_at_nets(trial);
    } else {
        begin_inside(trial);
    }
}

/* ---- running ---- */

bool tt_trial_init(struct tt_trial *trial, struct tt_topo_system *system,
                   struct tt_topo_graph *graph)
{
    *trial = (struct tt_trial){.system = system, .best = graph};
    bool done = tt_graph_init(&trial->at, graph->kind, graph->ngpus);
    if (done) tt_graph_copy(&trial->at, graph);
    trial->used = tt_calloc((size_t)graph->ngpus, sizeof(uint64_t));
    trial->scores = tt_calloc((size_t)graph->ngpus, sizeof(struct tt_score));
    return tt_net_lists_init(&trial->nets, system) && done && trial->used && trial->scores;
}

void tt_trial_fini(struct tt_trial *trial)
{
    tt_graph_fini(&trial->at);
    tt_net_lists_fini(&trial->nets);
    free(trial->used);
    free(trial->next);
    free(trial->scores);
}

void tt_trial_run(struct tt_trial *trial, int steps)
{
    trial->at.nchannels = 0;
    trial->steps = steps;
    trial->next_count = 0;
    if (trial->inter) {
        tt_net_lists_fill(&trial->nets, trial->system, trial->at.type_inter);
    }
    begin_channel(trial);
}
