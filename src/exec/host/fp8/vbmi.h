/* Sums of two fp8, 64 at a time (AVX-512 VBMI); those of more are in vbmi_many.h.
 *
 * A sum is computed in bytes, as a processor would: the smaller significand is moved down by the
 * distance of the exponents, both are added or subtracted, the result is rounded. Each of these
 * steps is a table of at most 256 bytes in registers (tables.h). The fp32 sum of two numbers
 * is exact or differs from the exact one by less than the rounding sees, so both ways give the same
 * bits. Going through fp32 takes four times as long. */
#pragma once

#include "exec/host/fp8/convert.h"
#include "exec/host/fp8/tables.h"

enum { FP8_LANES = 64 };

static inline __m512i fp8_all(int byte)
{
    return _mm512_set1_epi8((char)byte);
}

/* a | (b & c), in the register of a. */
static inline __m512i fp8_or_and(__m512i a, __m512i b, __m512i c)
{
    return _mm512_ternarylogic_epi64(a, b, c, 0xf8);
}

static inline __m512i fp8_look_up(const uint8_t table[128], __m512i index)
{
    return _mm512_permutex2var_epi8(_mm512_loadu_si512(table), index,
                                    _mm512_loadu_si512(table + 64));
}

/* Codes, without signs, of rounded numbers by codes plus TT_FP8_BIAS: exponents end here. */
static inline __m512i fp8_end_codes(__m512i code, __m512i end, __m512i bias, __m512i most,
                                    __m512i small)
{
    __m512i normal = _mm512_min_epu8(_mm512_sub_epi8(code, bias), most);
    return _mm512_mask_permutexvar_epi8(normal, _mm512_cmplt_epu8_mask(code, end), code, small);
}

/* Rounded codes, without signs, of sums of significands; exponent is the larger number's. */
static inline __m512i fp8_round_sums(__m512i sums, __m512i exponent,
                                     const struct tt_fp8_tables *tables)
{
    const int most = tables->mantissa == 3 ? 0x7e : 0x7b;
    __m512i steps =
        _mm512_mask_blend_epi8(_mm512_movepi8_mask(sums), fp8_look_up(tables->rounded, sums),
                               fp8_look_up(tables->rounded + 128, sums));
    __m512i code = fp8_end_codes(
        _mm512_add_epi8(exponent, steps), fp8_all(TT_FP8_BIAS + (1 << tables->mantissa)),
        fp8_all(TT_FP8_BIAS), fp8_all(most), _mm512_loadu_si512(tables->small));
    return _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(sums, sums), code);
}

/* NaNs and infinities among the sums put right. An infinity saturates, two opposite ones are no
 * number. */
static __m512i fp8_put_special(__m512i sums, __m512i x, __m512i y,
                               const struct tt_fp8_tables *tables)
{
    __m512i x_code = _mm512_and_si512(x, fp8_all(0x7f)),
            y_code = _mm512_and_si512(y, fp8_all(0x7f));
    __m512i last = fp8_all(tables->mantissa == 3 ? 0x7e : 0x7c); /* no NaN up to here */
    if (tables->mantissa == 2) {
        __mmask64 x_inf = _mm512_cmpeq_epu8_mask(x_code, last);
        __mmask64 y_inf = _mm512_cmpeq_epu8_mask(y_code, last);
        __mmask64 minus = _mm512_movepi8_mask(_mm512_xor_si512(x, y));
        __m512i signs = _mm512_and_si512(_mm512_mask_blend_epi8(x_inf, y, x), fp8_all(0x80));
        __m512i most = _mm512_or_si512(signs, fp8_all(0x7b));
        sums = _mm512_mask_mov_epi8(sums, x_inf | y_inf, most);
        sums = _mm512_mask_mov_epi8(sums, x_inf & y_inf & minus, fp8_all(0xff));
    }
    __mmask64 x_nan = _mm512_cmpgt_epu8_mask(x_code, last);
    __mmask64 nan = x_nan | _mm512_cmpgt_epu8_mask(y_code, last);
    __m512i own = _mm512_or_si512(_mm512_mask_blend_epi8(x_nan, y, x), fp8_all(0x7f));
    return _mm512_mask_mov_epi8(sums, nan, own);
}

static inline __m512i fp8_sum_lanes(__m512i x, __m512i y, const struct tt_fp8_tables *tables)
{
    const __m512i codes = fp8_all(0x7f), one = fp8_all(1 << tables->mantissa);
    const __m512i exponents = fp8_all(0x7f & -(1 << tables->mantissa));
    __m512i x_code = _mm512_and_si512(x, codes), y_code = _mm512_and_si512(y, codes);
    __m512i larger = _mm512_max_epu8(x_code, y_code), smaller = _mm512_min_epu8(x_code, y_code);
    /* Subnormals have the exponent of the smallest normal numbers and no leading one. */
    __m512i large_exp = _mm512_max_epu8(_mm512_and_si512(larger, exponents), one);
    __m512i small_exp = _mm512_max_epu8(_mm512_and_si512(smaller, exponents), one);
    __m512i large_sig = _mm512_add_epi8(_mm512_sub_epi8(larger, large_exp), one);
    __m512i small_sig = _mm512_add_epi8(_mm512_sub_epi8(smaller, small_exp), one);
    __m512i distance =
        _mm512_min_epu8(_mm512_sub_epi8(large_exp, small_exp), fp8_all(7 << tables->mantissa));
    __m512i row = _mm512_add_epi8(_mm512_add_epi8(distance, distance), small_sig);
    __m512i a = _mm512_permutexvar_epi8(large_sig, _mm512_loadu_si512(tables->lower));
    __m512i b = fp8_look_up(tables->lower, row);
    __mmask64 minus = _mm512_movepi8_mask(_mm512_xor_si512(x, y));
    __m512i sums = _mm512_mask_sub_epi8(_mm512_add_epi8(a, b), minus, a, b);
    __m512i code = fp8_round_sums(sums, large_exp, tables);

    /* The larger one's sign; of numbers that cancel each other, plus. */
    __m512i signs = _mm512_mask_blend_epi8(_mm512_cmpgt_epu8_mask(y_code, x_code), x, y);
    __mmask64 cancel = minus & _mm512_testn_epi8_mask(sums, sums);
    __m512i sign = _mm512_maskz_mov_epi8(~cancel, fp8_all(0x80));
    code = fp8_or_and(code, signs, sign);
    __mmask64 special =
        _mm512_cmpgt_epu8_mask(larger, fp8_all(tables->mantissa == 3 ? 0x7e : 0x7b));
    return special ? fp8_put_special(code, x, y, tables) : code;
}

static inline const struct tt_fp8_tables *fp8_tables_of(const struct tt_fp8 type)
{
    return type.most == 0x7e ? &tt_fp8_e4m3 : &tt_fp8_e5m2;
}

/* dst may be a or b. */
static inline void fp8_sum(uint8_t *dst, const uint8_t *a, const uint8_t *b, size_t count,
                           const struct tt_fp8 type)
{
    const struct tt_fp8_tables *tables = fp8_tables_of(type);
    size_t at = 0;
    for (; at + FP8_LANES <= count; at += FP8_LANES) {
        __m512i x = _mm512_loadu_si512(a + at), y = _mm512_loadu_si512(b + at);
        _mm512_storeu_si512(dst + at, fp8_sum_lanes(x, y, tables));
    }
    __mmask64 rest = ((__mmask64)1 << (count - at)) - 1;
    __m512i x = _mm512_maskz_loadu_epi8(rest, a + at), y = _mm512_maskz_loadu_epi8(rest, b + at);
    _mm512_mask_storeu_epi8(dst + at, rest, fp8_sum_lanes(x, y, tables));
}
