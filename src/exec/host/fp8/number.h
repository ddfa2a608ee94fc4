/* fp8 numbers to fp32 and back, one by one, in loops that compilers vectorise. */
#pragma once

#include "exec/host/reduce.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline float tt_float_of(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint32_t tt_float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* The bits move into an fp32's places. A subnormal is a number of the next exponent less that
 * exponent's power: no subnormal fp32 is ever computed with, which some processors do slowly. */
static inline float tt_e4m3_float(uint32_t byte)
{
    uint32_t sign = (byte & 0x80) << 24, rest = byte & 0x7f;
    uint32_t normal = (rest << 20) + (120 << 23);
    uint32_t tiny = tt_float_bits(tt_float_of(normal + (1 << 23)) - 0x1p-6f);
    uint32_t magnitude = rest < 8 ? tiny : normal;
    return tt_float_of(sign | (rest == 0x7f ? 0x7fc00000 : magnitude));
}

static inline float tt_e5m2_float(uint32_t byte)
{
    uint32_t sign = (byte & 0x80) << 24, rest = byte & 0x7f;
    uint32_t normal = (rest << 21) + (112 << 23);
    uint32_t tiny = tt_float_bits(tt_float_of(normal + (1 << 23)) - 0x1p-14f);
    uint32_t magnitude = rest < 4 ? tiny : normal;
    uint32_t special = 0x7f800000 | (rest & 3) << 21;
    return tt_float_of(sign | (rest >= 0x7c ? special : magnitude));
}

struct tt_fp8 {
    float (*widen)(uint32_t byte);
    uint32_t shift;  /* mantissa bits to drop from fp32 */
    uint32_t rebias; /* difference of the exponents' biases, in place of the result */
    float magic;     /* its unit in the last place is the smallest subnormal */
    uint32_t normal; /* fp32 bits of the smallest normal number */
    uint32_t most;   /* the largest finite number, as fp8 */
};

/* Constants where the functions below are inlined, so nothing is called or read from memory. */
static const struct tt_fp8 tt_e4m3 = {tt_e4m3_float, 20, (127 - 7) << 3, 0x1p14f, 0x3c800000, 0x7e};
static const struct tt_fp8 tt_e5m2 = {tt_e5m2_float, 21, (127 - 15) << 2, 0x1p7f, 0x38800000, 0x7b};

/* To nearest, ties to even. Saturates: nothing finite becomes infinite, infinities become the
 * largest number. */
static inline uint32_t tt_fp8_round(float number, const struct tt_fp8 type)
{
    uint32_t bits = tt_float_bits(number), magnitude = bits & 0x7fffffff;
    uint32_t odd = magnitude >> type.shift & 1;
    uint32_t half = ((uint32_t)1 << (type.shift - 1)) - 1 + odd;
    uint32_t normal = ((magnitude + half) >> type.shift) - type.rebias;
    uint32_t tiny = tt_float_bits(tt_float_of(magnitude) + type.magic) - tt_float_bits(type.magic);
    uint32_t value = magnitude < type.normal ? tiny : normal;
    value = value > type.most ? type.most : value;
    value = magnitude > 0x7f800000 ? 0x7f : value;
    return (bits >> 24 & 0x80) | value;
}

static inline void tt_fp8_widen_each(float *dst, const uint8_t *src, size_t count,
                                     const struct tt_fp8 type)
{
    for (size_t i = 0; i < count; i++)
        dst[i] = type.widen(src[i]);
}

#define FP8_BLOCK 64

/* Rounding and packing are two loops: compilers vectorise either, not both in one. A block is
 * complete before it is stored, so dst may be a source of the sums below. */
static inline void tt_fp8_narrow_each(uint8_t *dst, const float *src, size_t count,
                                      const struct tt_fp8 type)
{
    uint32_t block[FP8_BLOCK];
    for (size_t at = 0; at < count; at += FP8_BLOCK) {
        size_t some = count - at < FP8_BLOCK ? count - at : FP8_BLOCK;
        for (size_t i = 0; i < some; i++)
            block[i] = tt_fp8_round(src[at + i], type);
        for (size_t i = 0; i < some; i++)
            dst[at + i] = (uint8_t)block[i];
    }
}

/* Sums of blocks of a constant size stay in registers; the end goes one by one. */
static inline void tt_fp8_sum_each(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t count,
                                   const struct tt_fp8 type)
{
    float block[FP8_BLOCK];
    size_t at = 0;
    for (; at + FP8_BLOCK <= count; at += FP8_BLOCK) {
        for (size_t i = 0; i < FP8_BLOCK; i++)
            block[i] = type.widen(a[at + i]) + type.widen(b[at + i]);
        tt_fp8_narrow_each(dst + at, block, FP8_BLOCK, type);
    }
    for (; at < count; at++)
        dst[at] = (uint8_t)tt_fp8_round(type.widen(a[at]) + type.widen(b[at]), type);
}

/* Sums of all sources, at most FP8_BLOCK, from element `from` on. */
static inline void tt_fp8_sum_block(uint8_t *dst, const struct tt_reduce_give *give, size_t from,
                                    size_t count, const struct tt_fp8 type)
{
    float sums[FP8_BLOCK];
    tt_fp8_widen_each(sums, (const uint8_t *)give->srcs[0] + from, count, type);
    for (int k = 1; k < give->nsrcs; k++) {
        const uint8_t *src = (const uint8_t *)give->srcs[k] + from;
        for (size_t i = 0; i < count; i++)
            sums[i] = sums[i] + type.widen(src[i]);
    }
    tt_fp8_narrow_each(dst, sums, count, type);
}

/* Up to TT_REDUCE_GIVE sums of all sources from element `from` on. */
static inline void tt_fp8_sum_group(uint8_t *dst, const struct tt_reduce_give *give, size_t from,
                                    size_t count, const struct tt_fp8 type)
{
    for (size_t i = 0; i < count; i += FP8_BLOCK) {
        size_t some = count - i < FP8_BLOCK ? count - i : FP8_BLOCK;
        tt_fp8_sum_block(dst + i, give, from + i, some, type);
    }
}

/* Store up to TT_REDUCE_GIVE sums to all destinations, `at` elements behind their first. */
static inline void tt_fp8_give(const struct tt_reduce_give *give, size_t at, const uint8_t *sums,
                               size_t count)
{
    for (int k = 0; k < give->ndsts; k++) {
        uint8_t *const dst = (uint8_t *)give->dsts[k] + give->to + at;
        if (count == TT_REDUCE_GIVE) {
            memcpy(dst, sums, TT_REDUCE_GIVE); /* no call */
        } else {
            memcpy(dst, sums, count);
        }
    }
}
