/* Which program, protocol, channel count and chunk for an operation: a cost table, filled by a
 * model of this host (or imported numbers), edited by a tuner plugin, minimum wins. */
#pragma once

#include "nccl.h"
#include "program/program.h"

#include <stdbool.h>
#include <stddef.h>

struct tt_gpu_model;
struct tt_tune_host;
struct tt_tuner; /* a tuner plugin's instance (plugin/tuner.h); NULL when there is none */

struct tt_tune_env { /* what the choice may depend on; equal on all ranks */
    int nranks, nnodes, ppn;
    int nchannels;
    int ncores;                      /* cores that the ranks of a host share; 0: unknown */
    bool all_direct;                 /* every rank can address every other's range */
    const struct tt_gpu_model *gpu;  /* of the machine that the devices play: its rings and trees,
                                      * chosen as NCCL does; borrowed; NULL: none */
    const struct tt_tune_host *host; /* measured figures; borrowed; NULL: the built-in ones */
    bool crowded;                    /* ranks per host exceed its cores */
    bool deterministic;
    size_t slice_bytes;
    size_t inline_bytes; /* payload that rides in one slot line */
};

struct tt_tune_query {
    enum tt_func func;
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t bytes; /* NCCL's nBytes: elements * size, * nranks for AllGather and ReduceScatter (and
                     AlltoAll, Gather, Scatter, which NCCL does not tune) */
    int nops;     /* pipelined operations of the group */
    bool registered;
};

struct tt_tune_choice {
    enum tt_algo algo;
    enum tt_proto proto;
    int nchannels;
    size_t chunk_bytes; /* largest chunk */
    double time_usec;   /* predicted; < 0 unknown */
};

/* Choose. Obeys NCCL_ALGO, NCCL_PROTO (NCCL's names and syntax; Direct and OneShot are ours).
 * The answer depends on nothing that differs between ranks, and has a program: P2P for a Send, a
 * Recv, or for AlltoAll, Gather and Scatter that are best made of sends and receives.
 * Programs of algorithm DIRECT read and write user buffers of all ranks; a rank that calls AlltoAll
 * in place must publish a copy of its input.
 * tuner  borrowed; NULL: none. Asked for NCCL's five collectives only.
 * Errors: ncclInvalidUsage naming NCCL_ALGO/NCCL_PROTO when they leave nothing, else
 * ncclInternalError. */
ncclResult_t tt_tune_choose(const struct tt_tune_env *env, const struct tt_tune_query *query,
                            struct tt_tuner *tuner, struct tt_tune_choice *choice_out);

/* Read NCCL_ALGO and NCCL_PROTO as communicator init does.
 * Errors: ncclInvalidUsage naming the variable and the word that nobody knows. */
ncclResult_t tt_tune_check(void);
