/* What the CUDA samples share: leave with the call's text when it fails. */
#pragma once

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline void check(cudaError_t rc, const char *call, int line)
{
    if (rc == cudaSuccess) return;
    fprintf(stderr, "line %d: %s: %s (%s)\n", line, call, cudaGetErrorName(rc),
            cudaGetErrorString(rc));
    exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

static inline void expect(int good, const char *what)
{
    if (good) return;
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}
