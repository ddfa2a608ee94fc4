/* Ranks of a test: spread over processes and threads as the mode says, driven through the public
 * interfaces alone. A team is what one thread drives: one rank, or several devices in groups. */
#pragma once

#include "nccl.h"

#include <cuda_runtime.h>
#include <stdbool.h>
#include <stddef.h>

#define WORLD_MAX 128

struct world_rank {
    int rank, device;
    ncclComm_t comm;
    cudaStream_t stream;
};

struct world_team {
    int nranks; /* of the whole world */
    int count;  /* ranks of this team */
    struct world_rank *ranks;
    void *arg;
};

struct world_mode {
    const char *name;
    int processes; /* 0: one per rank */
    int threads;   /* per process; 0: one per rank of the process */
};

/* Mode by name: "one-thread", "threads", "processes", "mixed"; NULL when unknown. */
const struct world_mode *world_mode(const char *name);

/* Make the world, run `body` once per team with ready communicators, destroy it.
 * body returns the number of failures. Returns the sum; a process that dies counts as one. */
int world_run(const struct world_mode *mode, int nranks, int (*body)(struct world_team *team),
              void *arg);

/* Number of ranks from a program's argument: 2 to `most`, or `fallback` without one; 0 when wrong.
 */
int world_ranks(const char *text, int fallback, int most);

/* Say what failed and end the process: a test's peers would wait for ever otherwise. */
void world_check(ncclResult_t rc, const char *what);
void world_check_cuda(cudaError_t err, const char *what);
