/* Sums of more than two fp8, those of even and of odd numbers apart (AVX-512 VBMI). */
#pragma once

#include "exec/host/fp8/vbmi_many.h"

__attribute__((always_inline)) static inline void fp8_add(__m512 sum[4], __m512i x,
                                                          const struct fp8_wide *wide)
{
    const __m512i low = _mm512_permutex2var_epi8(wide->low[0], x, wide->low[1]);
    const __m512i size = _mm512_permutex2var_epi8(wide->high[0], x, wide->high[1]);
    const __m512i high = fp8_or_and(size, x, wide->sign);
    const __m512i halves[] = {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
    for (int k = 0; k < 2; k++) {
        const __m512i even = _mm512_slli_epi32(halves[k], 16);
        const __m512i odd = _mm512_and_si512(halves[k], wide->word);
        sum[2 * k] = _mm512_add_ps(sum[2 * k], _mm512_castsi512_ps(even));
        sum[2 * k + 1] = _mm512_add_ps(sum[2 * k + 1], _mm512_castsi512_ps(odd));
    }
}

__attribute__((always_inline)) static inline void fp8_add_two(__m512 sum[4], __m512i x, __m512i y,
                                                              const struct fp8_wide *wide)
{
    fp8_add(sum, x, wide);
    fp8_add(sum, y, wide);
}

__attribute__((always_inline)) static inline void
fp8_sum_give(const struct tt_reduce_give *give, size_t count, const struct tt_fp8 type)
{
    static const uint16_t in_turn[32] = {1,  33, 3,  35, 5,  37, 7,  39, 9,  41, 11,
                                         43, 13, 45, 15, 47, 17, 49, 19, 51, 21, 53,
                                         23, 55, 25, 57, 27, 59, 29, 61, 31, 63};
    const struct fp8_way way = {
        .word = (int)0xffff0000, .positions = in_turn, .add = fp8_add, .add_two = fp8_add_two};
    fp8_sum_give_by(&way, give, count, type);
}
