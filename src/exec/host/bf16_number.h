/* bfloat16, the upper half of an fp32, rounded with integer arithmetic. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t tt_bf16_bits __attribute__((aligned(1), may_alias));
typedef uint32_t tt_bf16_pair __attribute__((aligned(1), may_alias)); /* two numbers */

static inline float tt_bf16_float(uint32_t upper)
{
    float value;
    memcpy(&value, &upper, sizeof(value));
    return value;
}

/* Rounded, in place: the result is the upper half. */
static inline uint32_t tt_bf16_upper(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
    return value != value ? bits | 0x400000 : rounded;
}

static inline uint16_t tt_bf16_round(float value)
{
    return (uint16_t)(tt_bf16_upper(value) >> 16);
}

/* Sum two numbers per 32-bit word: the lower one is shifted up, the upper one is used in place, so
 * that nothing is packed. dst may be a or b. */
static inline void tt_bf16_sum_pairs(void *dst, const void *a, const void *b, size_t count)
{
    tt_bf16_pair *d = dst;
    const tt_bf16_pair *x = a, *y = b;
    size_t npairs = count / 2;
    _Pragma("GCC ivdep") for (size_t i = 0; i < npairs; i++)
    {
        float lower = tt_bf16_float(x[i] << 16) + tt_bf16_float(y[i] << 16);
        float upper = tt_bf16_float(x[i] & 0xffff0000) + tt_bf16_float(y[i] & 0xffff0000);
        d[i] = (tt_bf16_upper(upper) & 0xffff0000) | tt_bf16_upper(lower) >> 16;
    }
    if (count % 2 == 0) return;
    const tt_bf16_bits *xs = a, *ys = b;
    float last =
        tt_bf16_float((uint32_t)xs[count - 1] << 16) + tt_bf16_float((uint32_t)ys[count - 1] << 16);
    ((tt_bf16_bits *)dst)[count - 1] = tt_bf16_round(last);
}

/* One element of tt_bf16_sum_many_each(). */
static inline tt_bf16_bits tt_bf16_sum_one(const void *const *srcs, int nsrcs, size_t at)
{
    float sum = tt_bf16_float((uint32_t)((const tt_bf16_bits *)srcs[0])[at] << 16);
    for (int k = 1; k < nsrcs; k++)
        sum = sum + tt_bf16_float((uint32_t)((const tt_bf16_bits *)srcs[k])[at] << 16);
    return tt_bf16_round(sum);
}

/* Add a source's pairs to the sums, or begin them with it. */
static inline void tt_bf16_add_pairs(float *lower, float *upper, const tt_bf16_pair *x,
                                     size_t count, bool first)
{
    for (size_t i = 0; i < count; i++) {
        float low = tt_bf16_float(x[i] << 16), up = tt_bf16_float(x[i] & 0xffff0000);
        lower[i] = first ? low : lower[i] + low;
        upper[i] = first ? up : upper[i] + up;
    }
}

/* Sums of several sources from element `at` on, rounded once. Each block is whole before it is
 * stored, so dst may be a source there. */
static inline void tt_bf16_sum_many_each(void *dst, const void *const *srcs, int nsrcs, size_t at,
                                         size_t count)
{
    enum { PAIRS = 64 };
    float lower[PAIRS] = {0}, upper[PAIRS] = {0};
    size_t done = 0;
    for (; done + 2 * PAIRS <= count; done += 2 * PAIRS) {
        for (int k = 0; k < nsrcs; k++) {
            const tt_bf16_pair *x = (const void *)((const tt_bf16_bits *)srcs[k] + at + done);
            tt_bf16_add_pairs(lower, upper, x, PAIRS, k == 0);
        }
        tt_bf16_pair *d = (void *)((tt_bf16_bits *)dst + done);
        for (size_t i = 0; i < PAIRS; i++)
            d[i] = (tt_bf16_upper(upper[i]) & 0xffff0000) | tt_bf16_upper(lower[i]) >> 16;
    }
    for (; done < count; done++)
        ((tt_bf16_bits *)dst)[done] = tt_bf16_sum_one(srcs, nsrcs, at + done);
}
