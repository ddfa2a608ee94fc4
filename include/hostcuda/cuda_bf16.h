/* bfloat16 (8 exponent bits, 7 mantissa bits) on the host: the types and their conversions, which
 * round to nearest even unless their name says otherwise. In C++ also arithmetic: operands are
 * converted to float, and the result is rounded to bfloat16. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <cuda_bf16.h>
#else
#ifndef TUTTI_CUDA_BF16_H_
#define TUTTI_CUDA_BF16_H_

#include "cuda_fp16.h"
#include "host_defines.h"
#include "vector_types.h"

TUTTI_BOTH_BEGIN
#include "hostcuda/bf16_integers.h"
#include "hostcuda/bf16_type.h"

#define __CUDA_BF16_TYPES_EXIST__

typedef __nv_bfloat16 nv_bfloat16;
typedef __nv_bfloat162 nv_bfloat162;

static inline __nv_bfloat16 __float2bfloat16_rn(float value)
{
    return __float2bfloat16(value);
}

static inline __nv_bfloat16 __double2bfloat16(double value)
{
    return __float2bfloat16(tutti_double_odd(value));
}

static inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 bf16)
{
    return bf16.__x;
}

static inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits)
{
    __nv_bfloat16 bf16;
    bf16.__x = bits;
    return bf16;
}

static inline __nv_bfloat162 __floats2bfloat162_rn(float a, float b)
{
    __nv_bfloat162 pair;
    pair.x = __float2bfloat16(a);
    pair.y = __float2bfloat16(b);
    return pair;
}

static inline __nv_bfloat162 __float2bfloat162_rn(float value)
{
    return __floats2bfloat162_rn(value, value);
}

static inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 a, __nv_bfloat16 b)
{
    __nv_bfloat162 pair;
    pair.x = a;
    pair.y = b;
    return pair;
}

static inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 pair)
{
    return pair.x;
}

static inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 pair)
{
    return pair.y;
}

static inline short __bfloat16_as_short(__nv_bfloat16 number)
{
    return (short)number.__x;
}

static inline __nv_bfloat16 __short_as_bfloat16(short bits)
{
    return __ushort_as_bfloat16((unsigned short)bits);
}

static inline __nv_bfloat16 __float2bfloat16_rz(float value)
{
    return __ushort_as_bfloat16(tutti_bf16_rounded(value, TUTTI_TO_ZERO));
}

static inline __nv_bfloat16 __float2bfloat16_rd(float value)
{
    return __ushort_as_bfloat16(tutti_bf16_rounded(value, TUTTI_DOWN));
}

static inline __nv_bfloat16 __float2bfloat16_ru(float value)
{
    return __ushort_as_bfloat16(tutti_bf16_rounded(value, TUTTI_UP));
}

static inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 number)
{
    return __halves2bfloat162(number, number);
}

static inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y)
{
    return __halves2bfloat162(x, y);
}

static inline __nv_bfloat162 __low2bfloat162(__nv_bfloat162 pair)
{
    return __halves2bfloat162(pair.x, pair.x);
}

static inline __nv_bfloat162 __high2bfloat162(__nv_bfloat162 pair)
{
    return __halves2bfloat162(pair.y, pair.y);
}

static inline __nv_bfloat162 __lows2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return __halves2bfloat162(a.x, b.x);
}

static inline __nv_bfloat162 __highs2bfloat162(__nv_bfloat162 a, __nv_bfloat162 b)
{
    return __halves2bfloat162(a.y, b.y);
}

static inline __nv_bfloat162 __float22bfloat162_rn(float2 pair)
{
    return __floats2bfloat162_rn(pair.x, pair.y);
}

static inline float2 __bfloat1622float2(__nv_bfloat162 pair)
{
    float2 wide = {__bfloat162float(pair.x), __bfloat162float(pair.y)};
    return wide;
}

#ifdef __cplusplus
static inline float __low2float(__nv_bfloat162 pair)
{
    return __bfloat162float(pair.x);
}

static inline float __high2float(__nv_bfloat162 pair)
{
    return __bfloat162float(pair.y);
}
#endif

TUTTI_BOTH_END

#endif
#endif
