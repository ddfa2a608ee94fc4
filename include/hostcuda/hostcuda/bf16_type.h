/* The types of bfloat16 and their conversions from and to float. Part of cuda_bf16.h. */
#ifndef TUTTI_HOSTCUDA_BF16_TYPE_H_
#define TUTTI_HOSTCUDA_BF16_TYPE_H_

#include "half_type.h"
#include "pair_ops.h"
#include "round.h"

typedef struct __attribute__((aligned(2))) {
    unsigned short x;
} __nv_bfloat16_raw;

typedef struct __attribute__((aligned(4))) {
    unsigned short x, y;
} __nv_bfloat162_raw;

static inline unsigned short tutti_bf16_from_float(float value)
{
    uint32_t bits = tutti_float_bits(value);
    if ((bits & 0x7fffffffU) > 0x7f800000U) return 0x7fff;
    /* Round to nearest even: add 0x7fff, and one more where the kept part is odd. */
    return (unsigned short)((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

static inline unsigned short tutti_bf16_rounded(float value, enum tutti_rounding how)
{
    uint32_t bits = tutti_float_bits(value);
    if (how == TUTTI_NEAREST || value != value) return tutti_bf16_from_float(value);
    uint32_t up = tutti_round_magnitude(how, bits >> 31 != 0) == TUTTI_UP && (bits & 0xffffU);
    return (unsigned short)((bits >> 16) + up);
}

static inline float tutti_bf16_to_float(unsigned short bf16)
{
    return tutti_bits_float((uint32_t)bf16 << 16);
}

#ifndef __cplusplus

typedef struct __attribute__((aligned(2))) {
    unsigned short __x;
} __nv_bfloat16;

typedef struct __attribute__((aligned(4))) {
    __nv_bfloat16 x, y;
} __nv_bfloat162;

static inline __nv_bfloat16 __float2bfloat16(float value)
{
    __nv_bfloat16 bf16 = {tutti_bf16_from_float(value)};
    return bf16;
}

static inline float __bfloat162float(__nv_bfloat16 bf16)
{
    return tutti_bf16_to_float(bf16.__x);
}

#else

struct alignas(2) __nv_bfloat16 : tutti_short_ops<__nv_bfloat16> {
    unsigned short __x;

    __nv_bfloat16() = default;
    constexpr __nv_bfloat16(const __nv_bfloat16_raw &raw) : __x(raw.x) {}
    __nv_bfloat16(float value) : __x(tutti_bf16_from_float(value)) {}
    __nv_bfloat16(double value) : __x(tutti_bf16_from_float(tutti_double_odd(value))) {}
    template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
    __nv_bfloat16(T value) : __nv_bfloat16(tutti_integer_odd(value))
    {
    }
    explicit __nv_bfloat16(const __half &half) : __nv_bfloat16(static_cast<float>(half)) {}
    operator float() const { return tutti_bf16_to_float(__x); }
    template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
    operator T() const
    {
        return tutti_to_integer<T>(tutti_bf16_to_float(__x));
    }
    operator __nv_bfloat16_raw() const
    {
        __nv_bfloat16_raw raw;
        raw.x = __x;
        return raw;
    }
};

struct alignas(4) __nv_bfloat162 : tutti_pair_ops<__nv_bfloat162, __nv_bfloat16> {
    __nv_bfloat16 x, y;

    __nv_bfloat162() = default;
    __nv_bfloat162(const __nv_bfloat16 &a, const __nv_bfloat16 &b) : x(a), y(b) {}
    __nv_bfloat162(const __nv_bfloat162_raw &raw)
        : x(__nv_bfloat16_raw{raw.x}), y(__nv_bfloat16_raw{raw.y})
    {
    }
    operator __nv_bfloat162_raw() const { return __nv_bfloat162_raw{x.__x, y.__x}; }
};

static inline __nv_bfloat16 __float2bfloat16(float value)
{
    return __nv_bfloat16(value);
}

static inline float __bfloat162float(__nv_bfloat16 bf16)
{
    return static_cast<float>(bf16);
}

#endif

#endif
