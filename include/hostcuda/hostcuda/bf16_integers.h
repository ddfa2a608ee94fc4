/* Conversions between bfloat16 and integers. To an integer they round to zero and saturate. Part of
 * cuda_bf16.h. */
#ifndef TUTTI_HOSTCUDA_BF16_INTEGERS_H_
#define TUTTI_HOSTCUDA_BF16_INTEGERS_H_

#include "bf16_type.h"

#ifdef __cplusplus

static inline __nv_bfloat16 __int2bfloat16_rn(int value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __nv_bfloat16 __int2bfloat16_rz(int value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __nv_bfloat16 __int2bfloat16_rd(int value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __nv_bfloat16 __int2bfloat16_ru(int value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline __nv_bfloat16 __uint2bfloat16_rn(unsigned int value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __nv_bfloat16 __uint2bfloat16_rz(unsigned int value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __nv_bfloat16 __uint2bfloat16_rd(unsigned int value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __nv_bfloat16 __uint2bfloat16_ru(unsigned int value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline __nv_bfloat16 __short2bfloat16_rn(short value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __nv_bfloat16 __short2bfloat16_rz(short value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __nv_bfloat16 __short2bfloat16_rd(short value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __nv_bfloat16 __short2bfloat16_ru(short value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline __nv_bfloat16 __ushort2bfloat16_rn(unsigned short value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __nv_bfloat16 __ushort2bfloat16_rz(unsigned short value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __nv_bfloat16 __ushort2bfloat16_rd(unsigned short value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __nv_bfloat16 __ushort2bfloat16_ru(unsigned short value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline __nv_bfloat16 __ll2bfloat16_rn(long long value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __nv_bfloat16 __ll2bfloat16_rz(long long value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __nv_bfloat16 __ll2bfloat16_rd(long long value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __nv_bfloat16 __ll2bfloat16_ru(long long value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline __nv_bfloat16 __ull2bfloat16_rn(unsigned long long value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __nv_bfloat16 __ull2bfloat16_rz(unsigned long long value)
{
    return tutti_of_bits<__nv_bfloat16>(
        tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __nv_bfloat16 __ull2bfloat16_rd(unsigned long long value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __nv_bfloat16 __ull2bfloat16_ru(unsigned long long value)
{
    return tutti_of_bits<__nv_bfloat16>(tutti_bf16_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline signed char __bfloat162char_rz(__nv_bfloat16 value)
{
    return tutti_to_integer<signed char>(tutti_wide(value));
}

static inline unsigned char __bfloat162uchar_rz(__nv_bfloat16 value)
{
    return tutti_to_integer<unsigned char>(tutti_wide(value));
}

static inline int __bfloat162int_rz(__nv_bfloat16 value)
{
    return tutti_to_integer<int>(tutti_wide(value));
}

static inline unsigned int __bfloat162uint_rz(__nv_bfloat16 value)
{
    return tutti_to_integer<unsigned int>(tutti_wide(value));
}

static inline short __bfloat162short_rz(__nv_bfloat16 value)
{
    return tutti_to_integer<short>(tutti_wide(value));
}

static inline unsigned short __bfloat162ushort_rz(__nv_bfloat16 value)
{
    return tutti_to_integer<unsigned short>(tutti_wide(value));
}

static inline long long __bfloat162ll_rz(__nv_bfloat16 value)
{
    return tutti_to_integer<long long>(tutti_wide(value));
}

static inline unsigned long long __bfloat162ull_rz(__nv_bfloat16 value)
{
    return tutti_to_integer<unsigned long long>(tutti_wide(value));
}

#endif

#endif
