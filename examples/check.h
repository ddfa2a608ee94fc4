/* What every example does with an error: say where, and end. */
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

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

/* What the launcher (tutti run, torchrun) says: RANK, WORLD_SIZE, LOCAL_RANK. */
static inline int from_launcher(const char *name, int alone)
{
    const char *text = getenv(name);
    return text ? atoi(text) : alone;
}
