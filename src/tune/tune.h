/* Chooses algorithm, protocol, number of channels and chunk size of an operation: a cost table that
 * a model of this host (or imported figures) fills, and a tuner plugin edits; the minimum wins. */
#pragma once

#include "nccl.h"
#include "nccl/tuner.h"
#include "program/program.h"

#include <stdbool.h>
#include <stddef.h>

struct tt_gpu_model;
struct tt_tune_host;
struct tt_tuner; /* a tuner plugin's instance (plugin/tuner/tuner.h); NULL when there is none */

struct tt_tune_program {                /* read from a file; the same on all ranks, and verified */
    const struct tt_program *program;   /* borrowed */
    const uint8_t *refs;                /* borrowed: tt_program_find_refs() of this rank */
    const char *name;                   /* borrowed: of the file, for logs */
    uint64_t hash;                      /* tt_program_hash() */
    const struct tt_program_load *load; /* borrowed; it runs where its predicted time is least.
                                           NULL: it runs wherever it fits */
    uint64_t least_bytes, most_bytes;   /* of an operation, as tt_tune_query has them; inclusive */
    bool forced;                        /* whatever `tutti tune` has measured */
    bool turns;                         /* tt_program_turns() */
    bool copies; /* right out of place alone: calls in place copy the input */
};

struct tt_tune_env {         /* what the choice may depend on; equal on all ranks */
    int nranks, nnodes, ppn; /* ppn: of the node that has most */
    int least_local;         /* of the node that has least */
    int nchannels;
    int ndevs;       /* of the network, which channels use in turn; 0: it does not matter */
    int ncores;      /* cores that the ranks of a host share; 0: unknown */
    bool all_direct; /* every rank can address every other's range */
    bool net_only;   /* no rank can: all messages go over the network */
    const struct tt_gpu_model *gpu; /* of the machine that the devices emulate: its rings and trees,
                                     * chosen as NCCL does; borrowed; NULL: none */
    const struct tt_tune_host *host; /* measured figures; borrowed; NULL: the built-in ones */
    const ncclTunerConstants_v6_t *constants; /* as a tuner plugin left them; borrowed; NULL: own */
    const uint8_t *network_sums; /* [ncclNumTypes]: a bit per ncclRedOp_t that a network between
                                  * the nodes reduces; borrowed; NULL: none does */
    bool network_gathers, network_scatters; /* for an AllGather, and a ReduceScatter of these */
    bool oversubscribed;                    /* ranks per host exceed its cores */
    bool deterministic;
    const struct tt_tune_program *programs; /* nprograms; borrowed */
    int nprograms;
    size_t slice_bytes;
    size_t inline_bytes; /* payload that fits into one slot header */
};

struct tt_tune_request { /* of one call (ncclCollConfig_t); all zero: none */
    uint32_t allowed;    /* by tt_tune_select(); counts when `selects` */
    uint8_t selects;
    uint8_t strict;      /* nothing left of what is allowed: fail */
    uint8_t least, most; /* channels; 0: not set */
};
_Static_assert(sizeof(struct tt_tune_request) == sizeof(uint64_t), "compared as one word");

struct tt_tune_query {
    enum tt_func func;
    ncclDataType_t type;
    ncclRedOp_t op;
    size_t bytes; /* NCCL's nBytes: elements * size, * nranks for AllGather and ReduceScatter (and
                     AlltoAll, Gather, Scatter, which NCCL does not tune) */
    int nops;     /* pipelined operations of the group */
    int root;     /* of the functions that have one */
    bool registered;
    struct tt_tune_request request;
};

struct tt_tune_choice {
    enum tt_algo algo;
    enum tt_proto proto;
    int nchannels;
    size_t chunk_bytes;                    /* largest chunk */
    double time_usec;                      /* predicted; < 0 unknown */
    const struct tt_tune_program *program; /* to be run; NULL: what the generators make */
    bool measured; /* it is run because `tutti tune` found it faster; else it is predicted to be */
};

/* Read algSelection into `request`: allowed and selects. `text` may be NULL.
 * Errors: ncclInvalidArgument naming text and place. */
ncclResult_t tt_tune_select(const char *text, struct tt_tune_request *request);
bool tt_tune_allows(struct tt_tune_request request, enum tt_algo algo, enum tt_proto proto);
/* True when sends and receives are allowed, which have no name in algSelection. */
bool tt_tune_allows_unnamed(struct tt_tune_request request);
/* Name of a pair in algSelection; NULL: it has none. */
const char *tt_tune_pair_name(enum tt_algo algo, enum tt_proto proto);

/* Choose. Obeys NCCL_ALGO, NCCL_PROTO (NCCL's names and syntax; Direct and OneShot are ours); where
 * these name the function, the call's own selection is ignored.
 * The answer depends on nothing that differs between ranks, and has a program: P2P for a Send, a
 * Recv, or for AlltoAll, Gather and Scatter that are best made of sends and receives.
 * Programs of algorithm DIRECT read and write user buffers of all ranks; a rank that calls AlltoAll
 * in place must publish a copy of its input.
 * tuner  borrowed; NULL: none. Asked for NCCL's five collectives only.
 * Errors: ncclInvalidUsage naming NCCL_ALGO/NCCL_PROTO or algSelection when they leave nothing,
 * else ncclInternalError. */
ncclResult_t tt_tune_choose(const struct tt_tune_env *env, const struct tt_tune_query *query,
                            struct tt_tuner *tuner, struct tt_tune_choice *choice_out);

/* Microseconds that this host's model predicts for a program of that load; the query's function and
 * bytes are what counts. */
double tt_tune_predict(const struct tt_tune_env *env, const struct tt_tune_query *query,
                       const struct tt_program *program, const struct tt_program_load *load);

/* The figures that the model predicts with, as tuner plugins of versions 5 and 6 are shown them:
 * the machine's that the devices emulate, else this host's. */
void tt_tune_constants(const struct tt_tune_env *env, ncclTunerConstants_v6_t *constants_out);

/* Log at init what NCCL logs of its model: the matrix of switches (ENV) and the table of latencies
 * and bandwidths (TUNING) on rank 0, the thread thresholds (INIT) everywhere. */
void tt_tune_report(const struct tt_tune_env *env, int rank);

/* Read NCCL_ALGO and NCCL_PROTO as communicator init does.
 * Errors: ncclInvalidUsage naming the variable and the unknown word. */
ncclResult_t tt_tune_check(void);
