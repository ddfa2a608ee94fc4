/* The cost of a program: dependent phases, and bytes that one rank reads and writes.
 *
 *     time = nops * phases * phase + load * (bytes / bandwidth + further peers * touch)
 *
 * load is the number of ranks that share a core. While it is 1 a phase is the time that a cache
 * line takes to the other core; beyond, every phase costs a switch between all ranks of a core,
 * which is why the fewest phases win until the bytes weigh more. Between hosts phases and
 * bandwidth are those of a socket; where the network has several devices, the bandwidth of as many
 * as the program's messages use. The figures are this machine's where `tutti tune` measured them
 * (host.h), else those of two cores of a server processor; only their ratios matter for the
 * choice. */
#include "model.h"

#include "host.h"

#include "base/mem.h"
#include "base/param.h"

static const struct tt_tune_host *host_of(const struct tt_tune_env *env)
{
    return env->host ? env->host : &tt_tune_host_default;
}

/* Bytes that the busiest rank moves, in units of the query's bytes: fixed part, and part per rank.
 * Direct: user buffers only; one-shot: slots written and read. */
struct volume {
    double direct, direct_per_n; /* direct + direct_per_n / n */
    double slots, slots_per_n;   /* slots * n + slots_per_n */
};

static const struct volume volumes[TT_FUNC_COUNT_] = {
    [TT_FUNC_ALLREDUCE] = {2, 0, 2, -1},      /* a slice of n inputs in, n outputs out */
    [TT_FUNC_REDUCE] = {1, 0.5, 0, 2},        /* senders go on when the slot is filled */
    [TT_FUNC_BROADCAST] = {1.5, 0, 0.4, 1.5}, /* root fills n - 1 slots while others empty them */
    [TT_FUNC_ALLGATHER] = {1.9, 0, 0, 3},     [TT_FUNC_REDUCESCATTER] = {1.45, 0, 0, 3},
    [TT_FUNC_ALLTOALL] = {1.9, 0, 0, 3},      [TT_FUNC_GATHER] = {1, 1, 0, 2},
    [TT_FUNC_SCATTER] = {1, 1, 0, 2},
};

static double load_of(const struct tt_tune_env *env)
{
    if (!env->oversubscribed) return 1;
    int ncores = env->ncores > 0 ? env->ncores : 2;
    double load = (double)env->ppn / ncores;
    return load > 2 ? load : 2;
}

static double local_phase(const struct tt_tune_env *env)
{
    double load = load_of(env);
    return load > 1 ? load * host_of(env)->switch_usec : host_of(env)->phase_usec;
}

static double slot_rate(const struct tt_tune_env *env)
{
    return load_of(env) > 1 ? host_of(env)->crowded_slot_bytes_usec : host_of(env)->slot_bytes_usec;
}

/* Peers beyond the one whose line the phase has paid for. */
static double more_peers(const struct tt_tune_env *env)
{
    return env->nranks - 2;
}

static double direct_time(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    const struct volume *volume = &volumes[query->func];
    double parts = volume->direct + volume->direct_per_n / env->nranks;
    double cells =
        query->nops * 2 * more_peers(env) * host_of(env)->touch_usec; /* arrivals and departures */
    return query->nops * 2 * local_phase(env) +
           load_of(env) * (parts * (double)query->bytes / host_of(env)->direct_bytes_usec + cells);
}

/* Largest payload that one edge carries. */
static size_t payload(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    bool shared = query->func == TT_FUNC_ALLREDUCE || query->func == TT_FUNC_REDUCE ||
                  query->func == TT_FUNC_BROADCAST;
    return shared ? query->bytes : query->bytes / (size_t)env->nranks;
}

/* Ranks of the other hosts, for a rank of the smallest host. */
static double most_remote(const struct tt_tune_env *env)
{
    return env->nranks - (env->least_local > 0 ? env->least_local : env->ppn);
}

/* Of a message between hosts the calls, which ranks of a core make one after the other; of an
 * AlltoAll, where the number of messages decides. Over loopback some 3 of 15 us. */
#define NET_MESSAGE_PHASES 0.2

static double net_messages(const struct tt_tune_env *env, double count)
{
    return load_of(env) * count * NET_MESSAGE_PHASES * host_of(env)->net_phase_usec;
}

/* Channels that an operation is spread over (channel_count() in choose.c). */
static double channels_of(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    size_t own = query->bytes / TT_CHANNEL_BYTES + (query->bytes % TT_CHANNEL_BYTES != 0);
    size_t most = env->nchannels > 0 ? (size_t)env->nchannels : 1;
    return (double)tt_min_size(tt_max_size(own, 1), most);
}

/* Bytes per microsecond of one host's traffic in so many flows, a flow being a channel between two
 * ranks: they use the devices of the network in turn (tt_net_device()). */
static double net_rate(const struct tt_tune_env *env, double flows)
{
    double ndevs = env->ndevs > 1 ? env->ndevs : 1;
    return host_of(env)->net_bytes_usec * (flows < ndevs ? flows : ndevs);
}

static double oneshot_time(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    const struct volume *volume = &volumes[query->func];
    int n = env->nranks;
    double bytes = (volume->slots * n + volume->slots_per_n) * (double)query->bytes;
    size_t edge_bytes = tt_max_size(payload(env, query), 1);
    size_t whole_passes = tt_round_up(edge_bytes, env->slice_bytes) / env->slice_bytes;
    double passes = (double)whole_passes;
    double phase =
        env->nnodes > 1 ? host_of(env)->net_phase_usec + local_phase(env) : local_phase(env);
    double time = query->nops * passes * phase +
                  load_of(env) * (bytes / slot_rate(env) +
                                  passes * more_peers(env) * host_of(env)->touch_usec);
    /* Every remote rank gets its own copy: all of that passes the host's network. */
    double pairs = (double)(n - env->ppn) * env->ppn;
    if (env->nnodes > 1) time += (double)edge_bytes * pairs / net_rate(env, pairs);
    if (env->nnodes > 1 && query->func == TT_FUNC_ALLTOALL)
        time += query->nops * net_messages(env, passes * most_remote(env));
    return time;
}

/* AlltoAll, Gather and Scatter made of messages: as one-shot, but a work item per message, and the
 * slots stay busy. */
static double messages_time(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    struct tt_tune_query one = *query;
    size_t slots = env->slice_bytes * (size_t)env->nranks;
    one.bytes = tt_min_size(query->bytes, slots);
    double rest = (double)(query->bytes - one.bytes);
    return oneshot_time(env, &one) + query->nops * (env->nranks - 1) * 0.2 +
           load_of(env) * 2 * rest / slot_rate(env);
}

static double ring_hops(enum tt_func func, int n)
{
    return func == TT_FUNC_ALLREDUCE ? 2.0 * (n - 1) : n - 1;
}

/* ---- rings and trees: their figures in the shape that tuner plugins know ---- */

/* Slots carry the same bytes under every protocol here; the factors keep NCCL's habit of LL for
 * short and Simple for long messages, which chooses the chunk (choose.c). */
static const double latency_factor[TT_PROTO_COUNT_] = {1.0, 1.2, 1.5};
static const double wire_factor[TT_PROTO_COUNT_] = {2.0, 16.0 / 15, 1.0};

enum { CLASS = NCCL_VOLTA_COMPCAP_IDX }; /* the row that counts; all are alike */

static int scale_of(const struct tt_tune_env *env)
{
    return env->nnodes == 1
               ? NCCL_TUNING_SCALE_1NODE
               : (env->nnodes == 2 ? NCCL_TUNING_SCALE_2NODES : NCCL_TUNING_SCALE_4NODES);
}

static double base_usec(const struct tt_tune_env *env, enum tt_algo algo, enum tt_proto proto)
{
    return env->constants ? env->constants->baseLatencies[algo][proto] : 0;
}

static double own_hop_usec(const struct tt_tune_env *env, int link, enum tt_proto proto)
{
    double hop = link == NCCL_HW_NET ? host_of(env)->net_phase_usec
                                     : local_phase(env) + host_of(env)->touch_usec;
    return hop * latency_factor[proto];
}

static double hop_usec(const struct tt_tune_env *env, int link, enum tt_algo algo,
                       enum tt_proto proto)
{
    return env->constants ? env->constants->hwLatencies[link][algo][proto]
                          : own_hop_usec(env, link, proto);
}

/* Bytes per microsecond that a rank passes on over so many channels. */
static double own_rate(const struct tt_tune_env *env, int scale, enum tt_proto proto,
                       double channels)
{
    double usec = load_of(env) * 4 / host_of(env)->slot_bytes_usec;
    if (scale != NCCL_TUNING_SCALE_1NODE) usec += 1 / net_rate(env, channels);
    return 1 / (usec * wire_factor[proto]);
}

static double cap_gbps(const struct tt_tune_env *env, enum tt_algo algo, enum tt_proto proto)
{
    const ncclTunerConstants_v6_t *c = env->constants;
    int scale = scale_of(env);
    double cap = 1e12, n = env->nchannels > 0 ? env->nchannels : 1;
    bool tree = algo == TT_ALGO_TREE;
    if (proto == TT_PROTO_LL) cap = c->llMaxBws[CLASS][scale];
    if (proto == TT_PROTO_LL128 && !tree) cap = n * c->perChMaxRingLL128Bws[CLASS][scale];
    if (proto == TT_PROTO_LL128 && tree) cap = n * c->perChMaxTreeLL128Bws[CLASS][scale];
    double whole = n * c->perChMaxTreeBws[CLASS][scale];
    return tree && whole < cap ? whole : cap;
}

static double rate(const struct tt_tune_env *env, enum tt_algo algo, enum tt_proto proto,
                   double channels)
{
    double own = own_rate(env, scale_of(env), proto, channels);
    double cap = env->constants ? cap_gbps(env, algo, proto) * 1e3 : own;
    return cap < own ? cap : own;
}

static void show_rates(const struct tt_tune_env *env, int scale, ncclTunerConstants_v6_t *c)
{
    double n = env->nchannels > 0 ? env->nchannels : 1;
    for (int class = 0; class < NCCL_NUM_COMPCAPS; class ++) {
        c->llMaxBws[class][scale] = own_rate(env, scale, TT_PROTO_LL, n) * 1e-3;
        c->perChMaxRingLL128Bws[class][scale] = own_rate(env, scale, TT_PROTO_LL128, n) * 1e-3 / n;
        c->perChMaxTreeLL128Bws[class][scale] = own_rate(env, scale, TT_PROTO_LL128, n) * 1e-3 / n;
        c->perChMaxTreeBws[class][scale] = own_rate(env, scale, TT_PROTO_SIMPLE, n) * 1e-3 / n;
    }
}

void tt_model_constants(const struct tt_tune_env *env, ncclTunerConstants_v6_t *constants)
{
    for (int a = 0; a < TT_ALGO_NCCL_COUNT_; a++) {
        if (a != TT_ALGO_TREE && a != TT_ALGO_RING && a != TT_ALGO_PAT) continue;
        for (int p = 0; p < TT_PROTO_COUNT_; p++) {
            constants->baseLatencies[a][p] = 0;
            for (int link = 0; link < NCCL_NUM_HW_LINKS; link++)
                constants->hwLatencies[link][a][p] = own_hop_usec(env, link, (enum tt_proto)p);
        }
    }
    for (int scale = 0; scale < NCCL_NUM_TUNING_SCALES; scale++)
        show_rates(env, scale, constants);
}

static double ring_latency(const struct tt_tune_env *env, enum tt_func func, enum tt_proto proto)
{
    double hops = ring_hops(func, env->nranks);
    double remote = env->nnodes > 1 ? ring_hops(func, env->nnodes) : 0;
    return (hops - remote) * hop_usec(env, NCCL_HW_PCI, TT_ALGO_RING, proto) +
           remote * hop_usec(env, NCCL_HW_NET, TT_ALGO_RING, proto);
}

/* A chunk that passes a rank is read and written, its own input read. */
static double ring_bytes(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    double n = env->nranks;
    double passing = query->func == TT_FUNC_ALLREDUCE ? 2 * (n - 1) / n : (n - 1) / n;
    if (query->func == TT_FUNC_BROADCAST || query->func == TT_FUNC_REDUCE) passing = 1;
    return passing * (double)query->bytes;
}

/* From the leaves to the root. */
static double tree_latency(const struct tt_tune_env *env, enum tt_proto proto)
{
    int depth = 0;
    while ((1 << depth) < env->nnodes) {
        depth++;
    }
    return (env->ppn - 1) * hop_usec(env, NCCL_HW_PCI, TT_ALGO_TREE, proto) +
           depth * hop_usec(env, NCCL_HW_NET, TT_ALGO_TREE, proto);
}

static double shaped_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                          enum tt_algo algo, enum tt_proto proto)
{
    bool tree = algo == TT_ALGO_TREE;
    double traversals = query->func == TT_FUNC_ALLREDUCE ? 2 : 1; /* of a tree: up and down */
    double bytes = tree ? traversals * (double)query->bytes : ring_bytes(env, query);
    double latency =
        tree ? traversals * tree_latency(env, proto) : ring_latency(env, query->func, proto);
    latency += base_usec(env, algo, proto);
    double bytes_usec = rate(env, algo, proto, channels_of(env, query));
    return bytes_usec > 0 ? query->nops * latency + bytes / bytes_usec : -1;
}

/* Three quarters of a ring's bandwidth, as NCCL reckons: one channel, and sums that are read and
 * written once more. */
static double pat_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                       enum tt_proto proto)
{
    int link = env->nnodes > 1 ? NCCL_HW_NET : NCCL_HW_PCI, steps = 0;
    double bytes_usec = 0.75 * rate(env, TT_ALGO_PAT, proto, channels_of(env, query));
    if (tt_param_int("NCCL_PAT_ENABLE") == 0 || !(bytes_usec > 0)) return -1;
    while ((1 << steps) < env->nranks)
        steps++;
    double latency = steps * hop_usec(env, link, TT_ALGO_PAT, proto) +
                     load_of(env) * (env->nranks - 1) * host_of(env)->touch_usec;
    return query->nops * (latency + base_usec(env, TT_ALGO_PAT, proto)) +
           ring_bytes(env, query) / bytes_usec;
}

/* ---- halving, doubling, Bruck: their distances know nothing of hosts ---- */

/* One message at a time from each rank: latency, and bytes that each rank sends and receives. All
 * ranks of a host share its network. */
static double exchange_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                            enum tt_proto proto, double steps, double bytes)
{
    bool net = env->nnodes > 1;
    double usec = load_of(env) * 4 / host_of(env)->slot_bytes_usec;
    if (net) usec += env->ppn / net_rate(env, env->ppn * channels_of(env, query));
    return steps * own_hop_usec(env, net ? NCCL_HW_NET : NCCL_HW_PCI, proto) + bytes * usec;
}

static double power_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                         enum tt_algo algo, enum tt_proto proto)
{
    int core = 1, steps = 0;
    while (core <= env->nranks / 2) {
        core *= 2;
        steps++;
    }
    double outside = core < env->nranks ? 2 : 0; /* before and after, with all of the buffer */
    double share = algo == TT_ALGO_DOUBLING ? steps : 2.0 * (core - 1) / core;
    if (algo == TT_ALGO_HALVING) steps *= 2;
    double time =
        exchange_time(env, query, proto, steps + outside, (share + outside) * (double)query->bytes);
    return query->nops * time;
}

/* As many steps as PAT, which sends little where it is far: what is left for where there is none.
 */
static double bruck_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                         enum tt_proto proto)
{
    int steps = 0;
    while ((1 << steps) < env->nranks)
        steps++;
    double share = query->func == TT_FUNC_ALLTOALL ? steps / 2.0 : 1;
    return query->nops *
           exchange_time(env, query, proto, steps, share * (double)query->bytes / 0.74);
}

static double pairwise_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                            enum tt_proto proto)
{
    return query->nops * exchange_time(env, query, proto, env->nranks - 1, (double)query->bytes);
}

/* ---- hierarchical ---- */

static bool hosts_are_even(const struct tt_tune_env *env)
{
    return env->nnodes > 1 && env->ppn == env->least_local && env->ppn * env->nnodes == env->nranks;
}

/* Texts of gen/uneven.c at most: for each rank of a host, and pair of neighbours' sizes. Beyond a
 * limit, which needs many hosts of very different sizes, the program would take too much memory. */
enum { UNEVEN_TEXTS = 4096 };

static double uneven_texts(const struct tt_tune_env *env)
{
    double spread = env->ppn - env->least_local + 1, pairs = spread * spread;
    return (pairs < env->nnodes ? pairs : env->nnodes) * env->ppn;
}

/* Where hosts are uneven each rank has a text, in which all other hosts and their ranks may be
 * written out, for programs that know them all: LL, and AlltoAlls. */
enum { UNEVEN_MOVES = 1 << 16 };

static bool too_many_moves(const struct tt_tune_env *env)
{
    return !hosts_are_even(env) && (double)env->nranks * env->nnodes * env->ppn > UNEVEN_MOVES;
}

/* An AlltoAll: each rank's blocks for a host go to it as one message, behind a step inside; where
 * hosts are uneven a rank of the smallest one makes one of as many blocks for each rank it serves.
 */
static double sorting_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                           enum tt_proto proto)
{
    double hosts = env->nnodes, bytes = (double)query->bytes;
    if (env->nnodes < 2 || env->ppn < 2 || env->least_local < 1 || too_many_moves(env)) return -1;
    double hops = proto == TT_PROTO_LL ? 1 : hosts - 1;
    double inside = 6 * bytes / slot_rate(env) + (env->nranks - 1) * host_of(env)->touch_usec;
    return query->nops * (hops * own_hop_usec(env, NCCL_HW_NET, proto) +
                          2 * own_hop_usec(env, NCCL_HW_PCI, proto) +
                          net_messages(env, most_remote(env) / env->least_local)) +
           load_of(env) * inside +
           bytes * (hosts - 1) / hosts * env->ppn / net_rate(env, env->ppn * (hosts - 1));
}

/* Between hosts as a ring of hosts, of which every rank of a host carries its part, or where hosts
 * are uneven as many as the smallest has; inside, inputs are read and outputs written as by a
 * direct program. SIMPLE waits for one host after the other, LL for all at once; where hosts are
 * uneven an AllGather or ReduceScatter of SIMPLE waits for one block after the other
 * (gen/uneven.c). */
static double hierarchical_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                                enum tt_proto proto)
{
    double halves = query->func == TT_FUNC_ALLREDUCE ? 2 : 1, hosts = env->nnodes;
    bool chain = query->func == TT_FUNC_BROADCAST || query->func == TT_FUNC_REDUCE;
    if (query->func == TT_FUNC_ALLTOALL) return sorting_time(env, query, proto);
    if (env->nnodes < 2 || env->ppn < 2 || env->least_local < 1) return -1;
    if (proto != TT_PROTO_SIMPLE && too_many_moves(env)) return -1;
    double hops = proto == TT_PROTO_LL ? halves : halves * (hosts - 1);
    double share = chain ? 1 : halves * (hosts - 1) / hosts; /* of the bytes: what crosses */
    bool blocks = query->func == TT_FUNC_ALLGATHER || query->func == TT_FUNC_REDUCESCATTER;
    if (blocks && !hosts_are_even(env)) {
        share = most_remote(env) / env->nranks;
        if (proto == TT_PROTO_SIMPLE) hops = most_remote(env);
        if (proto == TT_PROTO_SIMPLE && uneven_texts(env) > UNEVEN_TEXTS) return -1;
    }
    double crossing = (double)query->bytes * share;
    double inside = halves * (double)query->bytes / host_of(env)->direct_bytes_usec +
                    4 * crossing / env->least_local / host_of(env)->slot_bytes_usec;
    return query->nops * (hops * own_hop_usec(env, NCCL_HW_NET, proto) +
                          (hops + 2) * own_hop_usec(env, NCCL_HW_PCI, proto) +
                          load_of(env) * (env->ppn - 2) * host_of(env)->touch_usec) +
           load_of(env) * inside +
           crossing * wire_factor[proto] /
               net_rate(env, env->least_local * channels_of(env, query));
}

/* The host's sum crosses once. Inside, all give and take parts as in a direct program, or all of it
 * goes along a chain and back. */
static double collnet_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                           enum tt_algo algo, enum tt_proto proto)
{
    bool chain = algo == TT_ALGO_COLLNET_CHAIN;
    double local = env->ppn > 1 ? (chain ? env->ppn - 1 : 1) : 0, bytes = (double)query->bytes;
    double passes = query->func == TT_FUNC_ALLREDUCE ? 2 : 1; /* up; down */
    double slots = chain ? 4 * bytes : 2 * passes * bytes / env->ppn;
    double inside = slots / host_of(env)->slot_bytes_usec;
    if (env->ppn > 1) inside += passes * bytes / host_of(env)->direct_bytes_usec;
    if (passes < 2) bytes /= env->ppn; /* of a head, of all nodes */
    return query->nops * (passes * local * own_hop_usec(env, NCCL_HW_PCI, proto) +
                          own_hop_usec(env, NCCL_HW_NET, proto)) +
           load_of(env) * inside + bytes * wire_factor[proto] / host_of(env)->net_bytes_usec;
}

/* ---- multicast memory ---- */

/* As the direct program: what a load or a store of all ranks costs. */
static double nvls_time(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    bool allowed = tt_param_int("NCCL_NVLS_ENABLE") != 0;
    return allowed && env->all_direct && env->nnodes == 1 ? direct_time(env, query) : -1;
}

/* Sums go up a tree of hosts and down again, each rank of a host with its part. */
static double nvls_tree_time(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    int depth = 0;
    while ((1 << depth) < env->nnodes)
        depth++;
    if (tt_param_int("NCCL_NVLS_ENABLE") == 0 || !hosts_are_even(env)) return -1;
    return exchange_time(env, query, TT_PROTO_SIMPLE, 2.0 * depth + 2, 2 * (double)query->bytes);
}

/* ---- programs from files ---- */

/* As a ring: a chunk that a ring passes on is touched three times, for which own_rate() counts four
 * accesses. Passes follow each other without a barrier, so steps are waited for once and later
 * passes cost their messages; between hosts any step may be one over the network, and a host's
 * ranks share it. */
double tt_tune_predict(const struct tt_tune_env *env, const struct tt_tune_query *query,
                       const struct tt_program *program, const struct tt_program_load *load)
{
    enum tt_func func = query->func;
    bool whole = func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCE || func == TT_FUNC_BROADCAST;
    size_t block = whole ? query->bytes : query->bytes / (size_t)env->nranks;
    size_t window = env->slice_bytes * (size_t)program->nparts;
    size_t whole_passes = tt_round_up(tt_max_size(block, 1), window) / window;
    enum tt_proto proto = (enum tt_proto)program->proto;
    bool net = env->nnodes > 1;
    double messages = (double)whole_passes * load->messages, later = messages - load->steps;
    if (later < 0) later = 0;
    double bytes = load->touched * 4 / 3 / host_of(env)->slot_bytes_usec * load_of(env);
    if (net) bytes += load->sent * env->ppn / net_rate(env, env->ppn * program->nchannels);
    double latency = load->steps * own_hop_usec(env, net ? NCCL_HW_NET : NCCL_HW_PCI, proto) +
                     later * load_of(env) * host_of(env)->touch_usec;
    return query->nops * latency + bytes * (double)block;
}

/* AlltoAll, Gather and Scatter: where ranks do not share memory long ones are made of messages. */
static bool is_composite(enum tt_func func)
{
    return func == TT_FUNC_ALLTOALL || func == TT_FUNC_GATHER || func == TT_FUNC_SCATTER;
}

static double messages_or_one(const struct tt_tune_env *env, const struct tt_tune_query *query,
                              enum tt_proto proto)
{
    if (tt_func_is_message(query->func))
        return (double)query->bytes / host_of(env)->slot_bytes_usec + local_phase(env);
    /* Ranks that can address each other never do worse with direct and one-shot programs. */
    if (!is_composite(query->func) || proto != TT_PROTO_SIMPLE || env->all_direct) return -1;
    return messages_time(env, query);
}

double tt_model_plain_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                           enum tt_algo algo, enum tt_proto proto)
{
    if (algo == TT_ALGO_P2P) return messages_or_one(env, query, proto);
    if (!tt_program_exists(query->func, algo, proto)) return -1;
    switch (algo) {
    case TT_ALGO_DIRECT: return env->all_direct ? direct_time(env, query) : -1;
    case TT_ALGO_ONESHOT: return oneshot_time(env, query);
    case TT_ALGO_RING:
    case TT_ALGO_TREE: return shaped_time(env, query, algo, proto);
    case TT_ALGO_PAT: return pat_time(env, query, proto);
    case TT_ALGO_DOUBLING:
    case TT_ALGO_HALVING: return power_time(env, query, algo, proto);
    case TT_ALGO_BRUCK: return bruck_time(env, query, proto);
    case TT_ALGO_PAIRWISE: return pairwise_time(env, query, proto);
    case TT_ALGO_NVLS: return nvls_time(env, query);
    case TT_ALGO_NVLS_TREE: return nvls_tree_time(env, query);
    case TT_ALGO_HIERARCHICAL: return hierarchical_time(env, query, proto);
    case TT_ALGO_COLLNET_DIRECT:
    case TT_ALGO_COLLNET_CHAIN: return collnet_time(env, query, algo, proto);
    default: return -1;
    }
}

/* Exchanges by one-shot programs: up to so many bytes from rank to rank messages, which are bound
 * each time, took longer (over loopback, 2, 4 and 8 ranks; of two ranks up to more); beyond so many
 * ranks the connections, which are others than those of messages, would be too many. */
enum { EXCHANGE_BYTES = 16 << 10, PAIR_BYTES = 128 << 10, EXCHANGE_RANKS = 64 };
/* An AlltoAll that sorts inside hosts: longer blocks are no longer sent together. */
enum { SORTED_BYTES = 4 << 10 };

/* Last choices, for users that name them. Doubling, halving, Bruck and pairwise have not been
 * measured where ranks share memory; multicast memory is no faster on a host; NCCL_PAT_ENABLE=2
 * (the default) wants one rank per host. */
static bool only_by_name(const struct tt_tune_env *env, const struct tt_tune_query *query,
                         enum tt_algo algo)
{
    bool exchange = is_composite(query->func) && !env->all_direct;
    size_t exchange_most = env->nranks == 2 ? PAIR_BYTES : EXCHANGE_BYTES;
    switch (algo) {
    case TT_ALGO_ONESHOT:
        return exchange && (payload(env, query) > exchange_most || env->nranks > EXCHANGE_RANKS);
    case TT_ALGO_PAT: return tt_param_int("NCCL_PAT_ENABLE") == 2 && env->ppn > 1;
    case TT_ALGO_DOUBLING:
    case TT_ALGO_HALVING: return env->all_direct;
    case TT_ALGO_BRUCK: return env->all_direct || is_composite(query->func);
    case TT_ALGO_HIERARCHICAL:
        return is_composite(query->func) && payload(env, query) > SORTED_BYTES;
    case TT_ALGO_PAIRWISE:
    case TT_ALGO_NVLS:
    case TT_ALGO_NVLS_TREE: return true;
    default: return false;
    }
}

double tt_model_time(const struct tt_tune_env *env, const struct tt_tune_query *query,
                     enum tt_algo algo, enum tt_proto proto)
{
    double time = tt_model_plain_time(env, query, algo, proto);
    return time > 0 && only_by_name(env, query, algo) ? time * 1024 : time;
}

/* ---- what numbers bear ---- */

static bool is_float(ncclDataType_t type)
{
    return type == ncclFloat16 || type == ncclFloat32 || type == ncclFloat64 ||
           type == ncclBfloat16 || type == ncclFloat8e4m3 || type == ncclFloat8e5m2;
}

static bool is_reduction(enum tt_func func)
{
    return func == TT_FUNC_ALLREDUCE || func == TT_FUNC_REDUCE || func == TT_FUNC_REDUCESCATTER;
}

bool tt_tune_order_shows(const struct tt_tune_query *query)
{
    bool compares = query->op == ncclMax || query->op == ncclMin;
    return is_reduction(query->func) && is_float(query->type) && !compares;
}

bool tt_tune_too_coarse(const struct tt_tune_env *env, const struct tt_tune_query *query)
{
    bool narrow = query->type == ncclFloat8e4m3 || query->type == ncclFloat8e5m2;
    return narrow && is_reduction(query->func) && env->nranks > 8;
}
