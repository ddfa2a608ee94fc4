/* Reductions of 16- and 8-bit floats: widened to fp32, reduced there, rounded once to nearest even.
 * Compiled once per instruction set level (tt_reduce_narrow is renamed by the build), with the
 * level's own fp16, bfloat16 and fp8 (TT_HALF_HEADER, TT_BF16_HEADER, TT_FP8_HEADER). */
#include "exec/host/fp8/number.h"
#include "exec/host/reduce.h"

#include <string.h>
#include TT_BF16_HEADER
#include TT_FP8_HEADER
#include TT_HALF_HEADER

typedef uint16_t u16 __attribute__((aligned(1), may_alias));

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

static void widen_bf16(float *dst, const void *src, size_t count)
{
    const u16 *half = src;
    for (size_t i = 0; i < count; i++)
        dst[i] = tt_float_of((uint32_t)half[i] << 16);
}

static void narrow_bf16(void *dst, const float *src, size_t count)
{
    u16 *half = dst;
    for (size_t i = 0; i < count; i++)
        half[i] = tt_bf16_round(src[i]);
}

static void sum_two_bf16(void *dst, const void *a, const void *b, size_t count)
{
    tt_bf16_sum(dst, a, b, count);
}

static void sum_many_bf16(void *dst, const void *const *srcs, int nsrcs, size_t at, size_t count)
{
    tt_bf16_sum_many(dst, srcs, nsrcs, at, count);
}

/* ---- fp8 ---- */

static void widen_e4m3(float *dst, const void *src, size_t count)
{
    fp8_widen(dst, src, count, tt_e4m3);
}

static void narrow_e4m3(void *dst, const float *src, size_t count)
{
    fp8_narrow(dst, src, count, tt_e4m3);
}

static void sum_two_e4m3(void *dst, const void *a, const void *b, size_t count)
{
    fp8_sum(dst, a, b, count, tt_e4m3);
}

static void sum_give_e4m3(const struct tt_reduce_give *give, size_t count)
{
    fp8_sum_give(give, count, tt_e4m3);
}

static void widen_e5m2(float *dst, const void *src, size_t count)
{
    fp8_widen(dst, src, count, tt_e5m2);
}

static void narrow_e5m2(void *dst, const float *src, size_t count)
{
    fp8_narrow(dst, src, count, tt_e5m2);
}

static void sum_two_e5m2(void *dst, const void *a, const void *b, size_t count)
{
    fp8_sum(dst, a, b, count, tt_e5m2);
}

static void sum_give_e5m2(const struct tt_reduce_give *give, size_t count)
{
    fp8_sum_give(give, count, tt_e5m2);
}

#define FP32_PAIRS                                                                                 \
    {                                                                                              \
        sum, prod, max, min                                                                        \
    }
const struct tt_reduce_type tt_reduce_narrow[ncclNumTypes] = {
    [ncclFloat16] = {.elem_bytes = 2,
                     .pair = FP32_PAIRS,
                     .sum_two = tt_half_sum,
                     .sum_many = tt_half_sum_many,
                     .widen = tt_half_widen,
                     .narrow = tt_half_narrow,
                     .divide = divide},
    [ncclBfloat16] = {.elem_bytes = 2,
                      .pair = FP32_PAIRS,
                      .sum_two = sum_two_bf16,
                      .sum_many = sum_many_bf16,
                      .widen = widen_bf16,
                      .narrow = narrow_bf16,
                      .divide = divide},
    [ncclFloat8e4m3] = {.elem_bytes = 1,
                        .pair = FP32_PAIRS,
                        .sum_two = sum_two_e4m3,
                        .sum_give = FP8_GIVES ? sum_give_e4m3 : NULL,
                        .widen = widen_e4m3,
                        .narrow = narrow_e4m3,
                        .divide = divide},
    [ncclFloat8e5m2] = {.elem_bytes = 1,
                        .pair = FP32_PAIRS,
                        .sum_two = sum_two_e5m2,
                        .sum_give = FP8_GIVES ? sum_give_e5m2 : NULL,
                        .widen = widen_e5m2,
                        .narrow = narrow_e5m2,
                        .divide = divide},
};
#undef FP32_PAIRS
