/* Sums of bfloat16, 32 at a time, rounded by the processor (AVX-512 BF16). It treats subnormal fp32
 * as zero, so a block with such a sum is rounded with integer arithmetic. */
#pragma once

#include "exec/host/bf16_number.h"

#include <immintrin.h>
#include <stdbool.h>

enum { BF16_LANES = 32 };

static inline __mmask16 bf16_subnormal(__m512 even, __m512 odd)
{
    enum { SUBNORMAL = 0x20 };
    return _mm512_fpclass_ps_mask(even, SUBNORMAL) | _mm512_fpclass_ps_mask(odd, SUBNORMAL);
}

/* Round and store 32 sums; those of even and of odd numbers come apart and are interleaved. */
static inline void bf16_store(char *dst, __m512 even, __m512 odd)
{
    const __m512i in_turn =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
    _mm512_storeu_si512(dst, _mm512_permutexvar_epi16(in_turn, halves));
}

static inline __m512 bf16_sum_upper(__m512i x, __m512i y)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    return _mm512_add_ps(_mm512_castsi512_ps(_mm512_and_si512(x, upper)),
                         _mm512_castsi512_ps(_mm512_and_si512(y, upper)));
}

/* dst may be a or b. */
static inline void tt_bf16_sum(void *dst, const void *a, const void *b, size_t count)
{
    const char *p = a, *q = b;
    char *to = dst;
    size_t at = 0;
    for (; at + BF16_LANES <= count; at += BF16_LANES) {
        __m512i x = _mm512_loadu_si512(p + 2 * at), y = _mm512_loadu_si512(q + 2 * at);
        __m512 odd = bf16_sum_upper(x, y);
        __m512 even = bf16_sum_upper(_mm512_slli_epi32(x, 16), _mm512_slli_epi32(y, 16));
        if (bf16_subnormal(even, odd)) {
            tt_bf16_sum_pairs(to + 2 * at, p + 2 * at, q + 2 * at, BF16_LANES);
        } else {
            bf16_store(to + 2 * at, even, odd);
        }
    }
    tt_bf16_sum_pairs(to + 2 * at, p + 2 * at, q + 2 * at, count - at);
}

/* Add 32 numbers to their sums. */
static inline void bf16_add(__m512 *even, __m512 *odd, const char *from)
{
    __m512i x = _mm512_loadu_si512(from);
    __m512i upper = _mm512_and_si512(x, _mm512_set1_epi32((int)0xffff0000));
    *even = _mm512_add_ps(*even, _mm512_castsi512_ps(_mm512_slli_epi32(x, 16)));
    *odd = _mm512_add_ps(*odd, _mm512_castsi512_ps(upper));
}

/* 64 sums of all sources from element `at` on, kept as fp32. False: there are subnormal ones. */
static inline bool bf16_sum_block(char *dst, const void *const *srcs, int nsrcs, size_t at)
{
    const __m512 none = _mm512_set1_ps(-0.0f); /* what changes no number */
    __m512 even[2] = {none, none}, odd[2] = {none, none};
    for (int k = 0; k < nsrcs; k++) {
        const char *from = (const char *)srcs[k] + 2 * at;
        bf16_add(&even[0], &odd[0], from);
        bf16_add(&even[1], &odd[1], from + 2 * BF16_LANES);
    }
    if (bf16_subnormal(even[0], odd[0]) | bf16_subnormal(even[1], odd[1])) return false;
    bf16_store(dst, even[0], odd[0]);
    bf16_store(dst + 2 * BF16_LANES, even[1], odd[1]);
    return true;
}

/* dst may be a source from there on. */
static inline void tt_bf16_sum_many(void *dst, const void *const *srcs, int nsrcs, size_t at,
                                    size_t count)
{
    enum { BLOCK = 2 * BF16_LANES };
    char *to = dst;
    size_t done = 0;
    for (; done + BLOCK <= count; done += BLOCK) {
        if (!bf16_sum_block(to + 2 * done, srcs, nsrcs, at + done))
            tt_bf16_sum_many_each(to + 2 * done, srcs, nsrcs, at + done, BLOCK);
    }
    tt_bf16_sum_many_each(to + 2 * done, srcs, nsrcs, at + done, count - done);
}
