/* Half precision (5 exponent bits, 10 mantissa bits) on the host: storage, conversions that round
 * to nearest even, and in C++ arithmetic through float, which is exact enough to round once. */
#ifndef TUTTI_CUDA_FP16_H_
#define TUTTI_CUDA_FP16_H_

#include "hostcuda/round.h"
#include "vector_types.h"

#define __CUDA_FP16_TYPES_EXIST__

typedef struct __attribute__((aligned(2))) {
    unsigned short x;
} __half_raw;

typedef struct __attribute__((aligned(4))) {
    unsigned short x, y;
} __half2_raw;

static inline unsigned short tutti_half_from_float(float value)
{
    uint32_t bits = tutti_float_bits(value), magnitude = bits & 0x7fffffffU;
    unsigned short sign = (unsigned short)((bits >> 16) & 0x8000U);
    if (magnitude > 0x7f800000U) return 0x7fff;
    if (magnitude == 0x7f800000U) return (unsigned short)(sign | 0x7c00U);
    uint32_t half = tutti_round_bits(magnitude, 10, 15);
    return (unsigned short)(sign | (half > 0x7c00U ? 0x7c00U : half));
}

static inline float tutti_half_to_float(unsigned short half)
{
    uint32_t magnitude = half & 0x7fffU, sign = (uint32_t)(half & 0x8000U) << 16;
    float value = magnitude >= 0x7c00U
                      ? tutti_bits_float(0x7f800000U | ((magnitude & 0x3ffU) << 13))
                      : tutti_short_value(magnitude, 10, 15);
    return tutti_bits_float(tutti_float_bits(value) | sign);
}

#ifndef __cplusplus

typedef struct __attribute__((aligned(2))) {
    unsigned short __x;
} __half;

typedef struct __attribute__((aligned(4))) {
    __half x, y;
} __half2;

static inline __half __float2half(float value)
{
    __half half = {tutti_half_from_float(value)};
    return half;
}

static inline float __half2float(__half half)
{
    return tutti_half_to_float(half.__x);
}

#else

#include <type_traits>

struct alignas(2) __half {
    unsigned short __x;

    __half() = default;
    constexpr __half(const __half_raw &raw) : __x(raw.x) {}
    __half(float value) : __x(tutti_half_from_float(value)) {}
    __half(double value) : __x(tutti_half_from_float(tutti_double_odd(value))) {}
    template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
    __half(T value) : __half(static_cast<double>(value))
    {
    }
    operator float() const { return tutti_half_to_float(__x); }
    operator __half_raw() const
    {
        __half_raw raw;
        raw.x = __x;
        return raw;
    }
};

struct alignas(4) __half2 {
    __half x, y;

    __half2() = default;
    __half2(const __half &a, const __half &b) : x(a), y(b) {}
};

static inline __half __float2half(float value)
{
    return __half(value);
}

static inline float __half2float(__half half)
{
    return static_cast<float>(half);
}

#endif

typedef __half nv_half;
typedef __half __nv_half;
typedef __half2 nv_half2;
#ifdef __cplusplus /* too good a name for variables to take it from C */
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

#ifdef __cplusplus

/* ---- arithmetic and comparison ---- */
static inline __half __hadd(__half a, __half b)
{
    return __half(static_cast<float>(a) + static_cast<float>(b));
}

static inline __half operator+(const __half &a, const __half &b)
{
    return __hadd(a, b);
}

static inline __half &operator+=(__half &a, const __half &b)
{
    return a = __hadd(a, b);
}

static inline __half __hsub(__half a, __half b)
{
    return __half(static_cast<float>(a) - static_cast<float>(b));
}

static inline __half operator-(const __half &a, const __half &b)
{
    return __hsub(a, b);
}

static inline __half &operator-=(__half &a, const __half &b)
{
    return a = __hsub(a, b);
}

static inline __half __hmul(__half a, __half b)
{
    return __half(static_cast<float>(a) * static_cast<float>(b));
}

static inline __half operator*(const __half &a, const __half &b)
{
    return __hmul(a, b);
}

static inline __half &operator*=(__half &a, const __half &b)
{
    return a = __hmul(a, b);
}

static inline __half __hdiv(__half a, __half b)
{
    return __half(static_cast<float>(a) / static_cast<float>(b));
}

static inline __half operator/(const __half &a, const __half &b)
{
    return __hdiv(a, b);
}

static inline __half &operator/=(__half &a, const __half &b)
{
    return a = __hdiv(a, b);
}

static inline bool __heq(__half a, __half b)
{
    return static_cast<float>(a) == static_cast<float>(b);
}

static inline bool operator==(const __half &a, const __half &b)
{
    return __heq(a, b);
}

static inline bool __hne(__half a, __half b)
{
    return static_cast<float>(a) != static_cast<float>(b);
}

static inline bool operator!=(const __half &a, const __half &b)
{
    return __hne(a, b);
}

static inline bool __hlt(__half a, __half b)
{
    return static_cast<float>(a) < static_cast<float>(b);
}

static inline bool operator<(const __half &a, const __half &b)
{
    return __hlt(a, b);
}

static inline bool __hle(__half a, __half b)
{
    return static_cast<float>(a) <= static_cast<float>(b);
}

static inline bool operator<=(const __half &a, const __half &b)
{
    return __hle(a, b);
}

static inline bool __hgt(__half a, __half b)
{
    return static_cast<float>(a) > static_cast<float>(b);
}

static inline bool operator>(const __half &a, const __half &b)
{
    return __hgt(a, b);
}

static inline bool __hge(__half a, __half b)
{
    return static_cast<float>(a) >= static_cast<float>(b);
}

static inline bool operator>=(const __half &a, const __half &b)
{
    return __hge(a, b);
}

static inline __half __hneg(__half a)
{
    a.__x ^= 0x8000U;
    return a;
}

static inline __half operator-(const __half &a)
{
    return __hneg(a);
}

static inline __half __habs(__half a)
{
    a.__x &= 0x7fffU;
    return a;
}

/* The product is exact in double, so the sum rounds to odd once and then to the result. */
static inline __half __hfma(__half a, __half b, __half c)
{
    double product = static_cast<double>(static_cast<float>(a)) * static_cast<float>(b);
    return __half(product + static_cast<double>(static_cast<float>(c)));
}

static inline bool __hisnan(__half a)
{
    return static_cast<float>(a) != static_cast<float>(a);
}

/* The other number when one is NaN. */
static inline __half __hmax(__half a, __half b)
{
    if (__hisnan(a)) return b;
    return __hisnan(b) || __hge(a, b) ? a : b;
}

static inline __half __hmin(__half a, __half b)
{
    if (__hisnan(a)) return b;
    return __hisnan(b) || __hle(a, b) ? a : b;
}
#endif

#endif
