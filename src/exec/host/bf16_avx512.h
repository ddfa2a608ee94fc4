/* Sums of bfloat16, 32 at a time, rounded by the processor (AVX-512 BF16). It takes subnormal fp32
 * for zero, so 32 with such a sum among them are rounded with integers. */
#pragma once

#include "exec/host/bf16_number.h"

#include <immintrin.h>

static inline __m512 bf16_sum_upper(__m512i x, __m512i y)
{
    const __m512i upper = _mm512_set1_epi32((int)0xffff0000);
    return _mm512_add_ps(_mm512_castsi512_ps(_mm512_and_si512(x, upper)),
                         _mm512_castsi512_ps(_mm512_and_si512(y, upper)));
}

/* dst may be a or b. */
static inline void tt_bf16_sum(void *dst, const void *a, const void *b, size_t count)
{
    enum { LANES = 32, SUBNORMAL = 0x20 };
    const __m512i in_turn =
        _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                         21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    const char *p = a, *q = b;
    char *to = dst;
    size_t at = 0;
    for (; at + LANES <= count; at += LANES) {
        __m512i x = _mm512_loadu_si512(p + 2 * at), y = _mm512_loadu_si512(q + 2 * at);
        __m512 odd = bf16_sum_upper(x, y);
        __m512 even = bf16_sum_upper(_mm512_slli_epi32(x, 16), _mm512_slli_epi32(y, 16));
        if (_mm512_fpclass_ps_mask(even, SUBNORMAL) | _mm512_fpclass_ps_mask(odd, SUBNORMAL)) {
            tt_bf16_sum_pairs(to + 2 * at, p + 2 * at, q + 2 * at, LANES);
            continue;
        }
        __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(odd, even);
        _mm512_storeu_si512(to + 2 * at, _mm512_permutexvar_epi16(in_turn, halves));
    }
    tt_bf16_sum_pairs(to + 2 * at, p + 2 * at, q + 2 * at, count - at);
}
