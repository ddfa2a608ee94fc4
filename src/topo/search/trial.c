/* One trial: channels are placed one after the other, GPU by GPU, each taking bandwidth from the
 * links on its way; a dead end gives back and tries the next candidate. Every visit of a GPU costs
 * a step, so a trial ends after a number of steps that does not depend on the machine that runs it,
 * and which solution is found depends on the order of candidates. That order is the reference's.
 * What is begun lies on a stack of its own, not the thread's: it gets as deep as there are steps
 * (channels x GPUs), and threads of a program may have little.
 * Source: spec topology, section 6. */
#include "trial.h"

#include "budget.h"
#include "candidates.h"
#include "graph.h"

#include "base/mem.h"

#include <stdlib.h>

enum { INDEX_STEPS = 1024 }; /* of the attempt in index order */

/* ---- the stack ---- */

/* First what is only to be taken back ... */
enum frame_kind {
    FRAME_CHANNEL, /* a channel was counted */
    FRAME_ENTER,   /* the way from `other` to position.gpu, and the GPU is in use */
    FRAME_TO_NET,  /* the way from position.gpu to the NIC `other` */
    FRAME_CLOSE,   /* the way from position.gpu to the first GPU, `other` */
    FRAME_HUB,     /* links between the hub and each GPU */
    FRAME_PORT,    /* bandwidth of the NIC `other` */
    FRAME_STEPS,   /* the index order has steps of its own; `left` are the others */
    /* ... then what goes on with its number k */
    FRAME_NEXT,       /* candidates after position.gpu */
    FRAME_NETS,       /* NICs to leave by from position.gpu */
    FRAME_BEGIN_NETS, /* NICs to begin at */
    FRAME_INSIDE,     /* GPUs to begin at */
    FRAME_CHAIN,      /* GPUs near the NIC `other` */
    FRAME_COUNT_,
};

struct tt_trial_frame {
    enum frame_kind kind;
    int k, count, left;
    size_t first; /* of its candidates on trial->next */
    bool done;    /* no further NIC */
    struct tt_topo_node *other;
    struct tt_trial_position position;
};

enum { FRAMES_AT_ONCE = 16 }; /* more than any frame pushes before it is looked at again */

static bool reserve_frames(struct tt_trial *trial)
{
    if (trial->depth + FRAMES_AT_ONCE <= trial->frame_room) return true;
    size_t room = 2 * trial->frame_room + 8 * FRAMES_AT_ONCE;
    struct tt_trial_frame *grown = realloc(trial->frames, room * sizeof(*grown));
    if (!grown) return false;
    trial->frames = grown;
    trial->frame_room = room;
    return true;
}

static void push(struct tt_trial *trial, struct tt_trial_frame frame)
{
    trial->frames[trial->depth++] = frame;
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

static void begin_channel(struct tt_trial *trial);

static void end_channel(struct tt_trial *trial)
{
    trial->at.nchannels++;
    push(trial, (struct tt_trial_frame){.kind = FRAME_CHANNEL});
    if (is_better(trial)) {
        tt_graph_copy(trial->best, &trial->at);
        trial->improved = true;
        if (trial->at.nchannels == trial->max_channels) trial->steps = -1;
    }
    if (trial->at.nchannels < trial->max_channels) begin_channel(trial);
}

/* ---- steps ---- */

static void advance(struct tt_trial *trial, struct tt_trial_position position);

static void close_ring(struct tt_trial *trial, const struct tt_trial_position *position)
{
    struct tt_topo_node *first =
        tt_trial_gpu_of_rank(trial, tt_trial_channel(trial, trial->at.nchannels)[0]);
    if (!tt_budget_take(trial, position->gpu, first, 1)) return;
    push(trial,
         (struct tt_trial_frame){.kind = FRAME_CLOSE, .other = first, .position = *position});
    struct tt_trial_position end = *position;
    end.at++;
    end.back_first = -1;
    advance(trial, end);
}

/* The channel is complete without further GPUs; that costs a step as well. */
static void finish(struct tt_trial *trial)
{
    struct tt_trial_position end = {.at = trial->at.ngpus, .back_net = -1, .back_first = -1};
    advance(trial, end);
}

/* ---- hubs: every GPU at once ---- */

struct hub_links { /* traffic between the hub and each GPU, one direction after the other */
    struct tt_topo_node *hub;  /* multicast: the NVSwitch; direct: the head */
    struct tt_topo_node *head; /* multicast: carries twice */
    float share;
};

static float share_of(const struct hub_links *links, const struct tt_topo_node *gpu)
{
    return gpu == links->head ? 2 * links->share : links->share;
}

/* Take for GPUs 0, 1, ... in one direction; returns how many could. */
static int take_links(struct tt_trial *trial, const struct hub_links *links, bool outwards)
{
    for (int g = 0; g < trial->at.ngpus; g++) {
        struct tt_topo_node *gpu = tt_trial_gpu(trial, g);
        float share = share_of(links, gpu);
        bool taken = outwards ? tt_budget_take(trial, links->hub, gpu, share)
                              : tt_budget_take(trial, gpu, links->hub, share);
        if (!taken) return g;
    }
    return trial->at.ngpus;
}

static void give_links(struct tt_trial *trial, const struct hub_links *links, bool outwards,
                       int count)
{
    for (int g = count - 1; g >= 0; g--) {
        struct tt_topo_node *gpu = tt_trial_gpu(trial, g);
        float share = -share_of(links, gpu);
        if (outwards) {
            (void)tt_budget_take(trial, links->hub, gpu, share);
        } else {
            (void)tt_budget_take(trial, gpu, links->hub, share);
        }
    }
}

static void fill_others(struct tt_trial *trial, const struct tt_topo_node *head)
{
    int *channel = tt_trial_channel(trial, trial->at.nchannels);
    int position = 1;
    for (int g = 0; g < trial->at.ngpus; g++) {
        if (tt_trial_gpu(trial, g) != head) channel[position++] = tt_trial_gpu(trial, g)->rank;
    }
}

static struct hub_links hub_links_of(const struct tt_trial *trial, struct tt_topo_node *gpu)
{
    int n = trial->at.ngpus;
    if (trial->at.pattern == TT_PATTERN_NVLS)
        return (struct hub_links){trial->system->list[TT_NODE_NVS].node[0], gpu, 1};
    return (struct hub_links){.hub = gpu, .share = n > 1 ? 1.0f / (float)(n - 1) : 1.0f};
}

static void place_hub(struct tt_trial *trial, const struct tt_trial_position *position)
{
    int n = trial->at.ngpus;
    struct hub_links links = hub_links_of(trial, position->gpu);
    int out = take_links(trial, &links, true);
    int in = out == n ? take_links(trial, &links, false) : 0;
    if (in == n) {
        push(trial, (struct tt_trial_frame){.kind = FRAME_HUB, .position = *position});
        fill_others(trial, position->gpu);
        finish(trial);
        return;
    }
    give_links(trial, &links, false, in);
    give_links(trial, &links, true, out);
}

/* Stand at a position. Pushes what is to be tried from there. */
static void advance(struct tt_trial *trial, struct tt_trial_position position)
{
    int n = trial->at.ngpus;
    if (trial->steps <= 0) return;
    trial->steps--;
    if (position.at == n || !position.gpu) {
        end_channel(trial);
        return;
    }
    tt_trial_channel(trial, trial->at.nchannels)[position.at] = position.gpu->rank;
    bool hub = trial->at.pattern == TT_PATTERN_NVLS || trial->at.pattern == TT_PATTERN_DIRECT;
    if (position.at == position.back_net) {
        push(trial, (struct tt_trial_frame){.kind = FRAME_NETS, .position = position});
    } else if (hub) {
        place_hub(trial, &position);
    } else if (position.at < n - 1) {
        struct tt_trial_frame next = {
            .kind = FRAME_NEXT, .position = position, .first = trial->next_count};
        next.count = tt_trial_push_next(trial, &position);
        push(trial, next);
    } else if (position.at == position.back_first) {
        close_ring(trial, &position);
    } else {
        finish(trial);
    }
}

/* Take the way to position.gpu, from a GPU, a NIC or nowhere (NULL), and go on from there. */
static void enter(struct tt_trial *trial, struct tt_topo_node *from,
                  struct tt_trial_position position)
{
    if (from && !tt_budget_take(trial, from, position.gpu, 1)) return;
    trial->used[position.gpu->index] ^= 1ull << trial->at.nchannels;
    push(trial, (struct tt_trial_frame){.kind = FRAME_ENTER, .other = from, .position = position});
    advance(trial, position);
}

static void go_on(struct tt_trial *trial, struct tt_trial_frame *frame)
{
    if (frame->k == frame->count) {
        trial->next_count = frame->first;
        trial->depth--;
        return;
    }
    struct tt_trial_position next = frame->position;
    next.gpu = tt_trial_gpu(trial, trial->next[frame->first + (size_t)frame->k++]);
    next.at++;
    enter(trial, frame->position.gpu, next);
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

static bool may_end_at(const struct tt_trial *trial, const struct tt_trial_position *position,
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
    bool second = pattern == TT_PATTERN_BALANCED && position->at > 0;
    return !second || net->id == trial->at.inter[c].last;
}

/* Balanced trees put half of what they send on each of their first two GPUs. */
static bool take_to_net(struct tt_trial *trial, const struct tt_trial_position *position,
                        struct tt_topo_node *net, float share)
{
    float bw = trial->at.bw_inter;
    if (trial->at.pattern == TT_PATTERN_BALANCED) trial->at.bw_inter /= 2;
    bool taken = tt_budget_take(trial, position->gpu, net, share);
    trial->at.bw_inter = bw;
    return taken;
}

static void leave_to_net(struct tt_trial *trial, struct tt_trial_frame *frame)
{
    const struct tt_net_lists *lists = &trial->nets;
    struct tt_trial_position position = frame->position;
    int row = position.gpu->index;
    if (frame->k == lists->count[row]) {
        trial->depth--;
        return;
    }
    struct tt_topo_node *net = lists->net[(size_t)row * (size_t)lists->width + (size_t)frame->k++];
    if (!may_end_at(trial, &position, net) || !take_to_net(trial, &position, net, 1)) return;
    trial->at.inter[trial->at.nchannels].last = net->id;
    push(trial, (struct tt_trial_frame){.kind = FRAME_TO_NET, .other = net, .position = position});
    bool again = trial->at.pattern == TT_PATTERN_BALANCED && position.at == 0;
    position.back_net = again ? 1 : -1;
    advance(trial, position);
}

/* ---- where channels begin ---- */

static struct tt_trial_position first_position(const struct tt_trial *trial,
                                               struct tt_topo_node *gpu, enum tt_trial_order order)
{
    int last = trial->at.ngpus - 1;
    struct tt_trial_position position = {
        .gpu = gpu, .order = order, .back_net = -1, .back_first = -1};
    if (trial->inter) position.back_net = 0;
    if (trial->at.pattern == TT_PATTERN_RING) {
        position.back_net = trial->inter ? last : -1;
        position.back_first = trial->inter ? -1 : last;
    } else if (trial->at.pattern == TT_PATTERN_SPLIT && trial->inter) {
        position.back_net = 1;
    }
    return position;
}

/* Index order gives a first solution; it has steps of its own. */
static void try_index_order(struct tt_trial *trial, struct tt_topo_node *net)
{
    push(trial, (struct tt_trial_frame){.kind = FRAME_STEPS, .left = trial->steps});
    trial->steps = INDEX_STEPS;
    enter(trial, net, first_position(trial, tt_trial_gpu(trial, 0), TT_ORDER_INDEX));
}

/* GPUs as near to the NIC as any, but for the one it prefers, which comes first. */
static int push_local_gpus(struct tt_trial *trial, const struct tt_topo_node *net)
{
    int *next = tt_trial_reserve(trial, trial->at.ngpus + 1);
    if (!next) return 0;
    int count = 0;
    float bw = 0;
    enum tt_path_type type = TT_PATH_DIS;
    if (net->local_gpu) *next++ = net->local_gpu->index;
    for (int g = 0; g < trial->at.ngpus; g++) {
        const struct tt_topo_path *path = tt_topo_path(net, tt_trial_gpu(trial, g));
        bool better = path->bw > bw || (path->bw == bw && path->type < type);
        if (better) {
            bw = path->bw;
            type = path->type;
            count = 0;
        }
        bool preferred = tt_trial_gpu(trial, g) == net->local_gpu;
        if (type != TT_PATH_DIS && path->bw == bw && path->type == type && !preferred)
            next[count++] = g;
    }
    if (net->local_gpu) count++;
    trial->next_count += (size_t)count;
    return count;
}

/* k: -2 the index order, -1 which GPUs are near, from 0 on those. */
static void try_chain(struct tt_trial *trial, struct tt_trial_frame *frame)
{
    struct tt_topo_node *net = frame->other;
    int k = frame->k++;
    if (k == -2) {
        bool first = trial->at.nchannels == 0 && trial->system->list[TT_NODE_NVS].count == 0;
        if (first) try_index_order(trial, net);
        return;
    }
    if (k == -1) {
        frame->first = trial->next_count;
        frame->count = push_local_gpus(trial, net);
        return;
    }
    if (k == frame->count) {
        trial->next_count = frame->first;
        trial->depth--;
        return;
    }
    struct tt_topo_node *gpu = tt_trial_gpu(trial, trial->next[frame->first + (size_t)k]);
    enter(trial, net, first_position(trial, gpu, TT_ORDER_FREE));
}

static bool is_head(const struct tt_trial *trial, const struct tt_topo_node *gpu)
{
    for (int c = 0; c < trial->at.nchannels; c++) {
        if (tt_trial_channel(trial, c)[0] == gpu->rank) return true;
    }
    return false;
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

/* Only one NIC whose GPU is not yet a head is tried. */
static bool may_head(const struct tt_trial *trial, const struct tt_topo_node *net, int nnets)
{
    return trial->at.nchannels < nnets && net->local_gpu && !is_head(trial, net->local_gpu);
}

static void begin_at(struct tt_trial *trial, struct tt_trial_frame *frame, struct tt_topo_node *net)
{
    int c = trial->at.nchannels;
    bool hub = trial->at.pattern == TT_PATTERN_NVLS || trial->at.pattern == TT_PATTERN_DIRECT;
    float bw = (float)(int)trial->at.bw_inter;
    if (!may_begin_at(trial, net, bw)) return;
    trial->at.inter[c].first = net->id;
    trial->start[c] = net;
    trial->at.latency_inter = net->latency;
    take_port(trial, net, bw);
    bool head = hub && may_head(trial, net, frame->count);
    frame->done = head;
    push(trial, (struct tt_trial_frame){.kind = FRAME_PORT, .other = net});
    if (!hub && trial->at.nchannels > 0 && trial->at.same_channels) {
        enter(trial, net, first_position(trial, tt_trial_replay(trial, 0), TT_ORDER_REPLAY));
    } else if (!hub) {
        push(trial, (struct tt_trial_frame){.kind = FRAME_CHAIN, .k = -2, .other = net});
    } else if (head) {
        enter(trial, net, first_position(trial, net->local_gpu, TT_ORDER_FREE));
    }
}

static void begin_at_nets(struct tt_trial *trial, struct tt_trial_frame *frame)
{
    const struct tt_net_lists *lists = &trial->nets;
    int all = lists->rows - 1;
    if (frame->k == frame->count || frame->done) {
        trial->depth--;
        return;
    }
    int at = (trial->at.nchannels + frame->k++) % frame->count;
    begin_at(trial, frame, lists->net[(size_t)all * (size_t)lists->width + (size_t)at]);
}

/* k: -1 the channel before this one, or index order; from 0 on every GPU. */
static void begin_inside(struct tt_trial *trial, struct tt_trial_frame *frame)
{
    bool first = trial->at.nchannels == 0;
    int k = frame->k++;
    if (k == frame->count) {
        trial->depth--;
    } else if (k >= 0) {
        enter(trial, NULL, first_position(trial, tt_trial_gpu(trial, k), TT_ORDER_FREE));
    } else if (first) {
        enter(trial, NULL, first_position(trial, tt_trial_gpu(trial, 0), TT_ORDER_INDEX));
    } else {
        enter(trial, NULL, first_position(trial, tt_trial_replay(trial, 0), TT_ORDER_REPLAY));
    }
}

static void begin_channel(struct tt_trial *trial)
{
    const struct tt_topo_graph *at = &trial->at;
    bool again = at->same_channels && at->nchannels > 0;
    if (trial->inter) {
        int count = trial->nets.count[trial->nets.rows - 1];
        push(trial, (struct tt_trial_frame){.kind = FRAME_BEGIN_NETS, .count = count});
    } else if (at->pattern == TT_PATTERN_NVLS) {
        struct tt_topo_node *head = tt_trial_gpu(trial, at->nchannels);
        enter(trial, NULL, first_position(trial, head, TT_ORDER_FREE));
    } else {
        int count = again ? 0 : at->ngpus;
        push(trial, (struct tt_trial_frame){.kind = FRAME_INSIDE, .k = -1, .count = count});
    }
}

/* ---- running ---- */

/* The frame is on top again: give back what it took. */
static void take_back(struct tt_trial *trial, const struct tt_trial_frame *frame)
{
    struct tt_topo_node *gpu = frame->position.gpu;
    struct hub_links links;
    trial->depth--;
    switch (frame->kind) {
    case FRAME_CHANNEL: trial->at.nchannels--; break;
    case FRAME_ENTER:
        trial->used[gpu->index] ^= 1ull << trial->at.nchannels;
        if (frame->other) (void)tt_budget_take(trial, frame->other, gpu, -1);
        break;
    case FRAME_TO_NET: (void)take_to_net(trial, &frame->position, frame->other, -1); break;
    case FRAME_CLOSE: (void)tt_budget_take(trial, gpu, frame->other, -1); break;
    case FRAME_HUB:
        links = hub_links_of(trial, gpu);
        give_links(trial, &links, false, trial->at.ngpus);
        give_links(trial, &links, true, trial->at.ngpus);
        break;
    case FRAME_PORT: take_port(trial, frame->other, -(float)(int)trial->at.bw_inter); break;
    default: /* the rest of the steps, unless nothing better is possible */
        if (trial->steps >= 0) trial->steps = frame->left;
    }
}

static void resume(struct tt_trial *trial, struct tt_trial_frame *frame)
{
    switch (frame->kind) {
    case FRAME_NEXT: go_on(trial, frame); break;
    case FRAME_NETS: leave_to_net(trial, frame); break;
    case FRAME_BEGIN_NETS: begin_at_nets(trial, frame); break;
    case FRAME_INSIDE: begin_inside(trial, frame); break;
    case FRAME_CHAIN: try_chain(trial, frame); break;
    default: take_back(trial, frame);
    }
}

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
    free(trial->frames);
}

void tt_trial_run(struct tt_trial *trial, int steps)
{
    trial->at.nchannels = 0;
    trial->steps = steps;
    trial->next_count = 0;
    if (trial->inter) {
        tt_net_lists_fill(&trial->nets, trial->system, trial->at.type_inter);
    }
    trial->depth = 0;
    if (reserve_frames(trial)) begin_channel(trial);
    while (trial->depth > 0 && reserve_frames(trial))
        resume(trial, &trial->frames[trial->depth - 1]);
    if (trial->depth == 0 && trial->frames) return;
    trial->out_of_memory = true;
    trial->steps = -1;
}
