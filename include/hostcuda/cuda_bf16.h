/* bfloat16 (8 exponent bits, 7 mantissa bits) on the host: storage, conversions that round to
 * nearest even, and in C++ arithmetic through float, which is exact enough to round once. */
#ifndef TUTTI_CUDA_BF16_H_
#define TUTTI_CUDA_BF16_H_

#include "cuda_fp16.h"
#include "hostcuda/round.h"
#include "vector_types.h"

#define __CUDA_BF16_TYPES_EXIST__

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
    /* Half of what is cut off, less one unless the kept part is odd: a carry rounds to even. */
    return (unsigned short)((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
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

struct alignas(2) __nv_bfloat16 {
    unsigned short __x;

    __nv_bfloat16() = default;
    constexpr __nv_bfloat16(const __nv_bfloat16_raw &raw) : __x(raw.x) {}
    __nv_bfloat16(float value) : __x(tutti_bf16_from_float(value)) {}
    __nv_bfloat16(double value) : __x(tutti_bf16_from_float(tutti_double_odd(value))) {}
    template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
    __nv_bfloat16(T value) : __nv_bfloat16(static_cast<double>(value))
    {
    }
    explicit __nv_bfloat16(const __half &half) : __nv_bfloat16(static_cast<float>(half)) {}
    operator float() const { return tutti_bf16_to_float(__x); }
    operator __nv_bfloat16_raw() const
    {
        __nv_bfloat16_raw raw;
        raw.x = __x;
        return raw;
    }
};

struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;

    __nv_bfloat162() = default;
    __nv_bfloat162(const __nv_bfloat16 &a, const __nv_bfloat16 &b) : x(a), y(b) {}
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

#ifdef __cplusplus

/* ---- arithmetic and comparison ---- */
static inline __nv_bfloat16 __hadd(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16(static_cast<float>(a) + static_cast<float>(b));
}

static inline __nv_bfloat16 operator+(const __nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return __hadd(a, b);
}

static inline __nv_bfloat16 &operator+=(__nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return a = __hadd(a, b);
}

static inline __nv_bfloat16 __hsub(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16(static_cast<float>(a) - static_cast<float>(b));
}

static inline __nv_bfloat16 operator-(const __nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return __hsub(a, b);
}

static inline __nv_bfloat16 &operator-=(__nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return a = __hsub(a, b);
}

static inline __nv_bfloat16 __hmul(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16(static_cast<float>(a) * static_cast<float>(b));
}

static inline __nv_bfloat16 operator*(const __nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return __hmul(a, b);
}

static inline __nv_bfloat16 &operator*=(__nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return a = __hmul(a, b);
}

static inline __nv_bfloat16 __hdiv(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return __nv_bfloat16(static_cast<float>(a) / static_cast<float>(b));
}

static inline __nv_bfloat16 operator/(const __nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return __hdiv(a, b);
}

static inline __nv_bfloat16 &operator/=(__nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return a = __hdiv(a, b);
}

static inline bool __heq(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return static_cast<float>(a) == static_cast<float>(b);
}

static inline bool operator==(const __nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return __heq(a, b);
}

static inline bool __hne(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return static_cast<float>(a) != static_cast<float>(b);
}

static inline bool operator!=(const __nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return __hne(a, b);
}

static inline bool __hlt(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return static_cast<float>(a) < static_cast<float>(b);
}

static inline bool operator<(const __nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return __hlt(a, b);
}

static inline bool __hle(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return static_cast<float>(a) <= static_cast<float>(b);
}

static inline bool operator<=(const __nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return __hle(a, b);
}

static inline bool __hgt(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return static_cast<float>(a) > static_cast<float>(b);
}

static inline bool operator>(const __nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return __hgt(a, b);
}

static inline bool __hge(__nv_bfloat16 a, __nv_bfloat16 b)
{
    return static_cast<float>(a) >= static_cast<float>(b);
}

static inline bool operator>=(const __nv_bfloat16 &a, const __nv_bfloat16 &b)
{
    return __hge(a, b);
}

static inline __nv_bfloat16 __hneg(__nv_bfloat16 a)
{
    a.__x ^= 0x8000U;
    return a;
}

static inline __nv_bfloat16 operator-(const __nv_bfloat16 &a)
{
    return __hneg(a);
}

static inline __nv_bfloat16 __habs(__nv_bfloat16 a)
{
    a.__x &= 0x7fffU;
    return a;
}

/* The product is exact in double, so the sum rounds to odd once and then to the result. */
static inline __nv_bfloat16 __hfma(__nv_bfloat16 a, __nv_bfloat16 b, __nv_bfloat16 c)
{
    double product = static_cast<double>(static_cast<float>(a)) * static_cast<float>(b);
    return __nv_bfloat16(product + static_cast<double>(static_cast<float>(c)));
}

static inline bool __hisnan(__nv_bfloat16 a)
{
    return static_cast<float>(a) != static_cast<float>(a);
}

/* The other number when one is NaN. */
static inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b)
{
    if (__hisnan(a)) return b;
    return __hisnan(b) || __hge(a, b) ? a : b;
}

static inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b)
{
    if (__hisnan(a)) return b;
    return __hisnan(b) || __hle(a, b) ? a : b;
}
#endif

#endif
