/* The types of half precision and their conversions from and to float. Part of cuda_fp16.h. */
#ifndef TUTTI_HOSTCUDA_HALF_TYPE_H_
#define TUTTI_HOSTCUDA_HALF_TYPE_H_

#include "pair_ops.h"
#include "round.h"

typedef struct __attribute__((aligned(2))) {
    unsigned short x;
} __half_raw;

typedef struct __attribute__((aligned(4))) {
    unsigned short x, y;
} __half2_raw;

static inline unsigned short tutti_half_rounded(float value, enum tutti_rounding how)
{
    uint32_t bits = tutti_float_bits(value), magnitude = bits & 0x7fffffffU;
    unsigned short sign = (unsigned short)((bits >> 16) & 0x8000U);
    enum tutti_rounding direction = tutti_round_magnitude(how, sign != 0);
    if (magnitude > 0x7f800000U) return 0x7fff;
    if (magnitude == 0x7f800000U) return (unsigned short)(sign | 0x7c00U);
    uint32_t half = tutti_round_to(magnitude, 10, 15, direction);
    uint32_t beyond = direction == TUTTI_TO_ZERO ? 0x7bffU : 0x7c00U;
    return (unsigned short)(sign | (half > 0x7bffU ? beyond : half));
}

static inline unsigned short tutti_half_from_float(float value)
{
    return tutti_half_rounded(value, TUTTI_NEAREST);
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

struct alignas(2) __half : tutti_short_ops<__half> {
    unsigned short __x;

    __half() = default;
    constexpr __half(const __half_raw &raw) : __x(raw.x) {}
    __half(float value) : __x(tutti_half_from_float(value)) {}
    __half(double value) : __x(tutti_half_from_float(tutti_double_odd(value))) {}
    template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
    __half(T value) : __half(tutti_integer_odd(value))
    {
    }
    operator float() const { return tutti_half_to_float(__x); }
    template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
    operator T() const
    {
        return tutti_to_integer<T>(tutti_half_to_float(__x));
    }
    operator __half_raw() const
    {
        __half_raw raw;
        raw.x = __x;
        return raw;
    }
};

struct alignas(4) __half2 : tutti_pair_ops<__half2, __half> {
    __half x, y;

    __half2() = default;
    __half2(const __half &a, const __half &b) : x(a), y(b) {}
    __half2(const __half2_raw &raw) : x(__half_raw{raw.x}), y(__half_raw{raw.y}) {}
    operator __half2_raw() const { return __half2_raw{x.__x, y.__x}; }
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

#endif
