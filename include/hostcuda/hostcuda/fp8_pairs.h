/* Conversions of pairs to and from fp8, and of the scale format e8m0, which stores x for the value
 * 2^(x - 127) and 255 for NaN. Part of cuda_fp8.h. */
#ifndef TUTTI_HOSTCUDA_FP8_PAIRS_H_
#define TUTTI_HOSTCUDA_FP8_PAIRS_H_

#include "../device_types.h"
#include "../vector_types.h"
#include "fp8_numbers.h"

/* The first value is the low byte. */
static inline __nv_fp8x2_storage_t tutti_fp8_pair(__nv_fp8_storage_t x, __nv_fp8_storage_t y)
{
    return (__nv_fp8x2_storage_t)(x | (uint32_t)y << 8);
}

static inline __nv_fp8x2_storage_t __nv_cvt_float2_to_fp8x2(const float2 pair,
                                                            const __nv_saturation_t saturate,
                                                            const __nv_fp8_interpretation_t format)
{
    return tutti_fp8_pair(__nv_cvt_float_to_fp8(pair.x, saturate, format),
                          __nv_cvt_float_to_fp8(pair.y, saturate, format));
}

static inline __nv_fp8x2_storage_t __nv_cvt_double2_to_fp8x2(const double2 pair,
                                                             const __nv_saturation_t saturate,
                                                             const __nv_fp8_interpretation_t format)
{
    return tutti_fp8_pair(__nv_cvt_double_to_fp8(pair.x, saturate, format),
                          __nv_cvt_double_to_fp8(pair.y, saturate, format));
}

static inline __nv_fp8x2_storage_t
__nv_cvt_halfraw2_to_fp8x2(const __half2_raw pair, const __nv_saturation_t saturate,
                           const __nv_fp8_interpretation_t format)
{
    return tutti_fp8_pair(__nv_cvt_float_to_fp8(tutti_half_to_float(pair.x), saturate, format),
                          __nv_cvt_float_to_fp8(tutti_half_to_float(pair.y), saturate, format));
}

static inline __nv_fp8x2_storage_t
__nv_cvt_bfloat16raw2_to_fp8x2(const __nv_bfloat162_raw pair, const __nv_saturation_t saturate,
                               const __nv_fp8_interpretation_t format)
{
    return tutti_fp8_pair(__nv_cvt_float_to_fp8(tutti_bf16_to_float(pair.x), saturate, format),
                          __nv_cvt_float_to_fp8(tutti_bf16_to_float(pair.y), saturate, format));
}

static inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(const __nv_fp8x2_storage_t pair,
                                                     const __nv_fp8_interpretation_t format)
{
    __half2_raw halves;
    halves.x = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)pair, format).x;
    halves.y = __nv_cvt_fp8_to_halfraw((__nv_fp8_storage_t)(pair >> 8), format).x;
    return halves;
}

/* ---- e8m0 ---- */

static inline float tutti_e8m0_to_float(__nv_fp8_storage_t fp8)
{
    if (fp8 == 255) return tutti_bits_float(0x7fffffffU);
    return tutti_bits_float(fp8 ? (uint32_t)fp8 << 23 : 0x400000U);
}

/* The magnitude, up to a power of two or (cudaRoundZero) down. */
static inline __nv_fp8_storage_t __nv_cvt_float_to_e8m0(const float value,
                                                        const __nv_saturation_t saturate,
                                                        const enum cudaRoundMode rounding)
{
    uint32_t magnitude = tutti_float_bits(value) & 0x7fffffffU, exponent = magnitude >> 23;
    uint32_t rest = magnitude & 0x7fffffU;
    if (magnitude > 0x7f800000U) return 255;
    /* 2^-127 is no normal float: its half is the first that rounds up to it */
    if (rounding == cudaRoundPosInf && (exponent ? rest != 0 : rest > 0x400000U)) exponent++;
    if (exponent < 255) return (__nv_fp8_storage_t)exponent;
    return saturate == __NV_SATFINITE ? 254 : 255;
}

static inline __nv_fp8_storage_t __nv_cvt_double_to_e8m0(const double value,
                                                         const __nv_saturation_t saturate,
                                                         const enum cudaRoundMode rounding)
{
    return __nv_cvt_float_to_e8m0(tutti_double_odd(value), saturate, rounding);
}

static inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_e8m0(const __nv_bfloat16_raw value,
                                                              const __nv_saturation_t saturate,
                                                              const enum cudaRoundMode rounding)
{
    return __nv_cvt_float_to_e8m0(tutti_bf16_to_float(value.x), saturate, rounding);
}

static inline __nv_fp8x2_storage_t __nv_cvt_float2_to_e8m0x2(const float2 pair,
                                                             const __nv_saturation_t saturate,
                                                             const enum cudaRoundMode rounding)
{
    return tutti_fp8_pair(__nv_cvt_float_to_e8m0(pair.x, saturate, rounding),
                          __nv_cvt_float_to_e8m0(pair.y, saturate, rounding));
}

static inline __nv_fp8x2_storage_t __nv_cvt_double2_to_e8m0x2(const double2 pair,
                                                              const __nv_saturation_t saturate,
                                                              const enum cudaRoundMode rounding)
{
    return tutti_fp8_pair(__nv_cvt_double_to_e8m0(pair.x, saturate, rounding),
                          __nv_cvt_double_to_e8m0(pair.y, saturate, rounding));
}

static inline __nv_fp8x2_storage_t
__nv_cvt_bfloat162raw_to_e8m0x2(const __nv_bfloat162_raw pair, const __nv_saturation_t saturate,
                                const enum cudaRoundMode rounding)
{
    return tutti_fp8_pair(__nv_cvt_float_to_e8m0(tutti_bf16_to_float(pair.x), saturate, rounding),
                          __nv_cvt_float_to_e8m0(tutti_bf16_to_float(pair.y), saturate, rounding));
}

static inline __nv_bfloat16_raw __nv_cvt_e8m0_to_bf16raw(const __nv_fp8_storage_t fp8)
{
    __nv_bfloat16_raw raw;
    raw.x = tutti_bf16_from_float(tutti_e8m0_to_float(fp8));
    return raw;
}

static inline __nv_bfloat162_raw __nv_cvt_e8m0x2_to_bf162raw(const __nv_fp8x2_storage_t pair)
{
    __nv_bfloat162_raw raw;
    raw.x = __nv_cvt_e8m0_to_bf16raw((__nv_fp8_storage_t)pair).x;
    raw.y = __nv_cvt_e8m0_to_bf16raw((__nv_fp8_storage_t)(pair >> 8)).x;
    return raw;
}

#endif
