/* 8-bit floating point on the host: e4m3 (no infinity, largest value 448), e5m2 (largest finite
 * value 57344) and the scale format e8m0. Conversions to e4m3 and e5m2 round to nearest even, those
 * to e8m0 up. Values beyond the largest one become it (__NV_SATFINITE), as in CUDA. */
#if defined(__NVCC__) || defined(__CUDA_INTERNAL_COMPILATION__) /* nvcc has its own */
#include_next <cuda_fp8.h>
#else
#ifndef TUTTI_CUDA_FP8_H_
#define TUTTI_CUDA_FP8_H_

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "host_defines.h"
#include "vector_types.h"

TUTTI_BOTH_BEGIN
#include "hostcuda/fp8_numbers.h"
#include "hostcuda/fp8_pairs.h"

#define __CUDA_FP8_TYPES_EXIST__

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
    explicit tutti_fp8(T value) : tutti_fp8(tutti_integer_odd(value))
    {
    }
    explicit operator float() const { return tutti_fp8_to_float(__x, Format); }
    explicit operator double() const { return static_cast<float>(*this); }
    explicit operator __half() const { return __half(static_cast<float>(*this)); }
    explicit operator __nv_bfloat16() const { return __nv_bfloat16(static_cast<float>(*this)); }
    template <class T, class = typename std::enable_if<std::is_integral<T>::value>::type>
    explicit operator T() const
    {
        return tutti_to_integer<T>(static_cast<float>(*this));
    }
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
    explicit __nv_fp8_e8m0(float value)
        : __x(__nv_cvt_float_to_e8m0(value, __NV_SATFINITE, cudaRoundPosInf))
    {
    }
    explicit operator float() const { return tutti_e8m0_to_float(__x); }
    explicit operator double() const { return static_cast<double>(tutti_e8m0_to_float(__x)); }
};

template <class Element, class Storage, int Count> struct tutti_fp8_pack {
    Storage __x;

    tutti_fp8_pack() = default;
    void set(int index, float value) { put(index, Element(value)); }
    void put(int index, Element value)
    {
        Storage mask = static_cast<Storage>(Storage(0xff) << (8 * index));
        Storage bits = static_cast<Storage>(Storage(value.__x) << (8 * index));
        __x = static_cast<Storage>((__x & static_cast<Storage>(~mask)) | bits);
    }
    float get(int index) const
    {
        Element element;
        element.__x = static_cast<__nv_fp8_storage_t>(__x >> (8 * index));
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
    explicit tutti_fp8x2(double2 value)
    {
        this->__x = 0;
        this->put(0, Element(value.x));
        this->put(1, Element(value.y));
    }
    explicit tutti_fp8x2(const __half2 &value) : tutti_fp8x2(__half22float2(value)) {}
    explicit tutti_fp8x2(const __nv_bfloat162 &value) : tutti_fp8x2(__bfloat1622float2(value)) {}
    explicit operator float2() const { return float2{this->get(0), this->get(1)}; }
    explicit operator __half2() const { return __floats2half2_rn(this->get(0), this->get(1)); }
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
    explicit tutti_fp8x4(double4 value)
    {
        this->__x = 0;
        this->put(0, Element(value.x));
        this->put(1, Element(value.y));
        this->put(2, Element(value.z));
        this->put(3, Element(value.w));
    }
    tutti_fp8x4(const __half2 &low, const __half2 &high)
        : tutti_fp8x4(
              float4{__low2float(low), __high2float(low), __low2float(high), __high2float(high)})
    {
    }
    tutti_fp8x4(const __nv_bfloat162 &low, const __nv_bfloat162 &high)
        : tutti_fp8x4(
              float4{__low2float(low), __high2float(low), __low2float(high), __high2float(high)})
    {
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

TUTTI_BOTH_END

#endif
#endif
