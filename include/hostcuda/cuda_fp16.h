/* Half precision (5 exponent bits, 10 mantissa bits) on the host: the types and their conversions,
 * which round to nearest even unless their name says otherwise. In C++ also arithmetic: operands
 * are converted to float, and the result is rounded to half. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <cuda_fp16.h>
#else
#ifndef TUTTI_CUDA_FP16_H_
#define TUTTI_CUDA_FP16_H_

#include "host_defines.h"
#include "vector_functions.h"
#include "vector_types.h"

#include <stdint.h>
#include <string.h>
#ifdef __cplusplus
#include <limits>
#include <type_traits>
#endif

TUTTI_BOTH_BEGIN
#include "hostcuda/half_integers.h"
#include "hostcuda/half_type.h"

#define __CUDA_FP16_TYPES_EXIST__

typedef __half nv_half;
typedef __half __nv_half;
typedef __half2 nv_half2;
typedef __half2 __nv_half2;
typedef __half_raw __nv_half_raw;
typedef __half2_raw __nv_half2_raw;
#ifdef __cplusplus /* not in C, where programs name variables so */
typedef __half half;
typedef __half2 half2;
#endif

static inline __half __float2half_rn(float value)
{
    return __float2half(value);
}

static inline __half __double2half(double value)
{
    return __float2half(tutti_double_odd(value));
}

static inline unsigned short __half_as_ushort(__half half)
{
    return half.__x;
}

static inline __half __ushort_as_half(unsigned short bits)
{
    __half half;
    half.__x = bits;
    return half;
}

static inline __half2 __floats2half2_rn(float a, float b)
{
    __half2 pair;
    pair.x = __float2half(a);
    pair.y = __float2half(b);
    return pair;
}

static inline __half2 __float2half2_rn(float value)
{
    return __floats2half2_rn(value, value);
}

static inline __half2 __halves2half2(__half a, __half b)
{
    __half2 pair;
    pair.x = a;
    pair.y = b;
    return pair;
}

static inline __half __low2half(__half2 pair)
{
    return pair.x;
}

static inline __half __high2half(__half2 pair)
{
    return pair.y;
}

static inline float __low2float(__half2 pair)
{
    return __half2float(pair.x);
}

static inline float __high2float(__half2 pair)
{
    return __half2float(pair.y);
}

static inline short __half_as_short(__half number)
{
    return (short)number.__x;
}

static inline __half __short_as_half(short bits)
{
    return __ushort_as_half((unsigned short)bits);
}

static inline __half __float2half_rz(float value)
{
    return __ushort_as_half(tutti_half_rounded(value, TUTTI_TO_ZERO));
}

static inline __half __float2half_rd(float value)
{
    return __ushort_as_half(tutti_half_rounded(value, TUTTI_DOWN));
}

static inline __half __float2half_ru(float value)
{
    return __ushort_as_half(tutti_half_rounded(value, TUTTI_UP));
}

static inline __half2 __half2half2(__half number)
{
    return __halves2half2(number, number);
}

static inline __half2 make_half2(__half x, __half y)
{
    return __halves2half2(x, y);
}

static inline __half2 __low2half2(__half2 pair)
{
    return __halves2half2(pair.x, pair.x);
}

static inline __half2 __high2half2(__half2 pair)
{
    return __halves2half2(pair.y, pair.y);
}

static inline __half2 __lows2half2(__half2 a, __half2 b)
{
    return __halves2half2(a.x, b.x);
}

static inline __half2 __highs2half2(__half2 a, __half2 b)
{
    return __halves2half2(a.y, b.y);
}

static inline __half2 __float22half2_rn(float2 pair)
{
    return __floats2half2_rn(pair.x, pair.y);
}

static inline float2 __half22float2(__half2 pair)
{
    float2 wide = {__half2float(pair.x), __half2float(pair.y)};
    return wide;
}

TUTTI_BOTH_END

#endif
#endif
