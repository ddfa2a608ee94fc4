/* Conversions between half precision and integers. To an integer they round to zero and saturate.
 * Part of cuda_fp16.h. */
#ifndef TUTTI_HOSTCUDA_HALF_INTEGERS_H_
#define TUTTI_HOSTCUDA_HALF_INTEGERS_H_

#include "half_type.h"

#ifdef __cplusplus

static inline __half __int2half_rn(int value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __half __int2half_rz(int value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __half __int2half_rd(int value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __half __int2half_ru(int value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline __half __uint2half_rn(unsigned int value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __half __uint2half_rz(unsigned int value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __half __uint2half_rd(unsigned int value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __half __uint2half_ru(unsigned int value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline __half __short2half_rn(short value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __half __short2half_rz(short value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __half __short2half_rd(short value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __half __short2half_ru(short value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline __half __ushort2half_rn(unsigned short value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __half __ushort2half_rz(unsigned short value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __half __ushort2half_rd(unsigned short value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __half __ushort2half_ru(unsigned short value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline __half __ll2half_rn(long long value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __half __ll2half_rz(long long value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __half __ll2half_rd(long long value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __half __ll2half_ru(long long value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline __half __ull2half_rn(unsigned long long value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_NEAREST));
}

static inline __half __ull2half_rz(unsigned long long value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_TO_ZERO));
}

static inline __half __ull2half_rd(unsigned long long value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_DOWN));
}

static inline __half __ull2half_ru(unsigned long long value)
{
    return tutti_of_bits<__half>(tutti_half_rounded(tutti_integer_odd(value), TUTTI_UP));
}

static inline signed char __half2char_rz(__half value)
{
    return tutti_to_integer<signed char>(tutti_wide(value));
}

static inline unsigned char __half2uchar_rz(__half value)
{
    return tutti_to_integer<unsigned char>(tutti_wide(value));
}

static inline int __half2int_rz(__half value)
{
    return tutti_to_integer<int>(tutti_wide(value));
}

static inline unsigned int __half2uint_rz(__half value)
{
    return tutti_to_integer<unsigned int>(tutti_wide(value));
}

static inline short __half2short_rz(__half value)
{
    return tutti_to_integer<short>(tutti_wide(value));
}

static inline unsigned short __half2ushort_rz(__half value)
{
    return tutti_to_integer<unsigned short>(tutti_wide(value));
}

static inline long long __half2ll_rz(__half value)
{
    return tutti_to_integer<long long>(tutti_wide(value));
}

static inline unsigned long long __half2ull_rz(__half value)
{
    return tutti_to_integer<unsigned long long>(tutti_wide(value));
}

#endif

#endif
