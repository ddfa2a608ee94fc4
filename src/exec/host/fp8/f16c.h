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

/* Add sixteen to their sums, which are kept as fp32. */
static inline void fp8_add_half(__m256 sums[2], __m256i half)
{
    sums[0] = _mm256_add_ps(sums[0], _mm256_cvtph_ps(_mm256_castsi256_si128(half)));
    sums[1] = _mm256_add_ps(sums[1], _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1)));
}

/* 32 sums of all sources from element `from` on. False: there are infinities or NaNs. */
static inline bool fp8_sum_block(uint8_t *dst, const struct tt_reduce_give *give, size_t from,
                                 const struct tt_fp8 type)
{
    const bool e4m3 = type.most == 0x7e;
    const uint8_t *const *srcs = (const uint8_t *const *)give->srcs;
    __m256i first = _mm256_loadu_si256((const void *)(srcs[0] + from));
    __m256 low[2], high[2];
    __m256i half = fp8_half(first, false, e4m3), upper = fp8_half(first, true, e4m3);
    low[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(half));
    low[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(half, 1));
    high[0] = _mm256_cvtph_ps(_mm256_castsi256_si128(upper));
    high[1] = _mm256_cvtph_ps(_mm256_extracti128_si256(upper, 1));
    __m256i all = _mm256_and_si256(first, _mm256_set1_epi8(0x7f)); /* the largest codes */
    for (int k = 1; k < give->nsrcs; k++) {
        __m256i x = _mm256_loadu_si256((const void *)(srcs[k] + from));
        all = _mm256_max_epu8(all, _mm256_and_si256(x, _mm256_set1_epi8(0x7f)));
        fp8_add_half(low, fp8_half(x, false, e4m3));
        fp8_add_half(high, fp8_half(x, true, e4m3));
    }
    if (fp8_has_special(all, all, type)) return false;
    __m256i low_code = fp8_round_half(fp8_cut(low[0], low[1]), e4m3);
    __m256i high_code = fp8_round_half(fp8_cut(high[0], high[1]), e4m3);
    _mm256_store_si256((void *)dst, _mm256_packus_epi16(low_code, high_code));
    return true;
}

enum { FP8_GIVES = true };
static inline void fp8_sum_give(const struct tt_reduce_give *those, size_t count,
                                const struct tt_fp8 type)
{
    _Alignas(32) uint8_t sums[TT_REDUCE_GIVE];
    const struct tt_reduce_give give = *those; /* which no store changes */
    for (size_t at = 0, some; at < count; at += some) {
        some = count - at < TT_REDUCE_GIVE ? count - at : TT_REDUCE_GIVE;
        bool plain = some % FP8_HALVES == 0;
        for (size_t i = 0; i < some && plain; i += FP8_HALVES)
            plain = fp8_sum_block(sums + i, &give, give.from + at + i, type);
        if (!plain) tt_fp8_sum_group(sums, &give, give.from + at, some, type);
        tt_fp8_give(&give, at, sums, some);
    }
}
