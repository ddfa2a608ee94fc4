/* Functions of the C library that kernels call, declared for the device: clang takes the
 * declarations in C's headers as host functions. They have no definition. */
#ifndef TUTTI_HOSTCUDA_DEVICE_C_H_
#define TUTTI_HOSTCUDA_DEVICE_C_H_

#if defined(__clang__) && defined(__CUDA__) && defined(__cplusplus)

#include "../host_defines.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern "C" {
__device__ int printf(const char *format, ...);
__device__ void *malloc(size_t bytes);
__device__ void free(void *memory);
__device__ void *memcpy(void *to, const void *from, size_t bytes);
__device__ void *memmove(void *to, const void *from, size_t bytes);
__device__ void *memset(void *to, int value, size_t bytes);
__device__ void __assert_fail(const char *assertion, const char *file, unsigned int line,
                              const char *function);
}
__device__ int abs(int value);
__device__ long labs(long value);
__device__ long long llabs(long long value);

__device__ double acos(double x);
__device__ float acosf(float x);
__device__ double acosh(double x);
__device__ float acoshf(float x);
__device__ double asin(double x);
__device__ float asinf(float x);
__device__ double asinh(double x);
__device__ float asinhf(float x);
__device__ double atan(double x);
__device__ float atanf(float x);
__device__ double atanh(double x);
__device__ float atanhf(float x);
__device__ double cbrt(double x);
__device__ float cbrtf(float x);
__device__ double ceil(double x);
__device__ float ceilf(float x);
__device__ double cos(double x);
__device__ float cosf(float x);
__device__ double cosh(double x);
__device__ float coshf(float x);
__device__ double erf(double x);
__device__ float erff(float x);
__device__ double erfc(double x);
__device__ float erfcf(float x);
__device__ double exp(double x);
__device__ float expf(float x);
__device__ double exp2(double x);
__device__ float exp2f(float x);
__device__ double exp10(double x);
__device__ float exp10f(float x);
__device__ double expm1(double x);
__device__ float expm1f(float x);
__device__ double fabs(double x);
__device__ float fabsf(float x);
__device__ double floor(double x);
__device__ float floorf(float x);
__device__ double lgamma(double x);
__device__ float lgammaf(float x);
__device__ double log(double x);
__device__ float logf(float x);
__device__ double log10(double x);
__device__ float log10f(float x);
__device__ double log1p(double x);
__device__ float log1pf(float x);
__device__ double log2(double x);
__device__ float log2f(float x);
__device__ double logb(double x);
__device__ float logbf(float x);
__device__ double nearbyint(double x);
__device__ float nearbyintf(float x);
__device__ double rint(double x);
__device__ float rintf(float x);
__device__ double round(double x);
__device__ float roundf(float x);
__device__ double sin(double x);
__device__ float sinf(float x);
__device__ double sinh(double x);
__device__ float sinhf(float x);
__device__ double sqrt(double x);
__device__ float sqrtf(float x);
__device__ double tan(double x);
__device__ float tanf(float x);
__device__ double tanh(double x);
__device__ float tanhf(float x);
__device__ double tgamma(double x);
__device__ float tgammaf(float x);
__device__ double trunc(double x);
__device__ float truncf(float x);
__device__ double atan2(double x, double y);
__device__ float atan2f(float x, float y);
__device__ double copysign(double x, double y);
__device__ float copysignf(float x, float y);
__device__ double fdim(double x, double y);
__device__ float fdimf(float x, float y);
__device__ double fmax(double x, double y);
__device__ float fmaxf(float x, float y);
__device__ double fmin(double x, double y);
__device__ float fminf(float x, float y);
__device__ double fmod(double x, double y);
__device__ float fmodf(float x, float y);
__device__ double hypot(double x, double y);
__device__ float hypotf(float x, float y);
__device__ double nextafter(double x, double y);
__device__ float nextafterf(float x, float y);
__device__ double pow(double x, double y);
__device__ float powf(float x, float y);
__device__ double remainder(double x, double y);
__device__ float remainderf(float x, float y);
__device__ double fma(double x, double y, double z);
__device__ double frexp(double x, int *exponent);
__device__ double ldexp(double x, int exponent);
__device__ double scalbn(double x, int exponent);
__device__ double modf(double x, double *whole);
__device__ void sincos(double x, double *sine, double *cosine);
__device__ int ilogb(double x);
__device__ long lrint(double x);
__device__ long lround(double x);
__device__ long long llrint(double x);
__device__ long long llround(double x);
__device__ float fmaf(float x, float y, float z);
__device__ float frexpf(float x, int *exponent);
__device__ float ldexpf(float x, int exponent);
__device__ float scalbnf(float x, int exponent);
__device__ float modff(float x, float *whole);
__device__ void sincosf(float x, float *sine, float *cosine);
__device__ int ilogbf(float x);
__device__ long lrintf(float x);
__device__ long lroundf(float x);
__device__ long long llrintf(float x);
__device__ long long llroundf(float x);

/* Functions of CUDA that C does not have. */
__device__ double cospi(double x);
__device__ float cospif(float x);
__device__ double erfcinv(double x);
__device__ float erfcinvf(float x);
__device__ double erfcx(double x);
__device__ float erfcxf(float x);
__device__ double erfinv(double x);
__device__ float erfinvf(float x);
__device__ double normcdf(double x);
__device__ float normcdff(float x);
__device__ double normcdfinv(double x);
__device__ float normcdfinvf(float x);
__device__ double sinpi(double x);
__device__ float sinpif(float x);
__device__ double rhypot(double x, double y);
__device__ double norm3d(double x, double y, double z);
__device__ double rnorm3d(double x, double y, double z);
__device__ float rhypotf(float x, float y);
__device__ float norm3df(float x, float y, float z);
__device__ float rnorm3df(float x, float y, float z);

#endif

#endif
