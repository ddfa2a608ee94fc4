/* Times of a call, the smallest of them, and the channels and threads that it gets. */
#include "tune/gpu_model.h"
#include "tune/gpu_tables.h"

/* Floor of the logarithm of the 64-byte lines; -1 below one. */
static int size_class(size_t bytes)
{
    size_t lines = bytes / 64;
    int log = -1;
    while (lines) {
        lines /= 2;
        log++;
    }
    return log;
}

static bool is_nvls(enum tt_algo algo)
{
    return algo == TT_ALGO_NVLS || algo == TT_ALGO_NVLS_TREE;
}

static float share(const struct tt_gpu_model *model, const struct tt_gpu_query *query,
                   enum tt_algo algo, enum tt_proto proto)
{
    int k = size_class(query->bytes);
    if (query->func != TT_FUNC_ALLREDUCE) return 1;
    if (algo == TT_ALGO_TREE && k < TT_GPU_SIZES - 1) return tt_gpu_tree_share(proto, k);
    bool modern = algo == TT_ALGO_NVLS_TREE && model->cc >= 100 && model->x86;
    return modern ? tt_gpu_tree_share(proto, k) : 1;
}

float tt_gpu_time(const struct tt_gpu_model *model, const struct tt_gpu_query *query,
                  enum tt_algo algo, enum tt_proto proto)
{
    float bw = model->bw_gbps[query->func][algo][proto];
    float latency = model->latency_usec[query->func][algo][proto];
    if (bw == 0) return -1;
    bw *= share(model, query, algo, proto);
    size_t part = (size_t)model->nchannels * (size_t)model->nranks;
    bool plateau = algo == TT_ALGO_RING && proto == TT_PROTO_SIMPLE && model->nnodes > 1 &&
                   query->func == TT_FUNC_ALLREDUCE && query->bytes / part >= 64;
    if (plateau) latency *= model->cc < 80 ? 1.9f : 1.4f;
    int rounds = algo == TT_ALGO_RING ? query->nops : (query->nops + 7) / 8;
    return latency * (float)rounds + (float)query->bytes / (1000 * bw);
}

static bool skipped(const struct tt_gpu_model *model, const struct tt_gpu_query *query,
                    enum tt_algo algo)
{
    bool collnet = algo == TT_ALGO_COLLNET_DIRECT || algo == TT_ALGO_COLLNET_CHAIN;
    if (collnet && model->most_local > 8) return true;
    if (is_nvls(algo) && !query->nvls_ok) return true;
    if (is_nvls(algo) && query->func != TT_FUNC_ALLREDUCE && model->most_local > 32) return true;
    if (algo == TT_ALGO_NVLS && model->nnodes > 1 && !model->collnet) return true;
    return algo == TT_ALGO_PAT && query->func == TT_FUNC_REDUCESCATTER && query->scaled;
}

/* ---- channels and threads ---- */

struct spread {
    int64_t channels, threads, threshold;
};

static bool too_small(const struct tt_gpu_query *query, const struct spread *s, int64_t factor)
{
    return (int64_t)query->bytes < s->channels * s->threads * factor * s->threshold;
}

static void spread_direct(const struct tt_gpu_model *model, const struct tt_gpu_query *query,
                          struct spread *s)
{
    for (int64_t floor = 16; floor >= 1; floor /= 2) {
        while (too_small(query, s, model->heads) && s->channels > floor) {
            if (s->channels == floor + floor / 2) s->threshold /= 2;
            s->channels--;
        }
    }
}

void tt_gpu_spread(const struct tt_gpu_model *model, const struct tt_gpu_query *query,
                   struct tt_gpu_choice *choice)
{
    enum tt_algo algo = choice->algo;
    enum tt_proto proto = choice->proto;
    struct spread s = {model->nchannels, model->max_threads[algo][proto],
                       model->thread_bytes[algo][proto]};
    if (algo == TT_ALGO_COLLNET_DIRECT) {
        spread_direct(model, query, &s);
    } else if (is_nvls(algo)) {
        bool capped = algo == TT_ALGO_NVLS && model->nnodes > 1;
        s.channels = model->nvls_channels;
        if (capped && s.channels > model->nchannels) s.channels = model->nchannels;
    } else {
        while (too_small(query, &s, 1) && s.channels >= 2)
            s.channels--;
        while (too_small(query, &s, 1) && s.threads % 128 == 0)
            s.threads /= 2;
    }
    if (proto == TT_PROTO_SIMPLE && algo == TT_ALGO_RING) s.threads += 32;
    if (s.threads < 96) s.threads = 96;
    if (algo == TT_ALGO_TREE || algo == TT_ALGO_PAT) s.threads = 640;
    choice->nchannels = (int)s.channels;
    choice->nthreads = (int)s.threads;
}

bool tt_gpu_choose(const struct tt_gpu_model *model, const struct tt_gpu_query *query,
                   struct tt_gpu_choice *choice_out)
{
    struct tt_gpu_choice best = {.algo = TT_ALGO_RING, .proto = TT_PROTO_SIMPLE, .time_usec = -1};
    for (int a = 0; a < TT_GPU_ALGOS && model->nranks > 1; a++) {
        for (int p = 0; p < TT_PROTO_COUNT_; p++) {
            if (skipped(model, query, (enum tt_algo)a)) continue;
            float time = tt_gpu_time(model, query, (enum tt_algo)a, (enum tt_proto)p);
            bool coarse = a == TT_ALGO_RING && query->narrow && model->nranks > 8;
            if (coarse && time >= 0) time *= 1024;
            if (time < 0 || (best.time_usec >= 0 && time >= best.time_usec)) continue;
            best.algo = (enum tt_algo)a;
            best.proto = (enum tt_proto)p;
            best.time_usec = time;
        }
    }
    if (model->nranks == 1) best.time_usec = 0;
    if (best.time_usec < 0) return false;
    tt_gpu_spread(model, query, &best);
    *choice_out = best;
    return true;
}
