/* What every example does with an error: say where, and end. */
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CUDA(call)                                                                                 \
    do {                                                                                           \
        cudaError_t err = (call);                                                                  \
        if (err != cudaSuccess) {                                                                  \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(err));           \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define NCCL(call)                                                                                 \
    do {                                                                                           \
        ncclResult_t rc = (call);                                                                  \
        if (rc != ncclSuccess && rc != ncclInProgress) {                                           \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, ncclGetErrorString(rc),         \
                    ncclGetLastError(NULL));                                                       \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* What the launcher says: `name` is RANK, WORLD_SIZE or LOCAL_RANK, as tutti run and torchrun set
 * them; Slurm's srun has names of its own. */
static inline int from_launcher(const char *name, int alone)
{
    static const char *const srun[][2] = {{"RANK", "SLURM_PROCID"},
                                          {"WORLD_SIZE", "SLURM_STEP_NUM_TASKS"},
                                          {"LOCAL_RANK", "SLURM_LOCALID"}};
    const char *text = getenv(name);
    for (int i = 0; i < 3 && !text; i++) {
        if (getenv("SLURM_STEP_NUM_TASKS") && strcmp(srun[i][0], name) == 0)
            text = getenv(srun[i][1]);
    }
    if (text && atoi(text) > 1 && !getenv("NCCL_COMM_ID") && !getenv("WORLD_SIZE")) {
        fprintf(stderr, "srun: NCCL_COMM_ID=$(hostname):29500 says where the ranks meet\n");
        exit(1);
    }
    return text ? atoi(text) : alone;
}
