/* Search for channels: trials at falling demands until one succeeds, then at rising speeds. What is
 * tried, and in which order, is the reference's, because the first solution found is the result.
 * Source: spec topology, section 5. */
#include "search.h"

#include "graph.h"
#include "trial.h"

#include "base/error.h"
#include "base/mem.h"
#include "topo/graph/access.h"

#include <stdlib.h>

enum {
    SAME_STEPS = 256,      /* of a trial with all channels alike */
    FREE_STEPS = 16384,    /* of any other */
    TOTAL_STEPS = 1 << 19, /* of all, once there is a solution */
};

struct failed_trial { /* a trial without a result: what made it so, and the steps it left */
    enum tt_graph_pattern pattern;
    int same_channels, cross_nic, speed;
    int intra, inter; /* widest types of paths that were allowed and exist */
    int steps;
};

struct search {
    struct tt_topo_system *system;
    const struct tt_search_request *request;
    struct tt_topo_graph *best;
    struct tt_trial trial;
    const float *speeds; /* GB/s of a channel, falling */
    int nspeeds, speed;
    float max_bw, total_bw;
    int cc, ngpus;
    int cross_nic, same_channels; /* values to begin with */
    enum tt_path_type least_intra, most_intra, least_inter, most_inter;
    int steps; /* left of all */

    bool seen_intra[TT_PATH_COUNT_]; /* types of paths that there are */
    bool seen_inter[TT_PATH_COUNT_];
    struct failed_trial *failed; /* owned; they found nothing better than what there still is */
    size_t nfailed, failed_room;
};

/* ---- limits ---- */

static float larger(float a, float b)
{
    return a > b ? a : b;
}

static float largest_path(const struct tt_topo_node *dev, const struct tt_topo_list *to)
{
    float bw = 0;
    for (int k = 0; k < to->count; k++) {
        const struct tt_topo_path *path = tt_topo_path(dev, to->node[k]);
        if (path->hops > 0) bw = larger(bw, path->bw);
    }
    return bw;
}

static float all_links(const struct tt_topo_node *dev)
{
    float nvlink = 0;
    float pci = 0;
    for (int k = 0; k < dev->nlinks; k++) {
        if (dev->links[k].type == TT_PATH_NVL) nvlink += dev->links[k].bw;
        if (dev->links[k].type == TT_PATH_PIX) pci = dev->links[k].bw;
    }
    return larger(nvlink, pci);
}

struct tt_search_limits tt_search_limits(const struct tt_topo_system *system, bool inter)
{
    const struct tt_topo_list *devs = &system->list[TT_NODE_DEV];
    const struct tt_topo_list *to = inter ? &system->list[TT_NODE_NET] : devs;
    struct tt_search_limits limits = {0, 0};
    if (system->list[TT_NODE_GPU].count == 1 && !inter) {
        return (struct tt_search_limits){TT_TOPO_LOC_BW, TT_TOPO_LOC_BW};
    }
    for (int k = 0; k < devs->count; k++) {
        limits.max_bw = larger(limits.max_bw, largest_path(devs->node[k], to));
        limits.total_bw = larger(limits.total_bw, all_links(devs->node[k]));
    }
    return limits;
}

/* ---- speeds ---- */

static const float intra_volta[] = {40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3};
static const float intra_hopper[] = {60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3};
static const float intra_blackwell[] = {90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18};
static const float inter_volta[] = {48, 30, 28, 24, 20, 18,   15,   12,    10,   9,
                                    7,  6,  5,  4,  3,  2.4f, 1.2f, 0.24f, 0.12f};
static const float inter_hopper[] = {48, 45, 42, 40, 30,   24,   22,    20,   17.5f,
                                     15, 12, 6,  3,  2.4f, 1.2f, 0.24f, 0.12f};
static const float inter_blackwell[] = {96, 86,    80, 48, 45.1f, 42, 40,   30,   24,    22,
                                        20, 17.5f, 15, 12, 6,     3,  2.4f, 1.2f, 0.24f, 0.12f};

struct speed_list {
    const float *speed;
    int count;
};

static struct speed_list speeds_for(int cc, bool inter)
{
    static const struct speed_list lists[2][3] = {
        {{intra_volta, TT_LEN(intra_volta)},
         {intra_hopper, TT_LEN(intra_hopper)},
         {intra_blackwell, TT_LEN(intra_blackwell)}},
        {{inter_volta, TT_LEN(inter_volta)},
         {inter_hopper, TT_LEN(inter_hopper)},
         {inter_blackwell, TT_LEN(inter_blackwell)}},
    };
    int generation = cc >= 100 ? 2 : cc >= 90 ? 1 : 0;
    return lists[inter][generation];
}

static int least_cc(const struct tt_topo_system *system)
{
    const struct tt_topo_list *devs = &system->list[TT_NODE_DEV];
    int cc = devs->count ? devs->node[0]->cc : 0;
    for (int k = 1; k < devs->count; k++) {
        if (devs->node[k]->cc < cc) cc = devs->node[k]->cc;
    }
    return cc;
}

/* ---- setting up ---- */

/* Do NVLinks split the GPUs into exactly two groups (not counting single ones)? */
static bool two_islands(const struct tt_topo_system *system)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    int island[TT_TOPO_NODES] = {0};
    int members[TT_TOPO_NODES] = {0};
    int count = 0;
    for (int g = 0; g < gpus->count; g++)
        island[g] = g;
    for (int g = 0; g < gpus->count; g++) {
        for (int p = g + 1; p < gpus->count; p++) {
            bool near = tt_topo_path(gpus->node[g], gpus->node[p])->type == TT_PATH_NVL;
            if (near) island[p] = island[g];
        }
    }
    for (int g = 0; g < gpus->count; g++)
        members[island[g]]++;
    for (int g = 0; g < gpus->count; g++)
        count += members[g] > 1;
    return count == 2;
}

struct range {
    enum tt_path_type least, most;
};

/* Types of the ways from GPUs to other GPUs, or to NICs. */
static struct range types_to(const struct tt_topo_system *system, enum tt_topo_type to)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    const struct tt_topo_list *others = &system->list[to];
    struct range range = {TT_PATH_DIS, TT_PATH_LOC};
    for (int g = 0; g < gpus->count; g++) {
        for (int k = 0; k < others->count; k++) {
            enum tt_path_type type = tt_topo_path(gpus->node[g], others->node[k])->type;
            if (gpus->node[g] == others->node[k]) continue;
            if (type < range.least) range.least = type;
            if (type > range.most) range.most = type;
        }
    }
    return range;
}

static void set_types(struct search *search)
{
    const struct tt_topo_system *system = search->system;
    search->least_intra = TT_PATH_LOC;
    search->most_intra = TT_PATH_SYS;
    search->least_inter = TT_PATH_PIX;
    search->most_inter = TT_PATH_SYS;
    if (search->ngpus > 1) {
        struct range range = types_to(system, TT_NODE_GPU);
        search->least_intra = range.least < TT_PATH_SYS ? range.least : TT_PATH_SYS;
        search->most_intra = range.most;
    }
    if (!search->request->inter || system->list[TT_NODE_NET].count == 0) return;
    struct range range = types_to(system, TT_NODE_NET);
    search->least_inter = range.least;
    search->most_inter = search->most_intra = range.most;
    if (search->cc < 90) search->most_inter = TT_PATH_SYS;
}

static void see(const struct tt_topo_system *system, enum tt_topo_type from, enum tt_topo_type to,
                bool *seen)
{
    for (int g = 0; g < system->list[from].count; g++) {
        const struct tt_topo_path *paths = system->list[from].node[g]->paths[to];
        for (int k = 0; k < system->list[to].count; k++)
            seen[paths[k].type] = true;
    }
}

struct bounds { /* of the number of channels */
    int least, most;
};

static struct bounds bounds_of(const struct search *search)
{
    const struct tt_search_request *request = search->request;
    int n = search->ngpus;
    int limit = n < 32 ? n : 32;
    switch (request->kind) {
    case TT_GRAPH_RING: return (struct bounds){two_islands(search->system) ? 2 : 1, 32};
    case TT_GRAPH_NVLS: return (struct bounds){request->inter ? 1 : limit, limit};
    case TT_GRAPH_DIRECT: return (struct bounds){1, n < 8 ? n : 8};
    default: return (struct bounds){request->ring_channels, request->ring_channels};
    }
}

static const enum tt_graph_pattern patterns[TT_GRAPH_COUNT_] = {
    [TT_GRAPH_RING] = TT_PATTERN_RING,     [TT_GRAPH_TREE] = TT_PATTERN_BALANCED,
    [TT_GRAPH_CHAIN] = TT_PATTERN_TREE,    [TT_GRAPH_NVLS] = TT_PATTERN_NVLS,
    [TT_GRAPH_DIRECT] = TT_PATTERN_DIRECT,
};

static enum tt_graph_pattern pattern_of(const struct search *search)
{
    enum tt_graph_pattern pattern = patterns[search->request->kind];
    return search->ngpus == 1 && pattern != TT_PATTERN_RING ? TT_PATTERN_TREE : pattern;
}

static bool crosses(enum tt_graph_pattern pattern)
{
    return pattern == TT_PATTERN_RING || pattern == TT_PATTERN_BALANCED ||
           pattern == TT_PATTERN_SPLIT;
}

static void set_speed(struct search *search)
{
    search->trial.at.bw_intra = search->trial.at.bw_inter = search->speeds[search->speed];
}

/* Everything but the trial itself. */
static void set_up(struct search *search)
{
    const struct tt_topo_system *system = search->system;
    const struct tt_search_request *request = search->request;
    struct speed_list speeds = speeds_for(search->cc, request->inter);
    struct tt_topo_graph *best = search->best;
    int ndevs = system->list[TT_NODE_DEV].count;
    bool choice = system->list[TT_NODE_NET].count > 1 && crosses(patterns[request->kind]);
    search->cross_nic = choice ? system->env.cross_nic : 0; /* also of trees of a single GPU */
    best->pattern = pattern_of(search);
    search->same_channels = request->kind != TT_GRAPH_NVLS;
    set_types(search);
    see(system, TT_NODE_GPU, TT_NODE_GPU, search->seen_intra);
    see(system, TT_NODE_GPU, TT_NODE_NVS, search->seen_intra);
    see(system, TT_NODE_NVS, TT_NODE_GPU, search->seen_intra);
    see(system, TT_NODE_GPU, TT_NODE_NET, search->seen_inter);
    see(system, TT_NODE_NET, TT_NODE_GPU, search->seen_inter);
    best->cross_nic = search->cross_nic == 1;
    best->same_channels = search->same_channels;
    best->type_intra = search->least_intra;
    best->type_inter = search->least_inter;
    search->speeds = speeds.speed;
    search->nspeeds = speeds.count;
    search->max_bw = request->limits.max_bw;
    search->total_bw = request->limits.total_bw;
    if (ndevs > 1 && best->pattern != TT_PATTERN_RING) {
        search->total_bw = (float)(search->total_bw * (ndevs * 1.0 / (ndevs - 1)));
    }
    search->steps = TOTAL_STEPS;
}

static void first_speed(struct search *search)
{
    float channels = (float)search->trial.min_channels;
    while (search->speed < search->nspeeds - 1 &&
           (search->speeds[search->speed] > search->max_bw ||
            search->speeds[search->speed] * channels > search->total_bw)) {
        search->speed++;
    }
    set_speed(search);
}

/* ---- first pass: ask for less until there is a solution ---- */

static bool vary_sameness(struct search *search)
{
    struct tt_topo_graph *at = &search->trial.at;
    const struct tt_topo_list *cpus = &search->system->list[TT_NODE_CPU];
    bool amd =
        cpus->count && cpus->node[0]->arch == TT_ARCH_X86 && cpus->node[0]->vendor == TT_VENDOR_AMD;
    bool useless = amd && at->type_intra == TT_PATH_SYS;
    if (at->same_channels == 1 && !useless) {
        at->same_channels = 0;
        return true;
    }
    at->same_channels = search->same_channels;
    return false;
}

static bool vary_pattern(struct search *search)
{
    struct tt_topo_graph *at = &search->trial.at;
    if (search->cc >= 90 && at->pattern == TT_PATTERN_BALANCED) {
        at->pattern = TT_PATTERN_TREE;
        return true;
    }
    at->pattern = search->best->pattern;
    return false;
}

static bool vary_intra(struct search *search)
{
    struct tt_topo_graph *at = &search->trial.at;
    const struct tt_topo_graph *best = search->best;
    enum tt_path_type most = search->request->inter ? at->type_inter : search->most_intra;
    bool useful = best->nchannels == 0 || at->type_intra < best->type_intra;
    if (at->type_intra < most && useful && at->type_intra + 1 < TT_PATH_DIS) {
        at->type_intra++;
        return true;
    }
    at->type_intra = search->least_intra;
    return false;
}

static bool vary_inter(struct search *search)
{
    struct tt_topo_graph *at = &search->trial.at;
    const struct tt_topo_graph *best = search->best;
    bool useful =
        best->nchannels == 0 || at->type_inter < best->type_inter || at->type_inter < TT_PATH_PXN;
    if (search->request->inter && at->type_inter < search->most_inter && useful &&
        at->type_inter + 1 < TT_PATH_DIS) {
        at->type_inter++;
        return true;
    }
    at->type_inter = search->least_inter;
    return false;
}

static bool vary_cross(struct search *search)
{
    struct tt_topo_graph *at = &search->trial.at;
    enum tt_graph_pattern pattern = search->best->pattern;
    bool useful = pattern == TT_PATTERN_RING || pattern == TT_PATTERN_BALANCED;
    if (search->cross_nic == 2 && at->cross_nic == 0 && useful) {
        at->cross_nic = 2;
        return true;
    }
    at->cross_nic = search->cross_nic == 1;
    return false;
}

static bool vary_speed(struct search *search)
{
    const struct tt_topo_graph *best = search->best;
    if (search->speed + 1 >= search->nspeeds) return false;
    float next = search->speeds[search->speed + 1];
    if (best->nchannels && next / best->bw_inter <= 0.49) return false;
    search->speed++;
    set_speed(search);
    return true;
}

/* Change one demand; those before it begin anew. False: nothing is left to be tried. */
static bool vary(struct search *search)
{
    if (vary_sameness(search)) return true;
    search->steps += search->trial.steps; /* the last trial's rest */
    if (search->steps < 0 && search->best->nchannels) return false;
    return vary_pattern(search) || vary_intra(search) || vary_inter(search) || vary_cross(search) ||
           vary_speed(search);
}

/* Run a trial. True: what there is now cannot be improved at this speed. */
static bool attempt(struct search *search)
{
    int steps = search->trial.at.same_channels ? SAME_STEPS : FREE_STEPS;
    search->steps -= steps;
    tt_trial_run(&search->trial, steps);
    const struct tt_topo_graph *best = search->best;
    return search->trial.steps == -1 || (float)best->nchannels * best->bw_inter >= search->total_bw;
}

/* ---- failed trials ---- */

/* Raising a limit to a type of path that the machine does not have changes nothing: the trial
 * would go as the one before it went. Many do, so what found nothing is remembered until something
 * better is found. */

static int widest(const bool *seen, enum tt_path_type limit)
{
    int type = (int)limit;
    while (type > 0 && !seen[type]) {
        type--;
    }
    return type;
}

static struct failed_trial key_of(const struct search *search)
{
    const struct tt_topo_graph *at = &search->trial.at;
    return (struct failed_trial){
        .pattern = at->pattern,
        .same_channels = at->same_channels,
        .cross_nic = at->cross_nic,
        .speed = search->speed,
        .intra = widest(search->seen_intra, at->type_intra),
        .inter = widest(search->seen_inter, at->type_inter),
    };
}

static const struct failed_trial *find_failed(const struct search *search,
                                              const struct failed_trial *key)
{
    for (size_t k = 0; k < search->nfailed; k++) {
        const struct failed_trial *failed = &search->failed[k];
        bool same = failed->pattern == key->pattern && failed->speed == key->speed &&
                    failed->same_channels == key->same_channels &&
                    failed->cross_nic == key->cross_nic && failed->intra == key->intra &&
                    failed->inter == key->inter;
        if (same) return failed;
    }
    return NULL;
}

static void remember(struct search *search, struct failed_trial failed)
{
    if (search->nfailed == search->failed_room) {
        size_t room = 2 * search->failed_room + 64;
        struct failed_trial *grown = realloc(search->failed, room * sizeof(*grown));
        if (!grown) return; /* the trial is run again, then */
        search->failed = grown;
        search->failed_room = room;
    }
    search->failed[search->nfailed++] = failed;
}

static bool attempt_once(struct search *search)
{
    struct failed_trial key = key_of(search);
    const struct failed_trial *failed = find_failed(search, &key);
    if (failed) {
        search->steps -= search->trial.at.same_channels ? SAME_STEPS : FREE_STEPS;
        search->trial.steps = failed->steps;
        return false;
    }
    search->trial.improved = false;
    bool done = attempt(search);
    key.steps = search->trial.steps;
    if (search->trial.improved) {
        search->nfailed = 0;
    } else {
        remember(search, key);
    }
    return done;
}

/* ---- second pass: more channels, then more speed ---- */

/* Channels that are fast are cut in two, so that more of the GPU works on them. */
static void duplicate(const struct search *search)
{
    struct tt_topo_graph *best = search->best;
    int n = best->nchannels;
    if (n == 0 || best->pattern == TT_PATTERN_NVLS || best->bw_intra < 25) return;
    if (search->cc > 80 && best->bw_intra < 50 && n > 4) return;
    int more = 2 * n < search->trial.max_channels ? 2 * n : search->trial.max_channels;
    for (int c = n; c < more; c++)
        tt_graph_copy_channel(best, c, c - n);
    int parts = (more + n - 1) / n;
    best->bw_intra /= (float)parts;
    best->bw_inter /= (float)parts;
    best->nchannels = more;
}

static bool raise_speed(struct search *search)
{
    struct tt_topo_graph *at = &search->trial.at;
    const struct tt_topo_graph *best = search->best;
    if (search->trial.steps == 0 || search->speed == 0) return false;
    float next = search->speeds[search->speed - 1];
    if (best->pattern == TT_PATTERN_RING) {
        at->bw_intra = at->bw_inter = next;
    } else if (best->pattern == TT_PATTERN_NVLS && at->bw_inter == best->bw_inter &&
               at->bw_inter < at->bw_intra * 2) {
        search->trial.min_channels = search->trial.max_channels = best->nchannels;
        at->bw_inter = next;
    } else if (at->bw_intra == best->bw_intra && at->bw_intra < at->bw_inter * 2) {
        at->bw_intra = next;
    } else {
        return false;
    }
    search->speed--;
    return true;
}

static void second_pass(struct search *search)
{
    struct tt_trial *trial = &search->trial;
    duplicate(search);
    tt_graph_copy(&trial->at, search->best);
    search->speed = 0;
    while (search->speed < search->nspeeds - 1 &&
           search->speeds[search->speed] > search->best->bw_inter) {
        search->speed++;
    }
    set_speed(search);
    trial->min_channels = search->best->nchannels;
    trial->steps = -1;
    while (raise_speed(search)) {
        (void)attempt(search);
    }
}

/* ---- result ---- */

static uint64_t net_id(const struct tt_topo_system *system, const struct tt_topo_node *gpu)
{
    const struct tt_topo_node *net = tt_topo_net_of(system, gpu, 0);
    return net ? net->id : TT_NET_NONE;
}

/* One slow channel in index order, so that there is a way at all. */
static void fall_back(const struct search *search)
{
    struct tt_topo_graph *best = search->best;
    const struct tt_topo_list *gpus = &search->system->list[TT_NODE_GPU];
    bool nets = search->system->list[TT_NODE_NET].count > 0;
    for (int g = 0; g < gpus->count; g++)
        best->intra[g] = gpus->node[g]->rank;
    best->inter[0].first = net_id(search->system, gpus->node[0]);
    best->inter[0].last = net_id(search->system, gpus->node[gpus->count - 1]);
    best->nchannels = 1;
    best->bw_intra = 0.1f;
    best->type_intra = TT_PATH_SYS;
    best->bw_inter = nets ? 0.1f : 0;
    best->type_inter = nets ? TT_PATH_SYS : TT_PATH_DIS;
}

ncclResult_t tt_search_run(struct tt_topo_system *system, const struct tt_search_request *request,
                           struct tt_topo_graph *graph)
{
    struct search search = {.system = system, .request = request, .best = graph};
    search.cc = least_cc(system);
    search.ngpus = system->list[TT_NODE_GPU].count;
    set_up(&search);
    bool multicast = system->list[TT_NODE_NVS].count > 0 && search.cc >= 90;
    if (request->kind == TT_GRAPH_NVLS && !multicast) return ncclSuccess;
    struct bounds bounds = bounds_of(&search);
    bool ready = tt_trial_init(&search.trial, system, graph);
    if (ready) {
        search.trial.min_channels = bounds.least;
        search.trial.max_channels = bounds.most;
        search.trial.inter = request->inter;
        search.trial.collnet = request->kind == TT_GRAPH_CHAIN || request->kind == TT_GRAPH_DIRECT;
        first_speed(&search);
        for (bool done = attempt_once(&search); !done && vary(&search);)
            done = attempt_once(&search);
        second_pass(&search);
    }
    bool failed = !ready || search.trial.out_of_memory;
    tt_trial_fini(&search.trial);
    free(search.failed);
    if (failed) return tt_fail(ncclSystemError, "topology: out of memory for a search");
    bool needed = request->kind == TT_GRAPH_RING || request->kind == TT_GRAPH_TREE;
    if (graph->nchannels == 0 && needed) fall_back(&search);
    return ncclSuccess;
}
