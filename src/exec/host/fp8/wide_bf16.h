/* Sums of more than two fp8, by dot products with ones (AVX-512 BF16): these add the product of the
 * upper halves first and then that of the lower ones, rounding each time, so a source lies above
 * the one that comes after it. They take subnormals as zero; an fp8 and sums of them are none. */
#pragma once

#include "exec/host/fp8/vbmi_many.h"

/* Eight numbers of each sixteen, those of two sources in turn. */
__attribute__((always_inline)) static inline void
fp8_add_pairs(__m512 *first, __m512 *second, __m512i pairs, const struct fp8_wide *wide)
{
    const __m512i low = _mm512_permutex2var_epi8(wide->low[0], pairs, wide->low[1]);
    const __m512i size = _mm512_permutex2var_epi8(wide->high[0], pairs, wide->high[1]);
    const __m512i high = fp8_or_and(size, pairs, wide->sign);
    const __m512bh ones = (__m512bh)wide->word;
    *first = _mm512_dpbf16_ps(*first, (__m512bh)_mm512_unpacklo_epi8(low, high), ones);
    *second = _mm512_dpbf16_ps(*second, (__m512bh)_mm512_unpackhi_epi8(low, high), ones);
}

__attribute__((always_inline)) static inline void fp8_add_two(__m512 sum[4], __m512i x, __m512i y,
                                                              const struct fp8_wide *wide)
{
    fp8_add_pairs(&sum[0], &sum[1], _mm512_unpacklo_epi8(y, x), wide);
    fp8_add_pairs(&sum[2], &sum[3], _mm512_unpackhi_epi8(y, x), wide);
}

/* The second source is minus zero, which changes no number. */
__attribute__((always_inline)) static inline void fp8_add(__m512 sum[4], __m512i x,
                                                          const struct fp8_wide *wide)
{
    fp8_add_two(sum, x, wide->sign, wide);
}

__attribute__((always_inline)) static inline void
fp8_sum_give(const struct tt_reduce_give *give, size_t count, const struct tt_fp8 type)
{
    static const uint16_t by_fours[32] = {1,  3,  5,  7,  33, 35, 37, 39, 9,  11, 13,
                                          15, 41, 43, 45, 47, 17, 19, 21, 23, 49, 51,
                                          53, 55, 25, 27, 29, 31, 57, 59, 61, 63};
    const struct fp8_way way = {
        .word = 0x3f803f80, .positions = by_fours, .add = fp8_add, .add_two = fp8_add_two};
    fp8_sum_give_by(&way, give, count, type);
}
