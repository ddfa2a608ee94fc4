/* Sums of more than two fp8, as fp32, 64 at a time (AVX-512 VBMI).
 *
 * The upper half of an fp32 is enough for an fp8 and is looked up. A sum is cut to its upper half
 * again, whose last bit says whether something was cut off, and rounded there. */
#pragma once

#include "exec/host/fp8/vbmi.h"

/* A constant that stays in a register: compilers make small ones anew for each block. */
static inline __m512i fp8_kept(int word)
{
    __asm__("" : "+r"(word)); /* of the word: clang takes no vector of this width here */
    return _mm512_set1_epi32(word);
}

/* What the loop below needs of a type. Names say what the bits are, in each 16 or 32 of them. */
struct fp8_constants {
    __m512i wide_low[2], wide_high[2], small; /* tables */
    __m512i sign, upper, lower, last, magnitude, infinite, one, half, rebias, end, bias, most;
};

__attribute__((always_inline)) static inline struct fp8_constants
fp8_constants_of(const struct tt_fp8 type)
{
    const struct tt_fp8_tables *tables = fp8_tables_of(type);
    const int mantissa = tables->mantissa, drop = 7 - mantissa;
    const int rebias = ((mantissa == 3 ? 120 : 112) << mantissa) - TT_FP8_BIAS;
    return (struct fp8_constants){
        .wide_low = {_mm512_loadu_si512(tables->wide_low),
                     _mm512_loadu_si512(tables->wide_low + 64)},
        .wide_high = {_mm512_loadu_si512(tables->wide_high),
                      _mm512_loadu_si512(tables->wide_high + 64)},
        .small = _mm512_loadu_si512(tables->small),
        .sign = fp8_kept((int)0x80808080),
        .upper = fp8_kept((int)0xffff0000),
        .lower = fp8_kept(0xffff),
        .last = fp8_kept(0x10000),
        .magnitude = fp8_kept(0x7fff7fff),
        .infinite = fp8_kept(0x7f807f80),
        .one = fp8_kept(0x10001),
        .half = fp8_kept(((1 << (drop - 1)) - 1) * 0x10001),
        .rebias = fp8_kept(rebias * 0x10001),
        .end = fp8_kept((TT_FP8_BIAS + (1 << mantissa)) * 0x1010101),
        .bias = fp8_kept(TT_FP8_BIAS * 0x1010101),
        .most = fp8_kept((mantissa == 3 ? 0x7e : 0x7b) * 0x1010101),
    };
}

/* The upper halves of fp32 are looked up; those of even and of odd numbers are added apart. */
struct fp8_wide {
    __m512 even[2], odd[2]; /* of the lower and of the upper eight bytes of each quarter */
};

static inline __m512 fp8_add_bits(__m512 sum, __m512i number)
{
    return _mm512_add_ps(sum, _mm512_castsi512_ps(number));
}

static inline void fp8_add_wide(struct fp8_wide *sums, __m512i x, const struct fp8_constants *c)
{
    __m512i low = _mm512_permutex2var_epi8(c->wide_low[0], x, c->wide_low[1]);
    __m512i high = _mm512_permutex2var_epi8(c->wide_high[0], x, c->wide_high[1]);
    high = _mm512_ternarylogic_epi64(c->sign, x, high, 0xea); /* sign & x | high */
    __m512i halves[] = {_mm512_unpacklo_epi8(low, high), _mm512_unpackhi_epi8(low, high)};
    for (int k = 0; k < 2; k++) {
        sums->even[k] = fp8_add_bits(sums->even[k], _mm512_slli_epi32(halves[k], 16));
        sums->odd[k] = fp8_add_bits(sums->odd[k], _mm512_and_si512(halves[k], c->upper));
    }
}

/* Upper halves of fp32, whose last bit is set where the lower half is not zero, in turn again:
 * rounding them to fp8 equals rounding the fp32. */
static inline __m512i fp8_cut_upper(__m512 even, __m512 odd, const struct fp8_constants *c)
{
    __m512i e = _mm512_castps_si512(even), o = _mm512_castps_si512(odd);
    e = _mm512_mask_or_epi32(e, _mm512_test_epi32_mask(e, c->lower), e, c->last);
    o = _mm512_mask_or_epi32(o, _mm512_test_epi32_mask(o, c->lower), o, c->last);
    return _mm512_mask_mov_epi16(_mm512_srli_epi32(e, 16), 0xaaaaaaaa, o);
}

/* Nearest codes (ties to even) of magnitudes, as if exponents had no end, plus TT_FP8_BIAS. */
static inline __m512i fp8_round_upper(__m512i magnitude, int drop, const struct fp8_constants *c)
{
    __m512i odd = _mm512_and_si512(_mm512_srli_epi16(magnitude, drop), c->one);
    __m512i code = _mm512_add_epi16(_mm512_add_epi16(magnitude, c->half), odd);
    return _mm512_subs_epu16(_mm512_srli_epi16(code, drop), c->rebias);
}

/* 64 sums of all sources from element `at` on. False: there are infinities or NaNs. */
__attribute__((always_inline)) static inline bool fp8_sum_block(uint8_t *dst,
                                                                const void *const *srcs, int nsrcs,
                                                                size_t at, int drop,
                                                                const struct fp8_constants *c)
{
    const __m512 none = _mm512_set1_ps(-0.0f); /* what changes no number */
    struct fp8_wide sums = {{none, none}, {none, none}};
    for (int k = 0; k < nsrcs; k++)
        fp8_add_wide(&sums, _mm512_loadu_si512((const uint8_t *)srcs[k] + at), c);
    __m512i low = fp8_cut_upper(sums.even[0], sums.odd[0], c);
    __m512i high = fp8_cut_upper(sums.even[1], sums.odd[1], c);
    __m512i low_size = _mm512_and_si512(low, c->magnitude);
    __m512i high_size = _mm512_and_si512(high, c->magnitude);
    if (_mm512_cmpge_epi16_mask(_mm512_max_epi16(low_size, high_size), c->infinite)) return false;
    __m512i code = _mm512_packus_epi16(fp8_round_upper(low_size, drop, c),
                                       fp8_round_upper(high_size, drop, c));
    code = fp8_end_codes(code, c->end, c->bias, c->most, c->small);
    __m512i signs = _mm512_packs_epi16(low, high);
    _mm512_storeu_si512(dst, _mm512_ternarylogic_epi64(c->sign, signs, code, 0xea));
    return true;
}

/* Sums of blocks up to the first with infinities or NaNs. Returns how many numbers that were. */
__attribute__((noinline)) static size_t fp8_sum_plain(uint8_t *dst, const void *const *srcs,
                                                      int nsrcs, size_t at, size_t count,
                                                      const struct tt_fp8 type)
{
    const struct fp8_constants constants = fp8_constants_of(type);
    const int drop = type.most == 0x7e ? 4 : 5;
    size_t done = 0;
    for (; done + FP8_LANES <= count; done += FP8_LANES) {
        if (!fp8_sum_block(dst + done, srcs, nsrcs, at + done, drop, &constants)) break;
    }
    return done;
}

enum { FP8_SUMS_MANY = true };
static inline void fp8_sum_many(uint8_t *dst, const void *const *srcs, int nsrcs, size_t at,
                                size_t count, const struct tt_fp8 type)
{
    size_t done = 0;
    while (done < count) {
        done += fp8_sum_plain(dst + done, srcs, nsrcs, at + done, count - done, type);
        size_t some = count - done < FP8_LANES ? count - done : FP8_LANES;
        tt_fp8_sum_many_each(dst + done, srcs, nsrcs, at + done, some, type);
        done += some;
    }
}
