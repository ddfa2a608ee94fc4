/* Sums of fp8 by way of fp16, 32 at a time (AVX2, F16C). */
#pragma once

#include "exec/host/fp8/convert.h"

static inline __m256i fp8_sum_half(__m256i x, __m256i y, bool is_e4m3)
{
    __m256 lower = _mm256_add_ps(_mm256_cvtph_ps(_mm256_castsi256_si128(x)),
                                 _mm256_cvtph_ps(_mm256_castsi256_si128(y)));
    __m256 upper = _mm256_add_ps(_mm256_cvtph_ps(_mm256_extracti128_si256(x, 1)),
                                 _mm256_cvtph_ps(_mm256_extracti128_si256(y, 1)));
    return fp8_round_half(fp8_cut(lower, upper), is_e4m3);
}

/* dst may be a or b. */
static inline void fp8_sum(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t count,
                           const struct tt_fp8 type)
{
    const bool e4m3 = type.most == 0x7e;
    size_t at = 0;
    for (; at + FP8_HALVES <= count; at += FP8_HALVES) {
        __m256i x = _mm256_loadu_si256((const void *)(a + at));
        __m256i y = _mm256_loadu_si256((const void *)(b + at));
        if (fp8_has_special(x, y, type)) {
            tt_fp8_sum_each(dst + at, a + at, b + at, FP8_HALVES, type);
            continue;
        }
        __m256i low = fp8_sum_half(fp8_half(x, false, e4m3), fp8_half(y, false, e4m3), e4m3);
        __m256i high = fp8_sum_half(fp8_half(x, true, e4m3), fp8_half(y, true, e4m3), e4m3);
        _mm256_storeu_si256((void *)(dst + at), _mm256_packus_epi16(low, high));
    }
    tt_fp8_sum_each(dst + at, a + at, b + at, count - at, type);
}
