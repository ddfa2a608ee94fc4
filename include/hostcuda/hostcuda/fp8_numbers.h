/* Storage types of fp8, and conversions of single values. Part of cuda_fp8.h. */
#ifndef TUTTI_HOSTCUDA_FP8_NUMBERS_H_
#define TUTTI_HOSTCUDA_FP8_NUMBERS_H_

#include "bf16_type.h"
#include "half_type.h"
#include "round.h"

typedef unsigned char __nv_fp8_storage_t;
typedef unsigned short int __nv_fp8x2_storage_t;
typedef unsigned int __nv_fp8x4_storage_t;

typedef enum __nv_saturation_t {
    __NV_NOSAT,
    __NV_SATFINITE,
} __nv_saturation_t;

typedef enum __nv_fp8_interpretation_t {
    __NV_E4M3,
    __NV_E5M2,
} __nv_fp8_interpretation_t;

static inline __nv_fp8_storage_t __nv_cvt_float_to_fp8(const float value,
                                                       const __nv_saturation_t saturate,
                                                       const __nv_fp8_interpretation_t format)
{
    uint32_t bits = tutti_float_bits(value), magnitude = bits & 0x7fffffffU;
    uint32_t sign = (bits >> 24) & 0x80U, largest = format == __NV_E4M3 ? 0x7eU : 0x7bU;
    uint32_t above = format == __NV_E4M3 ? 0x7fU : 0x7cU; /* NaN, infinity */
    uint32_t result = 0xffffffffU;
    if (magnitude > 0x7f800000U) return 0x7f;
    if (magnitude < 0x7f800000U) {
        result = format == __NV_E4M3 ? tutti_round_bits(magnitude, 3, 7)
                                     : tutti_round_bits(magnitude, 2, 15);
    }
    if (result > largest) result = saturate == __NV_SATFINITE ? largest : above;
    return (__nv_fp8_storage_t)(sign | result);
}

static inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(const double value,
                                                        const __nv_saturation_t saturate,
                                                        const __nv_fp8_interpretation_t format)
{
    if (value != value) { /* here NaN keeps its sign, and in e5m2 what fits of its mantissa */
        uint32_t bits = tutti_float_bits((float)value), place = bits >> 21 & 1U;
        return (__nv_fp8_storage_t)((bits >> 24 & 0x80U) |
                                    (format == __NV_E4M3 ? 0x7fU : 0x7eU | place));
    }
    return __nv_cvt_float_to_fp8(tutti_double_odd(value), saturate, format);
}

static inline __nv_fp8_storage_t __nv_cvt_halfraw_to_fp8(const __half_raw half,
                                                         const __nv_saturation_t saturate,
                                                         const __nv_fp8_interpretation_t format)
{
    return __nv_cvt_float_to_fp8(tutti_half_to_float(half.x), saturate, format);
}

static inline __nv_fp8_storage_t __nv_cvt_bfloat16raw_to_fp8(const __nv_bfloat16_raw bf16,
                                                             const __nv_saturation_t saturate,
                                                             const __nv_fp8_interpretation_t format)
{
    return __nv_cvt_float_to_fp8(tutti_bf16_to_float(bf16.x), saturate, format);
}

static inline float tutti_fp8_to_float(__nv_fp8_storage_t fp8, __nv_fp8_interpretation_t format)
{
    uint32_t magnitude = fp8 & 0x7fU, sign = (uint32_t)(fp8 & 0x80U) << 24;
    float value;
    if (format == __NV_E4M3) {
        value =
            magnitude == 0x7fU ? tutti_bits_float(0x7fffffffU) : tutti_short_value(magnitude, 3, 7);
    } else if (magnitude > 0x7cU) {
        value = tutti_bits_float(0x7fffffffU);
    } else {
        value = magnitude == 0x7cU ? tutti_bits_float(0x7f800000U)
                                   : tutti_short_value(magnitude, 2, 15);
    }
    return tutti_bits_float(tutti_float_bits(value) | sign);
}

static inline __half_raw __nv_cvt_fp8_to_halfraw(const __nv_fp8_storage_t fp8,
                                                 const __nv_fp8_interpretation_t format)
{
    __half_raw half;
    half.x = tutti_half_from_float(tutti_fp8_to_float(fp8, format));
    return half;
}

#endif
