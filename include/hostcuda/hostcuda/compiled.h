/* What nvcc includes in every program by itself: common C headers, min(), max() and rsqrt(). For
 * clang; plain C and C++ compilers do not get it, as with NVIDIA's headers. */
#ifndef TUTTI_HOSTCUDA_COMPILED_H_
#define TUTTI_HOSTCUDA_COMPILED_H_

#include "../host_defines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifdef __cplusplus
#include "device_c.h"

/* Functions, not templates: overload resolution prefers them to std::min and std::max, which
 * programs bring in by `using namespace std`. */
#define TUTTI_MIN_MAX(Result, A, B)                                                                \
    static inline __host__ __device__ Result min(A a, B b)                                         \
    {                                                                                              \
        return (Result)a < (Result)b ? (Result)a : (Result)b;                                      \
    }                                                                                              \
    static inline __host__ __device__ Result max(A a, B b)                                         \
    {                                                                                              \
        return (Result)a < (Result)b ? (Result)b : (Result)a;                                      \
    }
TUTTI_MIN_MAX(int, int, int)
TUTTI_MIN_MAX(unsigned, unsigned, unsigned)
TUTTI_MIN_MAX(unsigned, int, unsigned)
TUTTI_MIN_MAX(unsigned, unsigned, int)
TUTTI_MIN_MAX(long, long, long)
TUTTI_MIN_MAX(unsigned long, unsigned long, unsigned long)
TUTTI_MIN_MAX(unsigned long, long, unsigned long)
TUTTI_MIN_MAX(unsigned long, unsigned long, long)
TUTTI_MIN_MAX(long long, long long, long long)
TUTTI_MIN_MAX(unsigned long long, unsigned long long, unsigned long long)
TUTTI_MIN_MAX(unsigned long long, long long, unsigned long long)
TUTTI_MIN_MAX(unsigned long long, unsigned long long, long long)
#undef TUTTI_MIN_MAX

/* Where one operand is NaN, the result is the other one. */
#define TUTTI_MIN_MAX(Result, A, B)                                                                \
    static inline __host__ __device__ Result min(A a, B b)                                         \
    {                                                                                              \
        return fmin((Result)a, (Result)b);                                                         \
    }                                                                                              \
    static inline __host__ __device__ Result max(A a, B b)                                         \
    {                                                                                              \
        return fmax((Result)a, (Result)b);                                                         \
    }
TUTTI_MIN_MAX(double, double, double)
TUTTI_MIN_MAX(double, float, double)
TUTTI_MIN_MAX(double, double, float)
#undef TUTTI_MIN_MAX

static inline __host__ __device__ float min(float a, float b)
{
    return fminf(a, b);
}

static inline __host__ __device__ float max(float a, float b)
{
    return fmaxf(a, b);
}

static inline __host__ __device__ float rsqrtf(float x)
{
    return 1 / sqrtf(x);
}

static inline __host__ __device__ double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static inline __host__ __device__ float rcbrtf(float x)
{
    return 1 / cbrtf(x);
}

static inline __host__ __device__ double rcbrt(double x)
{
    return 1 / cbrt(x);
}

#endif

#endif
