/* Where a channel may go next: GPUs that it has not been to, the most promising first. Which
 * solution a search finds first depends on this order, which is the reference's.
 * Source: spec topology, section 6. */
#include "candidates.h"

#include <stdlib.h>

struct tt_topo_node *tt_trial_gpu_of_rank(const struct tt_trial *trial, int rank)
{
    int g = 0;
    while (g + 1 < trial->at.ngpus && tt_trial_gpu(trial, g)->rank != rank) {
        g++;
    }
    return tt_trial_gpu(trial, g);
}

struct tt_topo_node *tt_trial_replay(const struct tt_trial *trial, int position)
{
    return tt_trial_gpu_of_rank(trial, tt_trial_channel(trial, trial->at.nchannels - 1)[position]);
}

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
        if (link->type != TT_PATH_PIX) continue;
        const struct tt_topo_link *back = tt_topo_link_back(dev, link);
        return back && back->budget < link->budget ? back->budget : link->budget;
    }
    return -1;
}

static bool is_free(const struct tt_trial *trial, const struct tt_topo_node *from, int index)
{
    const struct tt_topo_node *gpu = tt_trial_gpu(trial, index);
    bool used = trial->used[index] >> trial->at.nchannels & 1;
    return gpu != from && !used && tt_topo_path(from, gpu)->hops > 0;
}

static void score_net(const struct tt_trial *trial, struct tt_score *score)
{
    struct tt_topo_node *net = trial->start[trial->at.nchannels];
    const struct tt_topo_node *gpu = tt_trial_gpu(trial, score->gpu);
    const struct tt_topo_path *path = tt_topo_path(net, gpu);
    score->net_bw = (int)path->bw;
    score->pci_bw = (int)pci_left(gpu->dev);
    score->net_hops = path->hops;
}

static int candidates(struct tt_trial *trial, const struct tt_trial_position *position)
{
    struct tt_score *scores = trial->scores;
    int n = trial->at.ngpus;
    int count = 0;
    for (int k = 1; k < n; k++) {
        int index = (position->gpu->index + k) % n;
        if (!is_free(trial, position->gpu, index)) continue;
        const struct tt_topo_path *path = tt_topo_path(position->gpu, tt_trial_gpu(trial, index));
        scores[count] =
            (struct tt_score){.bw = (int)path->bw, .hops = path->hops, .order = k, .gpu = index};
        if (position->back_net >= 0) score_net(trial, &scores[count]);
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

int *tt_trial_reserve(struct tt_trial *trial, int count)
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
static int push_sorted(struct tt_trial *trial, const struct tt_trial_position *position)
{
    const struct tt_score *scores = trial->scores;
    int count = candidates(trial, position);
    int *next = tt_trial_reserve(trial, count);
    if (!next) return 0;
    bool backwards = position->back_net >= 0 && position->back_net != position->at + 1 &&
                     all_as_near(scores, count);
    for (int k = 0; k < count; k++)
        next[k] = scores[backwards ? count - 1 - k : k].gpu;
    trial->next_count += (size_t)count;
    return count;
}

/* Behind an NVSwitch every GPU is as near as any: neighbours by index, so that each talks to few.
 */
static int push_neighbours(struct tt_trial *trial, const struct tt_trial_position *position)
{
    int n = trial->at.ngpus;
    int after = (position->gpu->index + 1) % n;
    int before = (position->gpu->index + n - 1) % n;
    enum tt_graph_pattern pattern = trial->at.pattern;
    bool both =
        pattern == TT_PATTERN_RING || pattern == TT_PATTERN_SPLIT || pattern == TT_PATTERN_BALANCED;
    int preferred[2] = {after, -1};
    if (both && before != after) {
        preferred[0] = pattern == TT_PATTERN_RING ? before : after;
        preferred[1] = pattern == TT_PATTERN_RING ? after : before;
    }
    int *next = tt_trial_reserve(trial, 2);
    int count = 0;
    for (int k = 0; next && k < 2; k++) {
        if (preferred[k] >= 0 && is_free(trial, position->gpu, preferred[k]))
            next[count++] = preferred[k];
    }
    trial->next_count += (size_t)count;
    return count;
}

int tt_trial_push_next(struct tt_trial *trial, const struct tt_trial_position *position)
{
    bool sorted = position->order == TT_ORDER_FREE;
    if (sorted && trial->system->list[TT_NODE_NVS].count) return push_neighbours(trial, position);
    if (sorted) return push_sorted(trial, position);
    int *next = tt_trial_reserve(trial, 1);
    if (!next) return 0;
    next[0] = position->order == TT_ORDER_INDEX ? position->at + 1
                                                : tt_trial_replay(trial, position->at + 1)->index;
    trial->next_count++;
    return 1;
}
