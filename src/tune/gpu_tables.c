/* The figures, measured by NCCL's authors. Rows of protocols: LL, LL128, Simple. */
#include "tune/gpu_tables.h"

const struct tt_gpu_tables tt_gpu_tables = {
    .base = {[TT_ALGO_TREE] = {6.8f, 14.0f, 8.4f},
             [TT_ALGO_RING] = {6.6f, 14.0f, 8.4f},
             [TT_ALGO_PAT] = {8.0f, 8.0f, 8.0f}},
    .hop = {[TT_GPU_NVLINK] = {[TT_ALGO_TREE] = {0.6f, 1.25f, 4.0f},
                               [TT_ALGO_RING] = {0.6f, 1.9f, 3.4f},
                               [TT_ALGO_COLLNET_DIRECT] = {0, 0, 3.7f},
                               [TT_ALGO_COLLNET_CHAIN] = {0, 0, 2.8f},
                               [TT_ALGO_NVLS] = {0, 0, 25},
                               [TT_ALGO_NVLS_TREE] = {0, 0, 25},
                               [TT_ALGO_PAT] = {0, 0, 4.0f}},
            [TT_GPU_PCI] = {[TT_ALGO_TREE] = {1.0f, 1.9f, 4.0f},
                            [TT_ALGO_RING] = {1.0f, 2.5f, 5.7f},
                            [TT_ALGO_COLLNET_DIRECT] = {0, 0, 3.7f},
                            [TT_ALGO_COLLNET_CHAIN] = {0, 0, 2.8f},
                            [TT_ALGO_PAT] = {0, 0, 4.0f}},
            [TT_GPU_NET] = {[TT_ALGO_TREE] = {5.0f, 8.5f, 14},
                            [TT_ALGO_RING] = {2.7f, 4.0f, 14},
                            [TT_ALGO_COLLNET_DIRECT] = {0, 0, 31},
                            [TT_ALGO_COLLNET_CHAIN] = {0, 0, 30},
                            [TT_ALGO_NVLS] = {0, 0, 18},
                            [TT_ALGO_NVLS_TREE] = {0, 0, 20.9f},
                            [TT_ALGO_PAT] = {0, 0, 14}}},
    .ll = {{39.0f, 39.0f, 20.4f},
           {87.7f, 22.5f, 19.0f},
           {141.0f, 45.0f, 35.0f},
           {282.0f, 90.0f, 70.0f}},
    .ring_ll128 = {{20, 20, 20}, {20, 20, 20}, {36.7f, 36.7f, 36.7f}, {40, 40, 40}},
    .tree_ll128 = {{20, 20, 20}, {20, 20, 20}, {36.7f, 36.7f, 29.0f}, {55.6f, 31.67f, 20.0f}},
    .tree = {{26.5f, 18.5f, 10.0f},
             {24.0f, 23.6f, 17.8f},
             {38.7f, 41.4f, 36.0f},
             {70.0f, 42.8f, 24.0f}},
    .nvls_tree = {{26.5f, 18.5f, 10.0f},
                  {24.0f, 23.6f, 17.8f},
                  {0, 57.7f, 45.5f},
                  {0, 96.0f, 80.0f}},
    .nvls_efficiency = {0, 0, 0.85f, 0.74f},
};

static const float shares[TT_PROTO_COUNT_][TT_GPU_SIZES] = {
    {1,   1,   1,   1,   .9f, .8f, .7f, .7f, .7f, .7f, .6f, .5f,
     .4f, .4f, .5f, .6f, .7f, .8f, .9f, 1,   1,   1,   1,   1},
    {1,   1,   1,   1,   1,   .9f, .8f, .8f, .8f, .7f, .6f, .6f,
     .6f, .6f, .6f, .6f, .8f, .9f, .9f, .9f, .9f, 1,   1,   1},
    {.9f, .9f, .9f, .9f, .9f, .9f, .9f, .8f, .7f, .6f, .6f, .5f,
     .5f, .5f, .5f, .6f, .7f, .8f, .7f, .7f, .8f, .9f, .9f, .9f}};

float tt_gpu_tree_share(enum tt_proto proto, int k)
{
    return k >= 0 && k < TT_GPU_SIZES ? shares[proto][k] : 1;
}

static void widen(double *to, const float *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = (double)from[i];
    }
}

static void narrow(float *to, const double *from, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = (float)from[i];
    }
}

enum { BASE = TT_GPU_ALGOS * TT_PROTO_COUNT_, CLASSES = TT_GPU_CLASSES_ * 3 };

void tt_gpu_tables_edited(const ncclTunerConstants_v6_t *constants,
                          struct tt_gpu_tables *tables_out)
{
    struct tt_gpu_tables *t = tables_out;
    *t = tt_gpu_tables;
    narrow(&t->base[0][0], &constants->baseLatencies[0][0], BASE);
    narrow(&t->hop[0][0][0], &constants->hwLatencies[0][0][0], (size_t)TT_GPU_LINKS_ * BASE);
    narrow(&t->ll[0][0], &constants->llMaxBws[0][0], CLASSES);
    narrow(&t->ring_ll128[0][0], &constants->perChMaxRingLL128Bws[0][0], CLASSES);
    narrow(&t->tree_ll128[0][0], &constants->perChMaxTreeLL128Bws[0][0], CLASSES);
    narrow(&t->tree[0][0], &constants->perChMaxTreeBws[0][0], CLASSES);
    narrow(&t->nvls_tree[0][0], &constants->perChMaxNVLSTreeBws[0][0], CLASSES);
}

void tt_gpu_constants(ncclTunerConstants_v6_t *constants_out)
{
    const struct tt_gpu_tables *t = &tt_gpu_tables;
    widen(&constants_out->baseLatencies[0][0], &t->base[0][0], BASE);
    widen(&constants_out->hwLatencies[0][0][0], &t->hop[0][0][0], (size_t)TT_GPU_LINKS_ * BASE);
    widen(&constants_out->llMaxBws[0][0], &t->ll[0][0], CLASSES);
    widen(&constants_out->perChMaxRingLL128Bws[0][0], &t->ring_ll128[0][0], CLASSES);
    widen(&constants_out->perChMaxTreeLL128Bws[0][0], &t->tree_ll128[0][0], CLASSES);
    widen(&constants_out->perChMaxTreeBws[0][0], &t->tree[0][0], CLASSES);
    widen(&constants_out->perChMaxNVLSTreeBws[0][0], &t->nvls_tree[0][0], CLASSES);
}
