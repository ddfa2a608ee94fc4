/* Reductions of 16- and 8-bit floats: widened to fp32, reduced there, rounded once to nearest even.
 * Compiled once per instruction set level (tt_reduce_narrow is renamed by the build), with the
 * level's own conversions of fp16 (TT_HALF_HEADER). fp8 saturates: nothing finite becomes
 * infinite, and infinities become the largest number. */
#include "exec/host/reduce.h"

#include <string.h>
#include TT_HALF_HEADER

typedef uint16_t u16 __attribute__((aligned(1), may_alias));
typedef uint32_t u32 __attribute__((aligned(1), may_alias)); /* two numbers */

static inline float float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* ---- fp32 accumulators ---- */

/* A number wins against a NaN, as fmaxf and fminf have it. */
#define PAIR(name, expression)                                                                     \
    static void name(void *dst, const void *a, const void *b, size_t count)                        \
    {                                                                                              \
        float *d = dst;                                                                            \
        const float *x = a, *y = b;                                                                \
        _Pragma("GCC ivdep") for (size_t i = 0; i < count; i++) d[i] = (expression);               \
    }
PAIR(sum, x[i] + y[i])
PAIR(prod, x[i] * y[i])
PAIR(max, ((x[i] > y[i]) | (y[i] != y[i])) ? x[i] : y[i])
PAIR(min, ((x[i] < y[i]) | (y[i] != y[i])) ? x[i] : y[i])
#undef PAIR

static void divide(void *acc, int divisor, size_t count)
{
    float *value = acc;
    for (size_t i = 0; i < count; i++)
        value[i] = value[i] / (float)divisor;
}

/* ---- bfloat16: the upper half of an fp32 ---- */

static inline uint16_t round_bf16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return (uint16_t)(value != value ? bits >> 16 | 0x40 : rounded);
}

static void widen_bf16(float *dst, const void *src, size_t count)
{
    const u16 *half = src;
    for (size_t i = 0; i < count; i++)
        dst[i] = float_of((uint32_t)half[i] << 16);
}

static void narrow_bf16(void *dst, const float *src, size_t count)
{
    u16 *half = dst;
    for (size_t i = 0; i < count; i++)
        half[i] = round_bf16(src[i]);
}

/* Rounded, in place: the result is the upper half. */
static inline uint32_t upper_bf16(float value)
{
    uint32_t bits = bits_of(value);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return value != value ? bits | 0x400000 : rounded;
}

/* Two numbers a word, in whatever order: the lower one shifted up, the upper one where it is, so
 * nothing is packed. */
static void sum_two_bf16(void *dst, const void *a, const void *b, size_t count)
{
    u32 *d = dst;
    const u32 *x = a, *y = b;
    size_t nwords = count / 2;
    _Pragma("GCC ivdep") for (size_t i = 0; i < nwords; i++)
    {
        float lower = float_of(x[i] << 16) + float_of(y[i] << 16);
        float upper = float_of(x[i] & 0xffff0000) + float_of(y[i] & 0xffff0000);
        d[i] = (upper_bf16(upper) & 0xffff0000) | upper_bf16(lower) >> 16;
    }
    if (count % 2 == 0) return;
    const u16 *xs = a, *ys = b;
    float last = float_of((uint32_t)xs[count - 1] << 16) + float_of((uint32_t)ys[count - 1] << 16);
    ((u16 *)dst)[count - 1] = round_bf16(last);
}

/* ---- fp8: e exponent bits with that bias, m mantissa bits ---- */

/* The bits move into an fp32's places. A subnormal is a number of the next exponent less that
 * exponent's power: no subnormal fp32 is ever computed with, which some processors do slowly. */
static inline float float_of_e4m3(uint32_t byte)
{
    uint32_t sign = (byte & 0x80) << 24, rest = byte & 0x7f;
    uint32_t normal = (rest << 20) + (120 << 23);
    uint32_t tiny = bits_of(float_of(normal + (1 << 23)) - 0x1p-6f);
    uint32_t magnitude = rest < 8 ? tiny : normal;
    return float_of(sign | (rest == 0x7f ? 0x7fc00000 : magnitude));
}

static inline float float_of_e5m2(uint32_t byte)
{
    uint32_t sign = (byte & 0x80) << 24, rest = byte & 0x7f;
    uint32_t normal = (rest << 21) + (112 << 23);
    uint32_t tiny = bits_of(float_of(normal + (1 << 23)) - 0x1p-14f);
    uint32_t magnitude = rest < 4 ? tiny : normal;
    uint32_t special = 0x7f800000 | (rest & 3) << 21;
    return float_of(sign | (rest >= 0x7c ? special : magnitude));
}

struct fp8 {
    float (*widen)(uint32_t byte);
    uint32_t shift;  /* mantissa bits to drop from fp32 */
    uint32_t rebias; /* difference of the exponents' biases, in place of the result */
    float magic;     /* its unit in the last place is the smallest subnormal */
    uint32_t normal; /* fp32 bits of the smallest normal number */
    uint32_t most;   /* the largest finite number, as fp8 */
};

static const struct fp8 e4m3 = {float_of_e4m3, 20, (127 - 7) << 3, 0x1p14f, 0x3c800000, 0x7e};
static const struct fp8 e5m2 = {float_of_e5m2, 21, (127 - 15) << 2, 0x1p7f, 0x38800000, 0x7b};

static inline uint32_t round_fp8(float number, const struct fp8 type)
{
    uint32_t bits = bits_of(number), magnitude = bits & 0x7fffffff;
    uint32_t odd = magnitude >> type.shift & 1;
    uint32_t half = ((uint32_t)1 << (type.shift - 1)) - 1 + odd;
    uint32_t normal = ((magnitude + half) >> type.shift) - type.rebias;
    uint32_t tiny = bits_of(float_of(magnitude) + type.magic) - bits_of(type.magic);
    uint32_t value = magnitude < type.normal ? tiny : normal;
    value = value > type.most ? type.most : value;
    value = magnitude > 0x7f800000 ? 0x7f : value;
    return (bits >> 24 & 0x80) | value;
}

#define FP8_BLOCK 64

/* The types are constants where these are inlined, so nothing is called or read from memory. */

static inline void widen_fp8(float *dst, const void *src, size_t count, const struct fp8 type)
{
    const uint8_t *byte = src;
    for (size_t i = 0; i < count; i++)
        dst[i] = type.widen(byte[i]);
}

/* Round and pack in two loops: compilers vectorise either, not both in one. */
static inline void narrow_fp8(uint8_t *restrict dst, const float *restrict src, size_t count,
                              const struct fp8 type)
{
    uint32_t block[FP8_BLOCK];
    for (size_t at = 0; at < count; at += FP8_BLOCK) {
        size_t some = count - at < FP8_BLOCK ? count - at : FP8_BLOCK;
        for (size_t i = 0; i < some; i++)
            block[i] = round_fp8(src[at + i], type);
        for (size_t i = 0; i < some; i++)
            dst[at + i] = (uint8_t)block[i];
    }
}

/* Sums of blocks of a constant size stay in registers; the end goes one by one. A block is complete
 * before it is stored, so dst may be a or b. */
static inline void sum_fp8(void *dst, const void *a, const void *b, size_t count,
                           const struct fp8 type)
{
    const uint8_t *x = a, *y = b;
    uint8_t *d = dst;
    uint32_t block[FP8_BLOCK];
    size_t at = 0;
    for (; at + FP8_BLOCK <= count; at += FP8_BLOCK) {
        for (size_t i = 0; i < FP8_BLOCK; i++)
            block[i] = round_fp8(type.widen(x[at + i]) + type.widen(y[at + i]), type);
        for (size_t i = 0; i < FP8_BLOCK; i++)
            d[at + i] = (uint8_t)block[i];
    }
    for (; at < count; at++)
        d[at] = (uint8_t)round_fp8(type.widen(x[at]) + type.widen(y[at]), type);
}

static void widen_e4m3(float *dst, const void *src, size_t count)
{
    widen_fp8(dst, src, count, e4m3);
}

static void narrow_e4m3(void *dst, const float *src, size_t count)
{
    narrow_fp8(dst, src, count, e4m3);
}

static void sum_two_e4m3(void *dst, const void *a, const void *b, size_t count)
{
    sum_fp8(dst, a, b, count, e4m3);
}

static void widen_e5m2(float *dst, const void *src, size_t count)
{
    widen_fp8(dst, src, count, e5m2);
}

static void narrow_e5m2(void *dst, const float *src, size_t count)
{
    narrow_fp8(dst, src, count, e5m2);
}

static void sum_two_e5m2(void *dst, const void *a, const void *b, size_t count)
{
    sum_fp8(dst, a, b, count, e5m2);
}

#define FP32_PAIRS                                                                                 \
    {                                                                                              \
        sum, prod, max, min                                                                        \
    }
const struct tt_reduce_type tt_reduce_narrow[ncclNumTypes] = {
    [ncclFloat16] = {.elem_bytes = 2,
                     .pair = FP32_PAIRS,
                     .sum_two = tt_half_sum,
                     .widen = tt_half_widen,
                     .narrow = tt_half_narrow,
                     .divide = divide},
    [ncclBfloat16] = {.elem_bytes = 2,
                      .pair = FP32_PAIRS,
                      .sum_two = sum_two_bf16,
                      .widen = widen_bf16,
                      .narrow = narrow_bf16,
                      .divide = divide},
    [ncclFloat8e4m3] = {.elem_bytes = 1,
                        .pair = FP32_PAIRS,
                        .sum_two = sum_two_e4m3,
                        .widen = widen_e4m3,
                        .narrow = narrow_e4m3,
                        .divide = divide},
    [ncclFloat8e5m2] = {.elem_bytes = 1,
                        .pair = FP32_PAIRS,
                        .sum_two = sum_two_e5m2,
                        .widen = widen_e5m2,
                        .narrow = narrow_e5m2,
                        .divide = divide},
};
#undef FP32_PAIRS
