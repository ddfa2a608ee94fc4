/* Figures of NCCL's model: what GPUs, links and protocols take. Private to the room. */
#pragma once

#include "tune/gpu_model.h"

enum tt_gpu_link { TT_GPU_NVLINK, TT_GPU_PCI, TT_GPU_NET, TT_GPU_LINKS_ };
enum tt_gpu_class { TT_GPU_VOLTA, TT_GPU_AMPERE, TT_GPU_HOPPER, TT_GPU_BLACKWELL, TT_GPU_CLASSES_ };

struct tt_gpu_tables {
    float base[TT_GPU_ALGOS][TT_PROTO_COUNT_];               /* us of a call */
    float hop[TT_GPU_LINKS_][TT_GPU_ALGOS][TT_PROTO_COUNT_]; /* us of a step */
    /* GB/s; columns: one node, two, more */
    float ll[TT_GPU_CLASSES_][3];         /* of the whole operation */
    float ring_ll128[TT_GPU_CLASSES_][3]; /* of a channel, and so below */
    float tree_ll128[TT_GPU_CLASSES_][3];
    float tree[TT_GPU_CLASSES_][3];
    float nvls_tree[TT_GPU_CLASSES_][3];
    float nvls_efficiency[TT_GPU_CLASSES_];
};
extern const struct tt_gpu_tables tt_gpu_tables;

/* The same figures after a tuner plugin has edited what tt_gpu_constants() showed it. */
void tt_gpu_tables_edited(const ncclTunerConstants_v6_t *constants,
                          struct tt_gpu_tables *tables_out);

/* Share of a tree's bandwidth that is seen at 64 << k bytes; 1 beyond the table. */
float tt_gpu_tree_share(enum tt_proto proto, int k);
enum { TT_GPU_SIZES = 24 };
