/* Latency and bandwidth of each combination, from the graphs that the ranks agreed upon. Floats on
 * purpose: choices near ties follow their rounding. */
#include "tune/gpu_model.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "tune/gpu_tables.h"
#include "tune/lists.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* All that the formulas of one communicator read. */
struct facts {
    const struct tt_topo_layout *layout;
    const struct tt_tune_lists *lists;
    const struct tt_gpu_tables *tables;
    int n, nodes, column;
    float ppn;
    enum tt_gpu_class class;
    float ll_most;
};

static int log2_of(int value)
{
    int log = 0;
    while (value > 1) {
        value /= 2;
        log++;
    }
    return log;
}

static float smaller(float a, float b)
{
    return a < b ? a : b;
}

static const struct tt_topo_graph *graph_of(const struct facts *f, enum tt_algo algo)
{
    static const enum tt_graph_kind kinds[] = {TT_GRAPH_TREE,  TT_GRAPH_RING, TT_GRAPH_DIRECT,
                                               TT_GRAPH_CHAIN, TT_GRAPH_NVLS, TT_GRAPH_NVLS,
                                               TT_GRAPH_TREE};
    return &f->layout->graph[kinds[algo]];
}

static bool is_collnet(enum tt_algo algo)
{
    return algo == TT_ALGO_COLLNET_DIRECT || algo == TT_ALGO_COLLNET_CHAIN;
}

static bool is_nvls(enum tt_algo algo)
{
    return algo == TT_ALGO_NVLS || algo == TT_ALGO_NVLS_TREE;
}

static bool gathers(enum tt_func func)
{
    return func == TT_FUNC_ALLGATHER || func == TT_FUNC_REDUCESCATTER;
}

/* ---- what there is ---- */

static bool pat_on(const struct facts *f)
{
    int64_t requested = tt_param_int("NCCL_PAT_ENABLE");
    if (f->layout->cc_least < 60) return false;
    return requested == 2 ? f->n == f->nodes : requested != 0;
}

static bool modelled(const struct facts *f, enum tt_func func, enum tt_algo algo,
                     enum tt_proto proto)
{
    if (is_nvls(algo) && (proto != TT_PROTO_SIMPLE || graph_of(f, algo)->nchannels < 2))
        return false;
    if (algo == TT_ALGO_PAT) return gathers(func) && proto == TT_PROTO_SIMPLE && pat_on(f);
    if (func == TT_FUNC_ALLREDUCE || algo == TT_ALGO_RING) return true;
    return gathers(func) && (algo == TT_ALGO_NVLS || algo == TT_ALGO_COLLNET_DIRECT);
}

static bool algo_on(const struct facts *f, enum tt_func func, enum tt_algo algo)
{
    const struct tt_topo_layout *layout = f->layout;
    if (!f->lists->algo[func][algo]) return false;
    if (algo == TT_ALGO_NVLS_TREE && f->nodes == 1) return false;
    if (is_collnet(algo) && !layout->collnet) return false;
    if (algo == TT_ALGO_NVLS && f->nodes > 1 && !layout->collnet) return false;
    return algo != TT_ALGO_COLLNET_DIRECT || layout->nvswitch;
}

/* LL128 needs links that keep 128 bytes together. */
static bool keeps_lines(const struct facts *f, const struct tt_topo_graph *graph)
{
    const struct tt_topo_layout *layout = f->layout;
    bool modern = layout->cc_least >= 90;
    enum tt_path_type most =
        modern && tt_param_int("NCCL_LL128_C2C") != 0 ? TT_PATH_PXN : TT_PATH_PXB;
    if (graph->type_inter > most || graph->type_intra > TT_PATH_NVB) return false;
    return layout->cc_least >= 70 && (modern || layout->cc_least == layout->cc_most);
}

static bool proto_on(const struct facts *f, enum tt_func func, enum tt_algo algo,
                     enum tt_proto proto)
{
    if (!f->lists->proto[func][proto]) return false;
    if (proto != TT_PROTO_LL128 || f->lists->proto_named[func]) return true;
    return keeps_lines(f, graph_of(f, algo));
}

/* ---- bandwidth ---- */

static int steps_of(enum tt_func func, int n)
{
    if (func == TT_FUNC_ALLREDUCE) return 2 * (n - 1);
    return gathers(func) ? n - 1 : n;
}

static float nvls_channel(const struct facts *f, enum tt_func func, enum tt_algo algo)
{
    const struct tt_topo_graph *graph = graph_of(f, algo);
    float channels = (float)graph->nchannels;
    float inside =
        graph->bw_intra * f->tables->nvls_efficiency[f->class] * (channels - 1) / channels;
    inside *= func == TT_FUNC_ALLREDUCE ? 2 : (f->ppn - 1) / f->ppn;
    float across = graph->bw_inter * (algo == TT_ALGO_NVLS_TREE && f->nodes <= 2 ? 2.0f : 1.0f);
    float bw = smaller(inside, across);
    if (algo == TT_ALGO_NVLS_TREE) bw = smaller(bw, f->tables->nvls_tree[f->class][f->column]);
    return bw;
}

static float tree_bw(const struct facts *f, enum tt_proto proto, float bw, float channels)
{
    const struct tt_gpu_tables *t = f->tables;
    bw = smaller(bw * 0.92f, channels * t->tree[f->class][f->column]);
    if (proto == TT_PROTO_LL) bw = smaller(bw / 3.8f, f->ll_most);
    if (proto == TT_PROTO_LL128) {
        bw = smaller(bw * (f->nodes == 1 ? 7.0f / 9.0f : 120.0f / 128.0f),
                     channels * t->tree_ll128[f->class][f->column]);
    }
    return f->layout->tree_pattern == TT_PATTERN_TREE ? bw * 0.85f : bw;
}

static float collnet_bw(const struct facts *f, enum tt_func func, enum tt_algo algo, float bw)
{
    const struct tt_topo_graph *graph = graph_of(f, algo);
    if (algo != TT_ALGO_COLLNET_DIRECT) return bw;
    if (gathers(func)) return f->ppn * smaller(graph->bw_intra, graph->bw_inter * 0.9f);
    float factor = f->ppn / (float)graph->nchannels;
    factor -= (factor - 1) / 2;
    return bw / factor * (f->layout->cc_least >= 90 ? 0.85f : 1);
}

static float shaped_bw(const struct facts *f, enum tt_func func, enum tt_algo algo,
                       enum tt_proto proto)
{
    const struct tt_topo_graph *graph = graph_of(f, algo);
    float channels = (float)graph->nchannels;
    bool inner = f->nodes <= 2 || is_collnet(algo);
    float bw = channels * (is_nvls(algo) ? nvls_channel(f, func, algo)
                           : inner       ? graph->bw_intra
                                         : graph->bw_inter);
    if (algo == TT_ALGO_RING && proto == TT_PROTO_LL) bw = smaller(f->ll_most, bw * 0.5f);
    if (algo == TT_ALGO_RING && proto == TT_PROTO_LL128)
        bw = smaller(bw * 0.92f, channels * f->tables->ring_ll128[f->class][f->column]);
    if (algo == TT_ALGO_TREE) bw = tree_bw(f, proto, bw, channels);
    if (algo == TT_ALGO_PAT) bw *= 0.75f;
    if (is_collnet(algo)) bw = proto == TT_PROTO_SIMPLE ? collnet_bw(f, func, algo, bw) : 0;
    return bw;
}

static float bandwidth(const struct facts *f, enum tt_func func, enum tt_algo algo,
                       enum tt_proto proto)
{
    if (!modelled(f, func, algo, proto) || !algo_on(f, func, algo) ||
        !proto_on(f, func, algo, proto))
        return 0;
    bool far = f->nodes > 1 && (algo == TT_ALGO_NVLS || algo == TT_ALGO_COLLNET_DIRECT);
    if (gathers(func) && far && !f->layout->collnet) return 0;
    float bw = shaped_bw(f, func, algo, proto);
    if (gathers(func) && algo != TT_ALGO_RING) return bw;
    bool round = algo == TT_ALGO_RING || is_nvls(algo);
    return bw * (round ? (float)f->n / (float)steps_of(func, f->n) : 0.5f);
}

/* ---- latency ---- */

static float hop(const struct facts *f, enum tt_gpu_link link, enum tt_algo algo,
                 enum tt_proto proto)
{
    bool power = f->layout->arch == TT_ARCH_POWER && link == TT_GPU_PCI && algo == TT_ALGO_TREE &&
                 proto == TT_PROTO_SIMPLE;
    return f->tables->hop[link][power ? TT_ALGO_RING : algo][proto];
}

/* Microseconds that the proxy of a network takes for a step. */
static float net_overhead(const struct facts *f)
{
    int64_t nsec = tt_param_int("NCCL_NET_OVERHEAD");
    if (nsec >= 0) return (float)nsec * 0.001f;
    bool amd = f->layout->arch == TT_ARCH_X86 && f->layout->vendor == TT_VENDOR_AMD;
    return amd ? 2.0f : 1.0f;
}

struct hops { /* us of a step inside a node and between nodes */
    enum tt_gpu_link link;
    float intra, inter;
};

static float ring_latency(const struct facts *f, enum tt_func func, enum tt_proto proto,
                          const struct hops *hops)
{
    int steps = steps_of(func, f->n);
    if (func == TT_FUNC_BROADCAST || func == TT_FUNC_REDUCE) {
        enum tt_gpu_link link = f->nodes == 1 ? hops->link : TT_GPU_NET;
        if (f->layout->graph[TT_GRAPH_RING].same_channels) return hop(f, link, TT_ALGO_RING, proto);
        enum tt_algo as = proto == TT_PROTO_SIMPLE ? TT_ALGO_TREE : TT_ALGO_RING;
        return (float)f->n * hop(f, link, as, proto);
    }
    float intra = hops->intra;
    float overhead = net_overhead(f) * (proto == TT_PROTO_SIMPLE ? 3.0f : 1.0f);
    if (f->nodes > 1 && intra < overhead) intra = overhead;
    int across = func == TT_FUNC_ALLREDUCE ? 2 * (f->nodes - 1) : f->nodes - 1;
    if (f->nodes == 1) across = 0;
    return (float)(steps - across) * intra + (float)across * hops->inter;
}

static float latency(const struct facts *f, enum tt_func func, enum tt_algo algo,
                     enum tt_proto proto)
{
    const struct tt_topo_graph *graph = graph_of(f, algo);
    struct hops hops = {graph->type_intra == TT_PATH_NVL ? TT_GPU_NVLINK : TT_GPU_PCI, 0, 0};
    float base = f->tables->base[algo][proto];
    int inside = f->n / f->nodes - 1, depth = log2_of(f->nodes);
    hops.intra = hop(f, hops.link, algo, proto);
    hops.inter = f->tables->hop[TT_GPU_NET][f->ppn == 1 ? TT_ALGO_TREE : algo][proto] +
                 graph->latency_inter * (proto == TT_PROTO_SIMPLE ? 2.0f : 1.0f);
    switch (algo) {
    case TT_ALGO_RING: return base + ring_latency(f, func, proto, &hops);
    case TT_ALGO_TREE: return base + 2 * ((float)inside * hops.intra + (float)depth * hops.inter);
    case TT_ALGO_COLLNET_DIRECT:
        return base + 2 * ((float)(inside < 1 ? inside : 1) * hops.intra + (float)inside * 0.4f) +
               hops.inter;
    case TT_ALGO_COLLNET_CHAIN: return base + 2 * (float)inside * hops.intra + hops.inter;
    case TT_ALGO_NVLS: return hops.intra + (f->nodes > 1 ? hops.inter : 0);
    case TT_ALGO_NVLS_TREE: return base + hops.intra + 2 * (float)depth * hops.inter;
    case TT_ALGO_PAT: return base + (float)depth * (hops.inter / 3.5f) + 2.8f * (float)f->n;
    default: return 0;
    }
}

/* ---- threads ---- */

struct bounds { /* of a variable that counts threads */
    const char *name;
    int least, most;
};

/* The variable, mended to a multiple of 32 between the bounds as NCCL does it; 0: unset. */
static int threads(const struct bounds *bounds)
{
    int64_t requested = tt_param_int(bounds->name);
    int most = bounds->most, least = bounds->least;
    if (requested <= 0) return 0;
    int mended = requested % 32 != 0 || requested > most ? most
                 : requested < least                     ? least
                                                         : (int)requested;
    if (mended != requested) {
        tt_warn_setting("%s is %lld, which is no multiple of 32 between %d and %d: %d it is",
                        bounds->name, (long long)requested, least, most, mended);
    }
    return mended;
}

static void fill_threads(const struct facts *f, struct tt_gpu_model *model)
{
    static const struct bounds usual = {"NCCL_NTHREADS", 64, 512};
    static const struct bounds lines = {"NCCL_LL128_NTHREADS", 160, 640};
    const struct tt_topo_graph *ring = &f->layout->graph[TT_GRAPH_RING];
    bool slow = ring->bw_intra * (float)ring->nchannels <= 12;
    int requested = threads(&usual), requested_lines = threads(&lines);
    for (int a = 0; a < TT_GPU_ALGOS; a++) {
        int *most = model->max_threads[a];
        most[TT_PROTO_SIMPLE] = a == TT_ALGO_PAT ? 0 : 640;
        if (a != TT_ALGO_RING && a != TT_ALGO_TREE) continue;
        most[TT_PROTO_SIMPLE] = requested ? requested : a == TT_ALGO_RING && slow ? 256 : 512;
        most[TT_PROTO_LL] = requested ? requested : 512;
        most[TT_PROTO_LL128] = requested_lines ? requested_lines : 640;
    }
}

/* "t_ll t_ll128 t_simple r_ll r_ll128 r_simple"; negative ones keep, as do missing ones. */
static void read_thresholds(int bytes[TT_GPU_ALGOS][TT_PROTO_COUNT_])
{
    enum { NUMBERS = 2 * TT_PROTO_COUNT_ };
    const char *text = tt_param_str("NCCL_THREAD_THRESHOLDS"), *at = text;
    int k = 0;
    for (; at && k < NUMBERS; k++) {
        char *end = NULL;
        long value = strtol(at, &end, 10);
        if (end == at || value > INT_MAX) break;
        if (value >= 0) bytes[k / TT_PROTO_COUNT_][k % TT_PROTO_COUNT_] = (int)value;
        at = end;
    }
    if (!at || (k == NUMBERS && !at[strspn(at, " \t")])) return;
    tt_warn_setting(
        "NCCL_THREAD_THRESHOLDS '%s' is not six numbers with blanks between them: the first %d "
        "count, the others keep their values",
        text, k);
}

void tt_gpu_thresholds(int nranks, int bytes_out[TT_GPU_ALGOS][TT_PROTO_COUNT_])
{
    for (int a = 0; a < TT_GPU_ALGOS; a++) {
        bytes_out[a][TT_PROTO_LL] = a == TT_ALGO_RING ? 8 * nranks : 8;
        bytes_out[a][TT_PROTO_LL128] = 8;
        bytes_out[a][TT_PROTO_SIMPLE] = is_collnet((enum tt_algo)a) ? 512 : 64;
    }
    read_thresholds(bytes_out);
}

/* ---- all together ---- */

static void fill_facts(struct facts *f, const struct tt_topo_layout *layout)
{
    int cc = layout->cc_least;
    bool amd = layout->vendor == TT_VENDOR_AMD || layout->vendor == TT_VENDOR_MIXED;
    f->layout = layout;
    f->n = layout->nranks;
    f->nodes = layout->nnodes;
    f->column = f->nodes == 1 ? 0 : f->nodes == 2 ? 1 : 2;
    f->ppn = (float)f->n / (float)f->nodes;
    f->class = cc >= 100  ? TT_GPU_BLACKWELL
               : cc >= 90 ? TT_GPU_HOPPER
               : cc >= 80 ? TT_GPU_AMPERE
                          : TT_GPU_VOLTA;
    enum tt_gpu_class row = f->nodes == 1 ? f->class : amd ? TT_GPU_AMPERE : TT_GPU_VOLTA;
    f->ll_most = f->tables->ll[row][f->column];
}

static void fill_pair(const struct facts *f, enum tt_func func, enum tt_algo algo,
                      struct tt_gpu_model *model)
{
    for (int p = 0; p < TT_PROTO_COUNT_; p++) {
        float bw = bandwidth(f, func, algo, (enum tt_proto)p);
        model->bw_gbps[func][algo][p] = bw;
        if (bw > 0) model->latency_usec[func][algo][p] = latency(f, func, algo, (enum tt_proto)p);
    }
}

static void fill_model(const struct facts *f, struct tt_gpu_model *model)
{
    for (int c = 0; c < TT_GPU_FUNCS; c++) {
        for (int a = 0; a < TT_GPU_ALGOS; a++)
            fill_pair(f, (enum tt_func)c, (enum tt_algo)a, model);
    }
}

ncclResult_t tt_gpu_model_make(const struct tt_topo_layout *layout,
                               const ncclTunerConstants_v6_t *constants,
                               struct tt_gpu_model *model_out)
{
    struct tt_tune_lists lists;
    struct tt_gpu_tables edited;
    struct facts facts = {.lists = &lists, .tables = &tt_gpu_tables};
    ncclResult_t rc = tt_tune_lists_read(&lists);
    if (rc) return rc;
    if (constants) {
        tt_gpu_tables_edited(constants, &edited);
        facts.tables = &edited;
    }
    fill_facts(&facts, layout);
    *model_out = (struct tt_gpu_model){
        .nranks = layout->nranks,
        .nnodes = layout->nnodes,
        .most_local = layout->most_local,
        .cc = layout->cc_least,
        .nchannels = layout->nchannels,
        .nvls_channels = layout->nvls_channels,
        .heads = layout->nvls_heads,
        .collnet = layout->collnet,
        .x86 = layout->arch == TT_ARCH_X86,
    };
    fill_threads(&facts, model_out);
    if (layout->nranks > 1) {
        tt_gpu_thresholds(layout->nranks, model_out->thread_bytes);
        fill_model(&facts, model_out);
    }
    return ncclSuccess;
}
