/* Eight-bit floating point on the host: e4m3 (no infinity, largest 448), e5m2 (largest 57344) and
 * the scale format e8m0. Conversions round to nearest even; the types saturate, as CUDA's do. */
#ifndef TUTTI_CUDA_FP8_H_
#define TUTTI_CUDA_FP8_H_

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "hostcuda/round.h"
#include "vector_types.h"

#define __CUDA_FP8_TYPES_EXIST__

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
    if (value != value) { /* here NaN keeps its sign, and e5m2 has another NaN than from float */
        uint32_t sign = (tutti_float_bits((float)value) >> 24) & 0x80U;
        return (__nv_fp8_storage_t)(sign | (format == __NV_E4M3 ? 0x7fU : 0x7eU));
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

/* e8m0 is an exponent alone: 2^(x - 127), 255 is NaN. */
static inline float tutti_e8m0_to_float(__nv_fp8_storage_t fp8)
{
    if (fp8 == 255) return tutti_bits_float(0x7fffffffU);
    return tutti_bits_float(fp8 ? (uint32_t)fp8 << 23 : 0x400000U);
}

/* Rounds the magnitude up to a power of two, the usual choice for a scale. */
static inline __nv_fp8_storage_t tutti_e8m0_from_float(float value)
{
    uint32_t magnitude = tutti_float_bits(value) & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return 255;
    if (magnitude <= 0x400000U) return 0;
    uint32_t exponent = (magnitude + 0x7fffffU) >> 23;
    return (__nv_fp8_storage_t)(exponent > 254 ? 254 : exponent);
}

#ifndef __cplusplus

typedef struct {
    __nv_fp8_storage_t __x;
} __nv_fp8_e4m3;
typedef struct {
    __nv_fp8_storage_t __x;
} __nv_fp8_e5m2;
typedef struct {
    __nv_fp8_storage_t __x;
} __nv_fp8_e8m0;
typedef struct {
    __nv_fp8x2_storage_t __x;
} __nv_fp8x2_e4m3;
typedef struct {
    __nv_fp8x2_storage_t __x;
} __nv_fp8x2_e5m2;
typedef struct {
    __nv_fp8x4_storage_t __x;
} __nv_fp8x4_e4m3;
typedef struct {
    __nv_fp8x4_storage_t __x;
} __nv_fp8x4_e5m2;

#else

template <__nv_fp8_interpretation_t Format> struct tutti_fp8 {
    __nv_fp8_storage_t __x;

    tutti_fp8() = default;
    explicit tutti_fp8(float value) : __x(__nv_cvt_float_to_fp8(value, __NV_SATFINITE, Format)) {}
    explicit tutti_fp8(double value) : __x(__nv_cvt_double_to_fp8(value, __NV_SATFINITE, Format)) {}
    explicit tutti_fp8(const __half &value) : tutti_fp8(static_cast<float>(value)) {}
    explicit tutti_fp8(const __nv_bfloat16 &value) : tutti_fp8(static_cast<float>(value)) {}
    template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
    explicit tutti_fp8(T value) : tutti_fp8(static_cast<double>(value))
    {
    }
    explicit operator float() const { return tutti_fp8_to_float(__x, Format); }
    explicit operator double() const { return static_cast<float>(*this); }
    explicit operator __half() const { return __half(static_cast<float>(*this)); }
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(static_cast<float>(*this)); }
    explicit operator bool() const { return (__x & 0x7f) != 0; }
};

struct __nv_fp8_e4m3 : tutti_fp8<__NV_E4M3> {
    using tutti_fp8<__NV_E4M3>::tutti_fp8;
};

struct __nv_fp8_e5m2 : tutti_fp8<__NV_E5M2> {
    using tutti_fp8<__NV_E5M2>::tutti_fp8;
};

struct __nv_fp8_e8m0 {
    __nv_fp8_storage_t __x;

    __nv_fp8_e8m0() = default;
    explicit __nv_fp8_e8m0(float value) : __x(tutti_e8m0_from_float(value)) {}
    explicit operator float() const { return tutti_e8m0_to_float(__x); }
};

template <class Element, class Storage, int Count> struct tutti_fp8_pack {
    Storage __x;

    tutti_fp8_pack() = default;
    void set(int place, float value)
    {
        Storage mask = static_cast<Storage>(Storage(0xff) << (8 * place));
        Storage bits = static_cast<Storage>(Storage(Element(value).__x) << (8 * place));
        __x = static_cast<Storage>((__x & static_cast<Storage>(~mask)) | bits);
    }
    float get(int place) const
    {
        Element element;
        element.__x = static_cast<__nv_fp8_storage_t>(__x >> (8 * place));
        return static_cast<float>(element);
    }
};

template <class Element> struct tutti_fp8x2 : tutti_fp8_pack<Element, __nv_fp8x2_storage_t, 2> {
    tutti_fp8x2() = default;
    explicit tutti_fp8x2(float2 value)
    {
        this->__x = 0;
        this->set(0, value.x);
        this->set(1, value.y);
    }
    explicit operator float2() const { return float2{this->get(0), this->get(1)}; }
};

template <class Element> struct tutti_fp8x4 : tutti_fp8_pack<Element, __nv_fp8x4_storage_t, 4> {
    tutti_fp8x4() = default;
    explicit tutti_fp8x4(float4 value)
    {
        this->__x = 0;
        this->set(0, value.x);
        this->set(1, value.y);
        this->set(2, value.z);
        this->set(3, value.w);
    }
    explicit operator float4() const
    {
        return float4{this->get(0), this->get(1), this->get(2), this->get(3)};
    }
};

typedef tutti_fp8x2<__nv_fp8_e4m3> __nv_fp8x2_e4m3;
typedef tutti_fp8x2<__nv_fp8_e5m2> __nv_fp8x2_e5m2;
typedef tutti_fp8x4<__nv_fp8_e4m3> __nv_fp8x4_e4m3;
typedef tutti_fp8x4<__nv_fp8_e5m2> __nv_fp8x4_e5m2;

#endif

#endif
