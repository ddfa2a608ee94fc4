/* NCCL's cost model of GPUs, and its choice: latency and bandwidth of every combination, and the
 * time of a call. For machines that devices emulate, and for tools; pure. Source: spec tuning,
 * sections 1 to 5. */
#pragma once

#include "nccl/tuner.h"
#include "program/program.h"
#include "topo/topo.h"

#include <stdbool.h>
#include <stddef.h>

enum { TT_GPU_FUNCS = TT_FUNC_ALLREDUCE + 1, TT_GPU_ALGOS = TT_ALGO_NCCL_COUNT_ };

struct tt_gpu_model {
    int nranks, nnodes, most_local;
    int cc;        /* the least compute capability, times ten */
    int nchannels; /* of the communicator */
    int nvls_channels, heads;
    bool collnet, x86;
    /* combinations that are off have bandwidth 0; microseconds, GB/s */
    float latency_usec[TT_GPU_FUNCS][TT_GPU_ALGOS][TT_PROTO_COUNT_];
    float bw_gbps[TT_GPU_FUNCS][TT_GPU_ALGOS][TT_PROTO_COUNT_];
    int max_threads[TT_GPU_ALGOS][TT_PROTO_COUNT_];
    int thread_bytes[TT_GPU_ALGOS][TT_PROTO_COUNT_]; /* fewer drop threads; 0: not set */
};

struct tt_gpu_query {
    enum tt_func func; /* one of the five that NCCL tunes */
    size_t bytes;      /* as in struct tt_tune_query */
    int nops;          /* pipelined, at least 1 */
    bool nvls_ok;      /* multicast can do this type and operation */
    bool narrow;       /* eight-bit floats */
    bool scaled;       /* average, premultiplied sum */
};

struct tt_gpu_choice {
    enum tt_algo algo;
    enum tt_proto proto;
    int nchannels, nthreads;
    float time_usec;
};

/* The model of a communicator. Obeys NCCL_ALGO, NCCL_PROTO, NCCL_PAT_ENABLE, NCCL_NET_OVERHEAD,
 * NCCL_LL128_C2C, NCCL_NTHREADS, NCCL_LL128_NTHREADS and NCCL_THREAD_THRESHOLDS.
 * constants  what a tuner plugin left of tt_gpu_constants(); NULL: untouched
 * Errors: ncclInvalidUsage naming variable and word. */
ncclResult_t tt_gpu_model_make(const struct tt_topo_layout *layout,
                               const ncclTunerConstants_v6_t *constants,
                               struct tt_gpu_model *model_out);

/* Bytes per thread below which threads are dropped, with NCCL_THREAD_THRESHOLDS; 0: not set. */
void tt_gpu_thresholds(int nranks, int bytes_out[TT_GPU_ALGOS][TT_PROTO_COUNT_]);

/* The model's figures as tuner plugins of versions 5 and 6 are shown them. */
void tt_gpu_constants(ncclTunerConstants_v6_t *constants_out);

/* Predicted microseconds; -1: impossible. */
float tt_gpu_time(const struct tt_gpu_model *model, const struct tt_gpu_query *query,
                  enum tt_algo algo, enum tt_proto proto);
/* The least time; the first on ties. False when nothing is left. */
bool tt_gpu_choose(const struct tt_gpu_model *model, const struct tt_gpu_query *query,
                   struct tt_gpu_choice *choice_out);
/* Channels and threads that NCCL gives to a call with that algorithm and protocol. */
void tt_gpu_spread(const struct tt_gpu_model *model, const struct tt_gpu_query *query,
                   struct tt_gpu_choice *choice);
