/* Error handling of the example programs: print and leave. */
#pragma once

#include <cuda_runtime.h>
#include <nccl.h>
#include <stdio.h>
#include <stdlib.h>

static inline void nccl_or_die(ncclResult_t rc, const char *what)
{
    if (rc == ncclSuccess || rc == ncclInProgress) return;
    fprintf(stderr, "%s: %s (%s)\n", what, ncclGetErrorString(rc), ncclGetLastError(NULL));
    exit(1);
}

static inline void cuda_or_die(cudaError_t err, const char *what)
{
    if (err == cudaSuccess) return;
    fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(err));
    exit(1);
}

#define NCCL(call) nccl_or_die((call), #call)
#define CUDA(call) cuda_or_die((call), #call)

/* Fill device memory with one value. */
static inline void fill(float *device, size_t count, float value)
{
    float *host = (float *)malloc(count * sizeof(float));
    for (size_t i = 0; i < count; i++) {
        host[i] = value;
    }
    CUDA(cudaMemcpy(device, host, count * sizeof(float), cudaMemcpyHostToDevice));
    free(host);
}

/* Every element must be `want`. */
static inline void expect(const float *device, size_t count, float want, const char *what)
{
    float *host = (float *)malloc(count * sizeof(float));
    CUDA(cudaMemcpy(host, device, count * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < count; i++) {
        if (host[i] == want) continue;
        fprintf(stderr, "%s: element %zu is %g, not %g\n", what, i, (double)host[i], (double)want);
        exit(1);
    }
    free(host);
}

static inline int env_int(const char *name, int otherwise)
{
    const char *text = getenv(name);
    return text ? atoi(text) : otherwise;
}
