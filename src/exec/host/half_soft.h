/* fp16 to fp32 and back with integer arithmetic alone, for processors without conversions.
 * Rounds to nearest even; NaNs stay NaNs (quiet). */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef uint16_t tt_half_bits __attribute__((aligned(1), may_alias));

static inline float tt_half_float(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, rest = half & 0x7fff;
    uint32_t moved = rest << 13, bits;
    float value;
    memcpy(&value, &moved, sizeof(value));
    value *= 0x1p112f;
    memcpy(&bits, &value, sizeof(bits));
    bits = sign | (rest >= 0x7c00 ? 0x7f800000 | moved : bits);
    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint16_t tt_half_round(float value)
{
    const uint32_t magic = 0x3f000000; /* 0.5: its last place is the smallest subnormal */
    uint32_t bits, tiny;
    memcpy(&bits, &value, sizeof(bits));
    uint32_t magnitude = bits & 0x7fffffff;
    float shifted;
    memcpy(&shifted, &magnitude, sizeof(shifted));
    shifted += 0.5f;
    memcpy(&tiny, &shifted, sizeof(tiny));
    uint32_t normal = ((magnitude + 0xfff + (magnitude >> 13 & 1)) >> 13) - (112 << 10);
    uint32_t half = magnitude < 0x38800000 ? tiny - magic : normal;
    half = half > 0x7c00 ? 0x7c00 : half;
    half = magnitude > 0x7f800000 ? 0x7e00 | (magnitude >> 13 & 0x3ff) : half;
    return (uint16_t)(bits >> 16 & 0x8000) | (uint16_t)half;
}

static void tt_half_widen(float *dst, const void *src, size_t count)
{
    const tt_half_bits *half = src;
    for (size_t i = 0; i < count; i++)
        dst[i] = tt_half_float(half[i]);
}

static void tt_half_narrow(void *dst, const float *src, size_t count)
{
    tt_half_bits *half = dst;
    for (size_t i = 0; i < count; i++)
        half[i] = tt_half_round(src[i]);
}

static void tt_half_sum(void *dst, const void *a, const void *b, size_t count)
{
    tt_half_bits *d = dst;
    const tt_half_bits *x = a, *y = b;
    _Pragma("GCC ivdep") for (size_t i = 0; i < count; i++)
    {
        d[i] = tt_half_round(tt_half_float(x[i]) + tt_half_float(y[i]));
    }
}

/* Sums of several sources from element `at` on, rounded once; dst may be a source there. */
static void tt_half_sum_many(void *dst, const void *const *srcs, int nsrcs, size_t at, size_t count)
{
    enum { BLOCK = 128 };
    float sums[BLOCK];
    for (size_t done = 0; done < count; done += BLOCK) {
        size_t some = count - done < BLOCK ? count - done : BLOCK;
        for (int k = 0; k < nsrcs; k++) {
            const tt_half_bits *x = (const tt_half_bits *)srcs[k] + at + done;
            for (size_t i = 0; i < some; i++)
                sums[i] = k == 0 ? tt_half_float(x[i]) : sums[i] + tt_half_float(x[i]);
        }
        tt_half_narrow((tt_half_bits *)dst + done, sums, some);
    }
}
