/* The choice: a table of predicted times, edited by a tuner plugin, minimum wins.
 *
 * NCCL's seven algorithms stand in the table that a plugin sees; Tutti's own (Direct, OneShot,
 * Doubling, ..., and P2P) stand behind it and it never sees them. A plugin that prefers an entry
 * sets it to 0, which no prediction of ours undercuts: its choice wins. What the user's lists
 * forbid is -1 before the plugin is asked, and stays so whatever it answers. */
#include "cost.h"
#include "gpu_model.h"
#include "lists.h"
#include "model.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "plugin/tuner/tuner.h"
#include "tune.h"

#include <stdio.h>
#include <string.h>

_Static_assert(TT_TUNER_ALGOS == TT_ALGO_NCCL_COUNT_ && TT_TUNER_PROTOS == TT_PROTO_COUNT_,
               "the plugin's table is the first part of ours");

enum { NODE_BYTES = 256 }; /* least that is gathered or scattered at once, for each node */

struct costs {
    float time[TT_ALGO_COUNT_][TT_PROTO_COUNT_]; /* microseconds; -1: impossible */
};

static bool narrow(const struct tt_tune_query *query)
{
    return query->type == ncclFloat8e4m3 || query->type == ncclFloat8e5m2;
}

static struct tt_gpu_query gpu_query(const struct tt_tune_query *query)
{
    return (struct tt_gpu_query){
        .func = query->func, .bytes = query->bytes, .nops = query->nops, .narrow = narrow(query)};
}

static bool models(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    return env->gpu && query->func <= TT_FUNC_ALLREDUCE;
}

static bool is_collnet(enum tt_algo algo)
{
    return algo == TT_ALGO_COLLNET_DIRECT || algo == TT_ALGO_COLLNET_CHAIN;
}

/* Not every network that sums has the other two; of a slot each node needs a part. */
static bool network_offers(const struct tt_tune_env *env, enum tt_func func)
{
    if (!env->network_sums || env->nnodes < 2) return false;
    if (func == TT_FUNC_ALLREDUCE) return true;
    bool offers = func == TT_FUNC_ALLGATHER ? env->network_gathers : env->network_scatters;
    return offers && env->slice_bytes / (size_t)env->nnodes >= NODE_BYTES;
}

/* An average, or an operator of the user's, is a sum on the way. */
static bool network_reduces(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    int op = query->op >= ncclAvg ? ncclSum : (int)query->op;
    if (!network_offers(env, query->func)) return false;
    return query->func == TT_FUNC_ALLGATHER || env->network_sums[query->type] >> op & 1;
}

/* What NCCL's multicast reduces, by type and operator. */
static bool multicast_reduces(const struct tt_tune_query *query)
{
    bool compares = query->op == ncclMax || query->op == ncclMin;
    if (query->func == TT_FUNC_ALLGATHER) return true;
    switch (query->type) {
    case ncclFloat32:
    case ncclFloat64: return query->op == ncclSum;
    case ncclFloat16:
    case ncclBfloat16:
    case ncclInt32:
    case ncclUint32:
    case ncclInt64:
    case ncclUint64: return query->op == ncclSum || compares;
    default: return false;
    }
}

/* As NCCL would have it on the machine that is emulated, of what these ranks can run. */
static double gpu_cost(const struct tt_tune_env *env, const struct tt_tune_query *query,
                       enum tt_algo algo, enum tt_proto proto)
{
    const struct tt_gpu_query asked = gpu_query(query);
    bool coarse = algo == TT_ALGO_RING && narrow(query) && env->nranks > 8;
    if (algo >= TT_ALGO_NCCL_COUNT_ || !tt_program_exists(query->func, algo, proto)) return -1;
    bool nvls = algo == TT_ALGO_NVLS || algo == TT_ALGO_NVLS_TREE;
    if (nvls && !multicast_reduces(query)) return -1;
    if (nvls && tt_model_time(env, query, algo, proto) < 0) return -1;
    double time = (double)tt_gpu_time(env->gpu, &asked, algo, proto);
    /* the emulated machine knows nothing of it: for users that name it */
    if (is_collnet(algo) && time < 0) time = tt_model_time(env, query, algo, proto) * 1024;
    return coarse && time > 0 ? time * 1024 : time;
}

double tt_tune_cost(const struct tt_tune_env *env, const struct tt_tune_query *query,
                    const struct tt_tune_lists *lists, const struct tt_tune_entry *entry)
{
    enum tt_algo algo = entry->algo;
    enum tt_proto proto = entry->proto;
    bool ordered = algo == TT_ALGO_DIRECT || algo == TT_ALGO_ONESHOT || algo == TT_ALGO_P2P ||
                   algo == TT_ALGO_NVLS; /* this device loads multicast memory in rank order */
    if (!lists->algo[query->func][algo] || !lists->proto[query->func][proto]) return -1;
    if (!ordered && env->deterministic && tt_tune_order_shows(query)) return -1;
    if (is_collnet(algo) && !network_reduces(env, query)) return -1;
    if (models(env, query)) return gpu_cost(env, query, algo, proto);
    double time = tt_model_time(env, query, algo, proto);
    /* Partners that both reduce may keep the one of two zeros or the other. */
    bool differs = algo == TT_ALGO_DOUBLING && (query->op == ncclMax || query->op == ncclMin);
    bool ring = algo == TT_ALGO_RING || (algo == TT_ALGO_HIERARCHICAL && env->nnodes > 8);
    bool coarse = ring && tt_tune_too_coarse(env, query);
    return time > 0 && (coarse || differs) ? time * 1024 : time;
}

static void fill(const struct tt_tune_env *env, const struct tt_tune_query *query,
                 const struct tt_tune_lists *lists, struct costs *costs)
{
    for (int a = 0; a < TT_ALGO_COUNT_; a++) {
        for (int p = 0; p < TT_PROTO_COUNT_; p++) {
            const struct tt_tune_entry entry = {query->func, (enum tt_algo)a, (enum tt_proto)p};
            costs->time[a][p] = (float)tt_tune_cost(env, query, lists, &entry);
        }
    }
}

/* Ask the plugin. Returns its number of channels, 0: none. */
static int ask(struct tt_tuner *tuner, const struct tt_tune_query *query, struct costs *costs)
{
    float table[TT_TUNER_ALGOS][TT_TUNER_PROTOS];
    memcpy(table, costs->time, sizeof(table));
    int nchannels = 0;
    struct tt_tuner_query question = {.func = (int)query->func,
                                      .bytes = query->bytes,
                                      .nops = query->nops,
                                      .registered = query->registered};
    if (tt_tuner_ask(tuner, &question, table, &nchannels)) return 0;
    memcpy(costs->time, table, sizeof(table));
    return nchannels > 0 ? nchannels : 0;
}

/* The smallest time; the first one on ties. Not-a-number and negative entries lose. */
static bool pick(const struct costs *costs, struct tt_tune_choice *choice)
{
    choice->time_usec = -1;
    for (int a = 0; a < TT_ALGO_COUNT_; a++) {
        for (int p = 0; p < TT_PROTO_COUNT_; p++) {
            float time = costs->time[a][p];
            if (!(time >= 0)) continue;
            if (choice->time_usec >= 0 && !((double)time < choice->time_usec)) continue;
            *choice = (struct tt_tune_choice){
                .algo = (enum tt_algo)a, .proto = (enum tt_proto)p, .time_usec = (double)time};
        }
    }
    return choice->time_usec >= 0;
}

/* What the call itself selects, unless the environment speaks of its function. Takes out what it
 * does not allow. A selection that leaves nothing and need not be kept changes nothing. */
static ncclResult_t select_for_call(const struct tt_tune_query *query,
                                    const struct tt_tune_lists *lists, struct costs *costs)
{
    if (!query->request.selects) return ncclSuccess;
    char left[256] = "";
    size_t used = 0;
    struct costs kept = *costs;
    bool any = false;
    bool environment = tt_tune_lists_restrict(lists->algo[query->func], TT_ALGO_COUNT_) ||
                       tt_tune_lists_restrict(lists->proto[query->func], TT_PROTO_COUNT_);
    if (environment) return ncclSuccess;
    for (int k = 0; k < TT_ALGO_COUNT_ * TT_PROTO_COUNT_; k++) {
        enum tt_algo algo = (enum tt_algo)(k / TT_PROTO_COUNT_);
        enum tt_proto proto = (enum tt_proto)(k % TT_PROTO_COUNT_);
        const char *name = tt_tune_pair_name(algo, proto);
        if (!(kept.time[algo][proto] >= 0)) continue;
        if (name && used < sizeof(left)) {
            used += (size_t)snprintf(left + used, sizeof(left) - used, " %s", name);
        }
        if (tt_tune_allows(query->request, algo, proto)) {
            any = true;
        } else {
            kept.time[algo][proto] = -1;
        }
    }
    if (any) {
        *costs = kept;
        return ncclSuccess;
    }
    if (query->request.strict) {
        return tt_fail(ncclInvalidUsage,
                       "%s: the call's algSelection allows nothing of what can run here (%s); "
                       "forceAlgSelection 0 would choose of these",
                       tt_func_name(query->func), left + (used > 0));
    }
    tt_info(TT_LOG_TUNING, "%s: algSelection allows nothing of what can run here, it is not kept",
            tt_func_name(query->func));
    return ncclSuccess;
}

/* Why there is no CollNet between hosts. */
static const char *collnet_lacks(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    if (env->nnodes < 2) return "";
    bool blocks = query->func == TT_FUNC_ALLGATHER || query->func == TT_FUNC_REDUCESCATTER;
    if (query->func != TT_FUNC_ALLREDUCE && !blocks)
        return "; CollNet makes AllReduce, AllGather and ReduceScatter alone";
    if (!env->network_sums) return "; CollNet needs a network that reduces, NCCL_COLLNET_ENABLE=1";
    if (!network_offers(env, query->func)) {
        return query->func == TT_FUNC_ALLGATHER
                   ? "; CollNet's network has no iallgather for so many nodes"
                   : "; CollNet's network has no ireducescatter for so many nodes";
    }
    return network_reduces(env, query)
               ? ""
               : "; CollNet's network does not reduce this type by this operator";
}

/* What is only for hosts with as many ranks each. */
static const char *uneven_lacks(const struct tt_tune_env *env)
{
    if (env->nnodes < 2 || env->ppn * env->nnodes == env->nranks) return "";
    return "; NVLSTree needs hosts with as many ranks each, and where these are many and uneven "
           "there is no Hierarchical AlltoAll or LL";
}

static ncclResult_t nothing_left(const struct tt_tune_env *env, const struct tt_tune_query *query,
                                 const struct tt_tune_lists *lists)
{
    const char *name = tt_func_name(query->func);
    if (!lists->algo_text && !lists->proto_text) {
        return tt_fail(ncclInternalError, "no algorithm for %s of %zu bytes over %d ranks", name,
                       query->bytes, env->nranks);
    }
    return tt_fail(
        ncclInvalidUsage,
        "no algorithm or protocol is left for %s: NCCL_ALGO is %s, NCCL_PROTO is %s%s%s%s%s%s%s",
        name, lists->algo_text ? lists->algo_text : "unset",
        lists->proto_text ? lists->proto_text : "unset",
        env->deterministic ? ", TUTTI_DETERMINISTIC forbids rings and trees" : "",
        env->all_direct ? "" : "; Direct needs memory that all ranks can map",
        env->nnodes > 1 ? "; NVLS needs one host whose memory all ranks can map"
                        : "; Hierarchical, NVLSTree and CollNet need two hosts or more",
        uneven_lacks(env), collnet_lacks(env, query),
        tt_param_int("NCCL_NVLS_ENABLE") ? "" : "; NCCL_NVLS_ENABLE=0 forbids NVLS");
}

/* ---- layout ---- */

/* Those that are spread over channels and cut into chunks, each as it comes out of the table. */
static bool is_shaped(enum tt_func func, enum tt_algo algo)
{
    if (func == TT_FUNC_ALLTOALL) return false;
    return algo == TT_ALGO_RING || algo == TT_ALGO_TREE || algo == TT_ALGO_HIERARCHICAL ||
           is_collnet(algo) || algo == TT_ALGO_NVLS_TREE;
}

/* A slot holds a chunk for each node, and no less. */
static bool fills_slots(enum tt_func func, enum tt_algo algo)
{
    return algo == TT_ALGO_COLLNET_DIRECT && func != TT_FUNC_ALLREDUCE;
}

enum { CHUNK_SLICES = 4, CHUNK_GRAIN = 64 };
enum { PIPELINE_STAGES = 8, PIPELINE_BYTES = 16384, CHANNEL_SLICES = 2, JOINED_SLICES = 4 };

/* Each rank sends and receives blocks. */
static bool exchanges_blocks(enum tt_func func)
{
    return func == TT_FUNC_ALLREDUCE || func == TT_FUNC_ALLGATHER || func == TT_FUNC_REDUCESCATTER;
}

/* A rank exchanges with one other at a time. */
static bool is_pairwise(enum tt_algo algo)
{
    return algo == TT_ALGO_HALVING || algo == TT_ALGO_DOUBLING || algo == TT_ALGO_PAT ||
           algo == TT_ALGO_BRUCK || algo == TT_ALGO_PAIRWISE;
}

/* Connections within a host share its memory and cores: a second one adds system calls and switches
 * alone, until each has several messages to send at once. */
static size_t channels_within_host(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    size_t block = query->bytes / (size_t)env->nranks;
    return tt_max_size(block / (CHANNEL_SLICES * env->slice_bytes), 1);
}

/* One channel per 64 KiB; direct, one-shot and messages run on one. Of chains to a network each has
 * another rank of a host as its head; where all are heads there is one. Pairwise exchanges gain by
 * channels only that they use all devices of the network. */
static int channel_count(const struct tt_tune_env *env, const struct tt_tune_query *query,
                         const struct tt_tune_choice *choice, int requested)
{
    bool by_devices = is_pairwise(choice->algo) && env->ndevs > 1;
    if (!is_shaped(query->func, choice->algo) && !by_devices) return 1;
    if (choice->algo == TT_ALGO_COLLNET_DIRECT) return 1;
    size_t own = query->bytes / TT_CHANNEL_BYTES + (query->bytes % TT_CHANNEL_BYTES != 0);
    if (models(env, query)) {
        const struct tt_gpu_query asked = gpu_query(query);
        struct tt_gpu_choice spread = {.algo = choice->algo, .proto = choice->proto};
        tt_gpu_spread(env->gpu, &asked, &spread);
        own = (size_t)spread.nchannels;
    }
    size_t most = env->nchannels > 0 ? (size_t)env->nchannels : 1;
    if (is_collnet(choice->algo)) most = tt_min_size(most, (size_t)env->ppn);
    bool within = env->net_only && env->nnodes == 1 && env->ndevs < 2 && !env->gpu;
    if (within && choice->algo == TT_ALGO_RING && exchanges_blocks(query->func))
        own = tt_min_size(own, channels_within_host(env, query));
    if (by_devices) most = tt_min_size(most, (size_t)env->ndevs);
    if (requested > 0) own = (size_t)requested;
    own = tt_max_size(own, query->request.least);
    if (query->request.most) own = tt_min_size(own, query->request.most);
    return (int)tt_min_size(tt_max_size(own, 1), most);
}

/* Who sends there takes nothing from the others: slice follows slice, and what lies in memory
 * leaves in one call (exec/host/move.c). */
static bool sends_ahead(const struct tt_tune_env *env, const struct tt_tune_query *query,
                        const struct tt_tune_choice *choice)
{
    bool rooted = query->func == TT_FUNC_BROADCAST || query->func == TT_FUNC_REDUCE;
    return env->net_only && rooted && choice->algo == TT_ALGO_ONESHOT;
}

/* Largest chunk. Direct programs have one window; what passes one slot per edge is a slot; a ring
 * that exchanges n chunks takes two slots under Simple so that half of a chunk travels while the
 * other half is reduced; a pipeline (tree, Broadcast, Reduce) is cut into some eight stages. */
static size_t chunk_bytes(const struct tt_tune_env *env, const struct tt_tune_query *query,
                          const struct tt_tune_choice *choice)
{
    if (choice->algo == TT_ALGO_DIRECT || choice->algo == TT_ALGO_NVLS) return SIZE_MAX;
    if (!is_shaped(query->func, choice->algo))
        return env->slice_bytes * (sends_ahead(env, query, choice) ? JOINED_SLICES : 1);
    if (fills_slots(query->func, choice->algo)) return env->slice_bytes / (size_t)env->nnodes;
    bool tree = choice->algo == TT_ALGO_TREE || choice->algo == TT_ALGO_NVLS_TREE;
    bool pipeline = tree || is_collnet(choice->algo) || query->func == TT_FUNC_BROADCAST ||
                    query->func == TT_FUNC_REDUCE;
    if (!pipeline) return env->slice_bytes * (choice->proto == TT_PROTO_SIMPLE ? 2 : 1);
    size_t stage = query->bytes / (size_t)choice->nchannels / PIPELINE_STAGES;
    bool parts = choice->algo == TT_ALGO_NVLS_TREE || choice->algo == TT_ALGO_COLLNET_DIRECT;
    if (parts) stage /= (size_t)env->ppn;                                        /* of a window */
    if (choice->algo == TT_ALGO_HIERARCHICAL) stage /= (size_t)env->least_local; /* likewise */
    return tt_min_size(tt_max_size(stage, PIPELINE_BYTES), env->slice_bytes);
}

/* The plugin may ask for another chunk where chunks are passed on; at most half of an edge's
 * slots, so that a rank that sends before it receives never waits for itself. */
static size_t plugin_chunk(const struct tt_tune_env *env, const struct tt_tune_query *query,
                           struct tt_tuner *tuner, const struct tt_tune_choice *choice)
{
    const struct tt_tuner_query question = {.func = (int)query->func,
                                            .bytes = query->bytes,
                                            .nops = query->nops,
                                            .registered = query->registered};
    const struct tt_tuner_layout layout = {(int)choice->algo, (int)choice->proto,
                                           choice->nchannels};
    if (!is_shaped(query->func, choice->algo) || fills_slots(query->func, choice->algo))
        return choice->chunk_bytes;
    size_t most = env->slice_bytes * CHUNK_SLICES;
    size_t requested = tt_tuner_chunk(tuner, &question, &layout, choice->chunk_bytes);
    return tt_max_size(tt_min_size(requested, most) / CHUNK_GRAIN * CHUNK_GRAIN, CHUNK_GRAIN);
}

/* It runs as one part on its own channels; a chunk takes one slot, which its proof is about. */
static struct tt_tune_choice imported_choice(const struct tt_tune_env *env,
                                             const struct tt_tune_program *imported,
                                             double time_usec)
{
    return (struct tt_tune_choice){.algo = (enum tt_algo)imported->program->algo,
                                   .proto = (enum tt_proto)imported->program->proto,
                                   .nchannels = 1,
                                   .chunk_bytes = env->slice_bytes,
                                   .time_usec = time_usec,
                                   .program = imported};
}

/* Of what the table has, in the measure of programs from files: on the machine that the devices
 * emulate another clock counts. What a plugin has set to 0 stays so. */
static double host_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                        const struct tt_tune_choice *choice)
{
    if (!models(env, query) || choice->time_usec <= 0) return choice->time_usec;
    return tt_model_time(env, query, choice->algo, choice->proto);
}

ncclResult_t tt_tune_choose(const struct tt_tune_env *env, const struct tt_tune_query *query,
                            struct tt_tuner *tuner, struct tt_tune_choice *choice_out)
{
    struct tt_tune_lists lists;
    struct costs costs;
    struct tt_tune_choice choice;
    struct tt_tune_query asked = *query;
    if (asked.nops < 1) asked.nops = 1;
    ncclResult_t rc = tt_tune_lists_read(&lists);
    if (rc) return rc;
    const struct tt_tune_program *imported = tt_tune_imported(env, &asked, &lists);
    if (imported) {
        *choice_out = imported_choice(env, imported, -1);
        return ncclSuccess;
    }
    fill(env, &asked, &lists, &costs);
    rc = select_for_call(query, &lists, &costs);
    if (rc) return rc;
    bool tuned = (int)query->func <= (int)TT_FUNC_ALLREDUCE;
    int requested = tuner && tuned ? ask(tuner, &asked, &costs) : 0;
    if (!pick(&costs, &choice)) return nothing_left(env, query, &lists);
    double time = host_time(env, &asked, &choice);
    bool measured;
    imported = tt_tune_faster(env, &asked, &lists, &time, &measured);
    if (imported) {
        *choice_out = imported_choice(env, imported, time);
        choice_out->measured = measured;
        return ncclSuccess;
    }
    choice.nchannels = channel_count(env, &asked, &choice, requested);
    choice.chunk_bytes = chunk_bytes(env, &asked, &choice);
    if (tuner && tuned) choice.chunk_bytes = plugin_chunk(env, &asked, tuner, &choice);
    *choice_out = choice;
    return ncclSuccess;
}

void tt_tune_constants(const struct tt_tune_env *env, ncclTunerConstants_v6_t *constants_out)
{
    tt_gpu_constants(constants_out);
    if (!env->gpu) tt_model_constants(env, constants_out);
}

ncclResult_t tt_tune_check(void)
{
    struct tt_tune_lists lists;
    return tt_tune_lists_read(&lists);
}
