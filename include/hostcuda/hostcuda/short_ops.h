/* Arithmetic and comparison of half, bfloat16 and pairs of them, for cuda_fp16.h and cuda_bf16.h. A
 * type gets them by deriving from one of the two templates below. Results are computed in float and
 * rounded; for these formats that equals a single rounding. */
#ifndef TUTTI_HOSTCUDA_SHORT_OPS_H_
#define TUTTI_HOSTCUDA_SHORT_OPS_H_

#ifdef __cplusplus

#include "round.h"

template <class T> inline float tutti_wide(const T &value)
{
    return static_cast<float>(value);
}

template <class T> inline bool tutti_is_nan(const T &value)
{
    return tutti_wide(value) != tutti_wide(value);
}

template <class T> inline T tutti_of_bits(unsigned bits)
{
    T value;
    value.__x = static_cast<unsigned short>(bits);
    return value;
}

/* One of them is NaN. */
template <class T> inline bool tutti_unordered(const T &a, const T &b)
{
    return tutti_is_nan(a) || tutti_is_nan(b);
}

/* Clamp to [0, 1]; NaN becomes 0. */
template <class T> inline T tutti_saturate(const T &value)
{
    if (!(tutti_wide(value) > 0)) return tutti_of_bits<T>(0);
    return tutti_wide(value) > 1 ? T(1.0f) : value;
}

/* Where one operand is NaN, the other one. +0 is larger than -0. */
template <class T> inline T tutti_larger(const T &a, const T &b)
{
    if (tutti_is_nan(a)) return tutti_is_nan(b) ? tutti_of_bits<T>(0x7fff) : b;
    if (tutti_is_nan(b)) return a;
    if (tutti_wide(a) == tutti_wide(b)) return tutti_of_bits<T>(a.__x & b.__x);
    return tutti_wide(a) > tutti_wide(b) ? a : b;
}

template <class T> inline T tutti_smaller(const T &a, const T &b)
{
    if (tutti_is_nan(a)) return tutti_is_nan(b) ? tutti_of_bits<T>(0x7fff) : b;
    if (tutti_is_nan(b)) return a;
    if (tutti_wide(a) == tutti_wide(b)) return tutti_of_bits<T>(a.__x | b.__x);
    return tutti_wide(a) < tutti_wide(b) ? a : b;
}

/* The product is exact in double, so the sum rounds to odd once and then to the result. */
template <class T> inline T tutti_fma(const T &a, const T &b, const T &c)
{
    double product = static_cast<double>(tutti_wide(a)) * static_cast<double>(tutti_wide(b));
    return T(product + static_cast<double>(tutti_wide(c)));
}

template <class P> inline P tutti_truth(bool x, bool y)
{
    P pair;
    pair.x = x ? 1.0f : 0.0f;
    pair.y = y ? 1.0f : 0.0f;
    return pair;
}

inline unsigned tutti_mask(bool x, bool y)
{
    return (x ? 0xffffU : 0) | (y ? 0xffff0000U : 0);
}

/* Comparisons with NaN are false; in those whose name ends in u they are true. */
template <class T> struct tutti_short_ops {
    friend T __hadd(const T &a, const T &b) { return T(tutti_wide(a) + tutti_wide(b)); }
    friend T __hsub(const T &a, const T &b) { return T(tutti_wide(a) - tutti_wide(b)); }
    friend T __hmul(const T &a, const T &b) { return T(tutti_wide(a) * tutti_wide(b)); }
    friend T __hdiv(const T &a, const T &b) { return T(tutti_wide(a) / tutti_wide(b)); }
    friend T __hadd_rn(const T &a, const T &b) { return __hadd(a, b); }
    friend T __hadd_sat(const T &a, const T &b) { return tutti_saturate(__hadd(a, b)); }
    friend T __hsub_rn(const T &a, const T &b) { return __hsub(a, b); }
    friend T __hsub_sat(const T &a, const T &b) { return tutti_saturate(__hsub(a, b)); }
    friend T __hmul_rn(const T &a, const T &b) { return __hmul(a, b); }
    friend T __hmul_sat(const T &a, const T &b) { return tutti_saturate(__hmul(a, b)); }
    friend T __hfma(const T &a, const T &b, const T &c) { return tutti_fma(a, b, c); }
    friend T __hfma_sat(const T &a, const T &b, const T &c)
    {
        return tutti_saturate(tutti_fma(a, b, c));
    }
    friend T __hneg(const T &a)
    {
        return tutti_is_nan(a) ? tutti_of_bits<T>(0x7fff) : tutti_of_bits<T>(a.__x ^ 0x8000U);
    }
    friend T __habs(const T &a)
    {
        return tutti_is_nan(a) ? tutti_of_bits<T>(0x7fff) : tutti_of_bits<T>(a.__x & 0x7fffU);
    }
    friend bool __hisnan(const T &a) { return tutti_is_nan(a); }
    friend int __hisinf(const T &a)
    {
        return tutti_wide(a) - tutti_wide(a) == 0 || tutti_is_nan(a) ? 0 : a.__x & 0x8000 ? -1 : 1;
    }
    friend T __hmax(const T &a, const T &b) { return tutti_larger(a, b); }
    friend T __hmin(const T &a, const T &b) { return tutti_smaller(a, b); }
    friend T __hmax_nan(const T &a, const T &b)
    {
        return tutti_unordered(a, b) ? tutti_of_bits<T>(0x7fff) : tutti_larger(a, b);
    }
    friend T __hmin_nan(const T &a, const T &b)
    {
        return tutti_unordered(a, b) ? tutti_of_bits<T>(0x7fff) : tutti_smaller(a, b);
    }

    friend bool __heq(const T &a, const T &b) { return tutti_wide(a) == tutti_wide(b); }
    friend bool __hne(const T &a, const T &b)
    {
        return !tutti_unordered(a, b) && tutti_wide(a) != tutti_wide(b);
    }
    friend bool __hlt(const T &a, const T &b) { return tutti_wide(a) < tutti_wide(b); }
    friend bool __hle(const T &a, const T &b) { return tutti_wide(a) <= tutti_wide(b); }
    friend bool __hgt(const T &a, const T &b) { return tutti_wide(a) > tutti_wide(b); }
    friend bool __hge(const T &a, const T &b) { return tutti_wide(a) >= tutti_wide(b); }
    friend bool __hequ(const T &a, const T &b) { return tutti_unordered(a, b) || __heq(a, b); }
    friend bool __hneu(const T &a, const T &b) { return tutti_unordered(a, b) || __hne(a, b); }
    friend bool __hltu(const T &a, const T &b) { return tutti_unordered(a, b) || __hlt(a, b); }
    friend bool __hleu(const T &a, const T &b) { return tutti_unordered(a, b) || __hle(a, b); }
    friend bool __hgtu(const T &a, const T &b) { return tutti_unordered(a, b) || __hgt(a, b); }
    friend bool __hgeu(const T &a, const T &b) { return tutti_unordered(a, b) || __hge(a, b); }

    friend T operator+(const T &a, const T &b) { return __hadd(a, b); }
    friend T &operator+=(T &a, const T &b) { return a = __hadd(a, b); }
    friend T operator-(const T &a, const T &b) { return __hsub(a, b); }
    friend T &operator-=(T &a, const T &b) { return a = __hsub(a, b); }
    friend T operator*(const T &a, const T &b) { return __hmul(a, b); }
    friend T &operator*=(T &a, const T &b) { return a = __hmul(a, b); }
    friend T operator/(const T &a, const T &b) { return __hdiv(a, b); }
    friend T &operator/=(T &a, const T &b) { return a = __hdiv(a, b); }
    friend T operator+(const T &a) { return a; }
    friend T operator-(const T &a) { return __hneg(a); }
    friend T &operator++(T &a) { return a += T(1.0f); }
    friend T &operator--(T &a) { return a -= T(1.0f); }
    friend T operator++(T &a, int)
    {
        T before = a;
        ++a;
        return before;
    }
    friend T operator--(T &a, int)
    {
        T before = a;
        --a;
        return before;
    }
    friend bool operator==(const T &a, const T &b) { return __heq(a, b); }
    friend bool operator!=(const T &a, const T &b) { return __hneu(a, b); }
    friend bool operator<(const T &a, const T &b) { return __hlt(a, b); }
    friend bool operator<=(const T &a, const T &b) { return __hle(a, b); }
    friend bool operator>(const T &a, const T &b) { return __hgt(a, b); }
    friend bool operator>=(const T &a, const T &b) { return __hge(a, b); }
};
#endif

#endif
