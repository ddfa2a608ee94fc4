/* fp8 to fp32 and back by way of fp16 (AVX2, F16C).
 *
 * The bits of an e5m2 are the upper byte of an fp16 of that value; those of an e4m3, moved into the
 * places of an fp16, have 2^-8 of its value, subnormals too. An fp32 is cut to an fp16, whose last
 * bit is set where something was lost; it is long enough that rounding it to fp8 equals rounding
 * the fp32. */
#pragma once

#include "exec/host/fp8/number.h"

#include <immintrin.h>
#include <stdbool.h>

enum { FP8_HALVES = 32 }; /* numbers that make two vectors of fp16 */

/* fp16 of the lower or upper eight bytes of each half, signs in place. */
static inline __m256i fp8_half(__m256i bytes, bool upper, bool is_e4m3)
{
    __m256i zero = _mm256_setzero_si256();
    __m256i high = upper ? _mm256_unpackhi_epi8(zero, bytes) : _mm256_unpacklo_epi8(zero, bytes);
    if (!is_e4m3) return high;
    return _mm256_and_si256(_mm256_srai_epi16(high, 1), _mm256_set1_epi16((short)0xbf80));
}

/* Whether a code of either is beyond the largest number: infinities and NaNs go one by one. */
static inline bool fp8_has_special(__m256i x, __m256i y, const struct tt_fp8 type)
{
    __m256i code = _mm256_set1_epi8(0x7f), most = _mm256_set1_epi8((char)type.most);
    __m256i larger = _mm256_max_epu8(_mm256_and_si256(x, code), _mm256_and_si256(y, code));
    return _mm256_movemask_epi8(_mm256_cmpgt_epi8(larger, most)) != 0;
}

static inline void fp8_widen(float *dst, const uint8_t *src, size_t count, const struct tt_fp8 type)
{
    const bool e4m3 = type.most == 0x7e;
    const __m256 scale = _mm256_set1_ps(e4m3 ? 0x1p8f : 1.0f);
    size_t at = 0;
    for (; at + FP8_HALVES <= count; at += FP8_HALVES) {
        __m256i x = _mm256_loadu_si256((const void *)(src + at));
        if (fp8_has_special(x, x, type)) {
            tt_fp8_widen_each(dst + at, src + at, FP8_HALVES, type);
            continue;
        }
        __m256i low = fp8_half(x, false, e4m3), high = fp8_half(x, true, e4m3);
        const __m128i eights[] = {_mm256_castsi256_si128(low), _mm256_castsi256_si128(high),
                                  _mm256_extracti128_si256(low, 1),
                                  _mm256_extracti128_si256(high, 1)};
        for (int k = 0; k < 4; k++) {
            __m256 value = _mm256_mul_ps(_mm256_cvtph_ps(eights[k]), scale);
            _mm256_storeu_ps(dst + at + 8 * k, value);
        }
    }
    tt_fp8_widen_each(dst + at, src + at, count - at, type);
}

/* fp16 with what rounding lost, from the two times eight fp32. */
static inline __m256i fp8_cut(__m256 lower, __m256 upper)
{
    __m128i low = _mm256_cvtps_ph(lower, _MM_FROUND_TO_ZERO);
    __m128i high = _mm256_cvtps_ph(upper, _MM_FROUND_TO_ZERO);
    __m256i low_lost = _mm256_castps_si256(_mm256_cmp_ps(_mm256_cvtph_ps(low), lower, _CMP_NEQ_UQ));
    __m256i high_lost =
        _mm256_castps_si256(_mm256_cmp_ps(_mm256_cvtph_ps(high), upper, _CMP_NEQ_UQ));
    __m256i lost = _mm256_permute4x64_epi64(_mm256_packs_epi32(low_lost, high_lost), 0xd8);
    __m256i cut = _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
    return _mm256_or_si256(cut, _mm256_srli_epi16(lost, 15));
}

/* Rounded codes with signs, a 16-bit lane each. */
static inline __m256i fp8_round_half(__m256i half, bool is_e4m3)
{
    const int drop = is_e4m3 ? 7 : 8;
    __m256i magnitude = _mm256_and_si256(half, _mm256_set1_epi16(0x7fff));
    __m256i odd = _mm256_and_si256(_mm256_srli_epi16(magnitude, drop), _mm256_set1_epi16(1));
    __m256i most = _mm256_set1_epi16(is_e4m3 ? 0x7e : 0x7b);
    magnitude = _mm256_add_epi16(magnitude, _mm256_set1_epi16((short)((1 << (drop - 1)) - 1)));
    __m256i code = _mm256_srli_epi16(_mm256_add_epi16(magnitude, odd), drop);
    __m256i sign = _mm256_and_si256(_mm256_srli_epi16(half, 8), _mm256_set1_epi16(0x80));
    return _mm256_or_si256(_mm256_min_epi16(code, most), sign);
}

/* Sixteen with a NaN among them go one by one. */
static inline void fp8_narrow(uint8_t *dst, const float *src, size_t count,
                              const struct tt_fp8 type)
{
    const bool is_e4m3 = type.most == 0x7e;
    const __m256 scale = _mm256_set1_ps(is_e4m3 ? 0x1p-8f : 1.0f);
    size_t at = 0;
    for (; at + 16 <= count; at += 16) {
        __m256 lower = _mm256_loadu_ps(src + at), upper = _mm256_loadu_ps(src + at + 8);
        __m256 nan = _mm256_cmp_ps(lower, upper, _CMP_UNORD_Q);
        if (_mm256_movemask_ps(nan)) {
            tt_fp8_narrow_each(dst + at, src + at, 16, type);
            continue;
        }
        __m256i half = fp8_cut(_mm256_mul_ps(lower, scale), _mm256_mul_ps(upper, scale));
        __m256i code = fp8_round_half(half, is_e4m3);
        __m128i packed =
            _mm_packus_epi16(_mm256_castsi256_si128(code), _mm256_extracti128_si256(code, 1));
        _mm_storeu_si128((void *)(dst + at), packed);
    }
    tt_fp8_narrow_each(dst + at, src + at, count - at, type);
}
