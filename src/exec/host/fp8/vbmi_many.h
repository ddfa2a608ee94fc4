/* Sums of more than two fp8, as fp32, 64 at a time (AVX-512 VBMI).
 *
 * The upper half of an fp32 is enough for an fp8 and is looked up; wide_vbmi.h and wide_bf16.h add
 * it. A sum is rounded from its upper half, and the tie's side from whether the lower one is zero.
 */
#pragma once

#include "exec/host/fp8/vbmi.h"
#include "exec/host/reduce.h"

/* A constant that stays in a register: compilers make small ones anew for each block. */
static inline __m512i fp8_kept(int word)
{
    __asm__("" : "+r"(word)); /* of the word: clang takes no vector of this width here */
    return _mm512_set1_epi32(word);
}

struct fp8_wide {
    __m512i low[2], high[2]; /* tables: by code the lower and the upper byte of its upper half */
    __m512i sign, word;
};

/* A way to add 64 numbers of a source, or of two one after the other, to four times sixteen sums.
 */
struct fp8_way {
    int word;                  /* in each word of fp8_wide's */
    const uint16_t *positions; /* of the sums' upper halves: 32 words of sum[0] and sum[1] that are
                                  the lower eight numbers of each sixteen (the others are in sum[2]
                                  and sum[3]) */
    void (*add)(__m512 sum[4], __m512i x, const struct fp8_wide *wide);
    void (*add_two)(__m512 sum[4], __m512i x, __m512i y, const struct fp8_wide *wide);
};

/* What the loop below needs of a type. Names say what the bits are, in each 8 or 16 of them. */
struct fp8_constants {
    struct fp8_wide wide;
    __m512i uppers, lowers, small; /* tables */
    __m512i sign, magnitude, ones, one, half, rebias, end, bias, most;
    int drop; /* bits of an upper half that a code has not */
};

__attribute__((always_inline)) static inline struct fp8_constants
fp8_constants_of(const struct tt_fp8 type, const struct fp8_way *way)
{
    const struct tt_fp8_tables *tables = fp8_tables_of(type);
    const int mantissa = tables->mantissa, drop = 7 - mantissa;
    const int rebias = ((mantissa == 3 ? 120 : 112) << mantissa) - TT_FP8_BIAS;
    const __m512i uppers = _mm512_loadu_si512(way->positions);
    return (struct fp8_constants){
        .wide = {.low = {_mm512_loadu_si512(tables->wide_low),
                         _mm512_loadu_si512(tables->wide_low + 64)},
                 .high = {_mm512_loadu_si512(tables->wide_high),
                          _mm512_loadu_si512(tables->wide_high + 64)},
                 .sign = fp8_kept((int)0x80808080),
                 .word = fp8_kept(way->word)},
        .uppers = uppers,
        .lowers = _mm512_sub_epi16(uppers, _mm512_set1_epi16(1)),
        .small = _mm512_loadu_si512(tables->small),
        .sign = fp8_kept((int)0x80808080),
        .magnitude = fp8_kept(0x7fff7fff),
        .ones = fp8_kept(-1),
        .one = fp8_kept(0x10001),
        .half = fp8_kept(((1 << (drop - 1)) - 1) * 0x10001),
        .rebias = fp8_kept(rebias * 0x10001),
        .end = fp8_kept((TT_FP8_BIAS + (1 << mantissa)) * 0x1010101),
        .bias = fp8_kept(TT_FP8_BIAS * 0x1010101),
        .most = fp8_kept((mantissa == 3 ? 0x7e : 0x7b) * 0x1010101),
        .drop = drop,
    };
}

/* Upper halves of 32 sums in turn, and the nearest codes (ties to even) without signs, as if
 * exponents had no end, plus TT_FP8_BIAS. To the next code goes what is above the middle of two:
 * there the bits below the code, plus half less one, carry if the code is odd or the lower half is
 * not zero. */
struct fp8_rounded {
    __m512i upper, code;
};
__attribute__((always_inline)) static inline struct fp8_rounded
fp8_round_words(__m512 a, __m512 b, const struct fp8_constants *c)
{
    const __m512i x = _mm512_castps_si512(a), y = _mm512_castps_si512(b);
    const __m512i upper = _mm512_permutex2var_epi16(x, c->uppers, y);
    const __m512i lower = _mm512_permutex2var_epi16(x, c->lowers, y);
    const __m512i magnitude = _mm512_and_si512(upper, c->magnitude);
    const __m512i lost = _mm512_min_epu16(lower, c->one);
    const __m512i carry =
        fp8_or_and(lost, _mm512_srli_epi16(magnitude, (unsigned int)c->drop), c->one);
    const __m512i sum = _mm512_add_epi16(_mm512_add_epi16(magnitude, c->half), carry);
    return (struct fp8_rounded){
        upper, _mm512_subs_epu16(_mm512_srli_epi16(sum, (unsigned int)c->drop), c->rebias)};
}

/* 64 sums of all sources from element `from` on. Returns whose codes are beyond any end, as those
 * of infinities and NaNs: they are not right. */
__attribute__((always_inline)) static inline __mmask64
fp8_sum_block(uint8_t *dst, const struct tt_reduce_give *give, size_t from,
              const struct fp8_way *way, const struct fp8_constants *c)
{
    const __m512 none = _mm512_set1_ps(-0.0f); /* what changes no number */
    const uint8_t *const *const srcs = (const uint8_t *const *)give->srcs;
    __m512 sum[4] = {none, none, none, none};
    int k = 0;
    for (; k + 2 <= give->nsrcs; k += 2) {
        way->add_two(sum, _mm512_loadu_si512(srcs[k] + from),
                     _mm512_loadu_si512(srcs[k + 1] + from), &c->wide);
    }
    if (k < give->nsrcs) way->add(sum, _mm512_loadu_si512(srcs[k] + from), &c->wide);
    const struct fp8_rounded low = fp8_round_words(sum[0], sum[1], c);
    const struct fp8_rounded high = fp8_round_words(sum[2], sum[3], c);
    const __m512i codes = _mm512_packus_epi16(low.code, high.code);
    const __m512i code = fp8_end_codes(codes, c->end, c->bias, c->most, c->small);
    const __m512i result = fp8_or_and(code, _mm512_packs_epi16(low.upper, high.upper), c->sign);
    _mm512_store_si512(dst, result);
    return _mm512_cmpeq_epi8_mask(codes, c->ones);
}

/* In another way; apart, so that the loop below keeps its registers. */
__attribute__((noinline)) static void fp8_sum_others(uint8_t *dst,
                                                     const struct tt_reduce_give *give, size_t from,
                                                     size_t count, const struct tt_fp8 type)
{
    tt_fp8_sum_group(dst, give, from, count, type);
}

enum { FP8_GIVES = true };
__attribute__((always_inline)) static inline void
fp8_sum_give_by(const struct fp8_way *way, const struct tt_reduce_give *those, size_t count,
                const struct tt_fp8 type)
{
    _Alignas(64) uint8_t sums[TT_REDUCE_GIVE];
    const struct tt_reduce_give give = *those; /* which no store changes */
    const struct fp8_constants constants = fp8_constants_of(type, way);
    for (size_t at = 0, some; at < count; at += some) {
        some = count - at < TT_REDUCE_GIVE ? count - at : TT_REDUCE_GIVE;
        __mmask64 special = some % FP8_LANES; /* or more than whole vectors */
        for (size_t i = 0; i + FP8_LANES <= some; i += FP8_LANES)
            special |= fp8_sum_block(sums + i, &give, give.from + at + i, way, &constants);
        if (special) fp8_sum_others(sums, those, those->from + at, some, type);
        tt_fp8_give(&give, at, sums, some);
    }
}
