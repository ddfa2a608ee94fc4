/* An analytical model of machines with eight MI300 and RoCE networks: ring and tree with LL and
 * Simple. Source: spec tuner_plugin, section 7.3. */
#include "tuner.h"

enum { BROADCAST, REDUCE, ALLGATHER, REDUCESCATTER, ALLREDUCE };
enum { SIZES = 27 };

static const double bus_gbps = 28 * 12.0; /* channels times what one moves */
static const double ll_ratio = 0.41, far_tree_ratio = 0.86, near_ll_ratio = 1.65;

struct link { /* microseconds of a hop */
    double near, far;
};
static const struct link links[2][TUNER_PROTOS] = {
    [NCCL_ALGO_TREE] = {[NCCL_PROTO_LL] = {0.8, 12.5}, [NCCL_PROTO_SIMPLE] = {2.5, 22.4}},
    [NCCL_ALGO_RING] = {[NCCL_PROTO_LL] = {0.8, 9.5}, [NCCL_PROTO_SIMPLE] = {3.6, 19.8}},
};

/* Share of the bandwidth that is seen, from 64 bytes on, by powers of two. */
static const float shares[2][TUNER_PROTOS][SIZES] = {
    [NCCL_ALGO_TREE] = {[NCCL_PROTO_LL] = {.1f, .1f, .1f, .1f, .1f, 1,   1,   .8f, .1f,
                                           .4f, .5f, 1,   .6f, .4f, .6f, .1f, .3f, .4f,
                                           .4f, .3f, .2f, .2f, .2f, .2f, .2f, .2f, .2f},
                        [NCCL_PROTO_SIMPLE] = {.1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, 1,
                                               1,   1,   .4f, 1,   1,   1,   .2f, .7f, 1,
                                               1,   1,   .8f, .7f, .7f, .8f, .8f, .8f, .9f}},
    [NCCL_ALGO_RING] = {[NCCL_PROTO_LL] = {.1f, .1f, .1f, .1f, .1f, .1f, .1f, 1,   .1f,
                                           .2f, .2f, .1f, .5f, .8f, 1,   .2f, .4f, .5f,
                                           .4f, .4f, .3f, .2f, .2f, .2f, .2f, .2f, .2f},
                        [NCCL_PROTO_SIMPLE] = {.1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f, .1f,
                                               .7f, .1f, .1f, .1f, .1f, .1f, 1,   1,   1,
                                               .9f, 1,   1,   1,   1,   1,   1,   1,   1}},
};

static int log2_floor(size_t value)
{
    int log = 0;
    while (value >>= 1)
        log++;
    return log;
}

static double share(const struct tuner_question *question, int algo, int proto)
{
    size_t lines = question->bytes / 64;
    int k = lines ? log2_floor(lines) : 0;
    return (double)shares[algo][proto][k < SIZES ? k : SIZES - 1];
}

static bool is_one_way(int func)
{
    return func == BROADCAST || func == REDUCE;
}

static double ring_steps(const struct tuner_size *size, int func)
{
    double n = (double)size->nranks;
    if (func == ALLREDUCE) return 2 * (n - 1);
    return is_one_way(func) ? n : n - 1;
}

static double ring_latency(const struct tuner_size *size, int func, int proto)
{
    struct link link = links[NCCL_ALGO_RING][proto];
    bool far = size->nnodes > 1;
    double nodes = (double)size->nnodes;
    if (is_one_way(func)) return far ? link.far : link.near;
    double least = proto == NCCL_PROTO_SIMPLE ? 3.0 : 1.0;
    double near = far && link.near < least ? least : link.near;
    double hops = !far ? 0 : func == ALLREDUCE ? 2 * nodes : nodes - 1;
    return (ring_steps(size, func) - hops) * near + hops * link.far;
}

static double tree_latency(const struct tuner_size *size, int proto)
{
    struct link link = links[NCCL_ALGO_TREE][proto];
    size_t local_ranks = size->nranks / size->nnodes;
    double near_hops = (double)local_ranks - 1;
    return 2 * (near_hops * link.near + log2_floor(size->nnodes) * link.far);
}

/* GB/s of the algorithm. */
static double bandwidth(const struct tuner_size *size, int func, int algo, int proto)
{
    double bus = bus_gbps * (proto == NCCL_PROTO_LL ? ll_ratio : 1.0);
    bool tree = algo == NCCL_ALGO_TREE;
    if (tree && proto == NCCL_PROTO_SIMPLE && size->nnodes > 2) bus *= far_tree_ratio;
    if (!tree && proto == NCCL_PROTO_LL && is_one_way(func) && size->nnodes == 1)
        bus *= near_ll_ratio;
    return tree ? bus * 0.5 : bus * (double)size->nranks / ring_steps(size, func);
}

double tuner_mi300_time(const struct tuner_size *size, const struct tuner_question *question,
                        int algo, int proto)
{
    bool tree = algo == NCCL_ALGO_TREE;
    if (size->nranks < 2 || size->nnodes < 1) return -1;
    if (algo != NCCL_ALGO_RING && !(tree && question->func == ALLREDUCE)) return -1;
    if (proto == NCCL_PROTO_LL128) return -1;
    if (tree && proto == NCCL_PROTO_SIMPLE && size->nnodes == 1) return -1;
    double base = proto == NCCL_PROTO_LL ? 12 : 17;
    double latency = tree ? tree_latency(size, proto) : ring_latency(size, question->func, proto);
    double rate =
        1000 * bandwidth(size, question->func, algo, proto) * share(question, algo, proto);
    return base + latency + (double)question->bytes / rate;
}
