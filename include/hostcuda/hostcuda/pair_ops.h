/* Operations on pairs of half or bfloat16, element by element. Part of cuda_fp16.h and
 * cuda_bf16.h. */
#ifndef TUTTI_HOSTCUDA_PAIR_OPS_H_
#define TUTTI_HOSTCUDA_PAIR_OPS_H_

#ifdef __cplusplus

#include "short_ops.h"

/* P is a pair of T. A comparison returns a pair of 1 or 0, a mask (_mask), or (b) one bool: whether
 * it holds for both elements. */
template <class P, class T> struct tutti_pair_ops {
    friend P __hadd2(const P &a, const P &b) { return P(__hadd(a.x, b.x), __hadd(a.y, b.y)); }
    friend P __hadd2_rn(const P &a, const P &b)
    {
        return P(__hadd_rn(a.x, b.x), __hadd_rn(a.y, b.y));
    }
    friend P __hadd2_sat(const P &a, const P &b)
    {
        return P(__hadd_sat(a.x, b.x), __hadd_sat(a.y, b.y));
    }
    friend P __hsub2(const P &a, const P &b) { return P(__hsub(a.x, b.x), __hsub(a.y, b.y)); }
    friend P __hsub2_rn(const P &a, const P &b)
    {
        return P(__hsub_rn(a.x, b.x), __hsub_rn(a.y, b.y));
    }
    friend P __hsub2_sat(const P &a, const P &b)
    {
        return P(__hsub_sat(a.x, b.x), __hsub_sat(a.y, b.y));
    }
    friend P __hmul2(const P &a, const P &b) { return P(__hmul(a.x, b.x), __hmul(a.y, b.y)); }
    friend P __hmul2_rn(const P &a, const P &b)
    {
        return P(__hmul_rn(a.x, b.x), __hmul_rn(a.y, b.y));
    }
    friend P __hmul2_sat(const P &a, const P &b)
    {
        return P(__hmul_sat(a.x, b.x), __hmul_sat(a.y, b.y));
    }
    friend P __h2div(const P &a, const P &b) { return P(__hdiv(a.x, b.x), __hdiv(a.y, b.y)); }
    friend P __hfma2(const P &a, const P &b, const P &c)
    {
        return P(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y));
    }
    friend P __hfma2_sat(const P &a, const P &b, const P &c)
    {
        return P(__hfma_sat(a.x, b.x, c.x), __hfma_sat(a.y, b.y, c.y));
    }
    friend P __hneg2(const P &a) { return P(__hneg(a.x), __hneg(a.y)); }
    friend P __habs2(const P &a) { return P(__habs(a.x), __habs(a.y)); }
    friend P __hisnan2(const P &a) { return tutti_truth<P>(__hisnan(a.x), __hisnan(a.y)); }
    friend P __hmax2(const P &a, const P &b) { return P(__hmax(a.x, b.x), __hmax(a.y, b.y)); }
    friend P __hmax2_nan(const P &a, const P &b)
    {
        return P(__hmax_nan(a.x, b.x), __hmax_nan(a.y, b.y));
    }
    friend P __hmin2(const P &a, const P &b) { return P(__hmin(a.x, b.x), __hmin(a.y, b.y)); }
    friend P __hmin2_nan(const P &a, const P &b)
    {
        return P(__hmin_nan(a.x, b.x), __hmin_nan(a.y, b.y));
    }
    friend P __lowhigh2highlow(const P &a) { return P(a.y, a.x); }

    friend P __heq2(const P &a, const P &b)
    {
        return tutti_truth<P>(__heq(a.x, b.x), __heq(a.y, b.y));
    }
    friend unsigned __heq2_mask(const P &a, const P &b)
    {
        return tutti_mask(__heq(a.x, b.x), __heq(a.y, b.y));
    }
    friend bool __hbeq2(const P &a, const P &b) { return __heq(a.x, b.x) && __heq(a.y, b.y); }
    friend P __hequ2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hequ(a.x, b.x), __hequ(a.y, b.y));
    }
    friend unsigned __hequ2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hequ(a.x, b.x), __hequ(a.y, b.y));
    }
    friend bool __hbequ2(const P &a, const P &b) { return __hequ(a.x, b.x) && __hequ(a.y, b.y); }
    friend P __hne2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hne(a.x, b.x), __hne(a.y, b.y));
    }
    friend unsigned __hne2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hne(a.x, b.x), __hne(a.y, b.y));
    }
    friend bool __hbne2(const P &a, const P &b) { return __hne(a.x, b.x) && __hne(a.y, b.y); }
    friend P __hneu2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hneu(a.x, b.x), __hneu(a.y, b.y));
    }
    friend unsigned __hneu2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hneu(a.x, b.x), __hneu(a.y, b.y));
    }
    friend bool __hbneu2(const P &a, const P &b) { return __hneu(a.x, b.x) && __hneu(a.y, b.y); }
    friend P __hlt2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hlt(a.x, b.x), __hlt(a.y, b.y));
    }
    friend unsigned __hlt2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hlt(a.x, b.x), __hlt(a.y, b.y));
    }
    friend bool __hblt2(const P &a, const P &b) { return __hlt(a.x, b.x) && __hlt(a.y, b.y); }
    friend P __hltu2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hltu(a.x, b.x), __hltu(a.y, b.y));
    }
    friend unsigned __hltu2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hltu(a.x, b.x), __hltu(a.y, b.y));
    }
    friend bool __hbltu2(const P &a, const P &b) { return __hltu(a.x, b.x) && __hltu(a.y, b.y); }
    friend P __hle2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hle(a.x, b.x), __hle(a.y, b.y));
    }
    friend unsigned __hle2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hle(a.x, b.x), __hle(a.y, b.y));
    }
    friend bool __hble2(const P &a, const P &b) { return __hle(a.x, b.x) && __hle(a.y, b.y); }
    friend P __hleu2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hleu(a.x, b.x), __hleu(a.y, b.y));
    }
    friend unsigned __hleu2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hleu(a.x, b.x), __hleu(a.y, b.y));
    }
    friend bool __hbleu2(const P &a, const P &b) { return __hleu(a.x, b.x) && __hleu(a.y, b.y); }
    friend P __hgt2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hgt(a.x, b.x), __hgt(a.y, b.y));
    }
    friend unsigned __hgt2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hgt(a.x, b.x), __hgt(a.y, b.y));
    }
    friend bool __hbgt2(const P &a, const P &b) { return __hgt(a.x, b.x) && __hgt(a.y, b.y); }
    friend P __hgtu2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hgtu(a.x, b.x), __hgtu(a.y, b.y));
    }
    friend unsigned __hgtu2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hgtu(a.x, b.x), __hgtu(a.y, b.y));
    }
    friend bool __hbgtu2(const P &a, const P &b) { return __hgtu(a.x, b.x) && __hgtu(a.y, b.y); }
    friend P __hge2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hge(a.x, b.x), __hge(a.y, b.y));
    }
    friend unsigned __hge2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hge(a.x, b.x), __hge(a.y, b.y));
    }
    friend bool __hbge2(const P &a, const P &b) { return __hge(a.x, b.x) && __hge(a.y, b.y); }
    friend P __hgeu2(const P &a, const P &b)
    {
        return tutti_truth<P>(__hgeu(a.x, b.x), __hgeu(a.y, b.y));
    }
    friend unsigned __hgeu2_mask(const P &a, const P &b)
    {
        return tutti_mask(__hgeu(a.x, b.x), __hgeu(a.y, b.y));
    }
    friend bool __hbgeu2(const P &a, const P &b) { return __hgeu(a.x, b.x) && __hgeu(a.y, b.y); }

    friend P operator+(const P &a, const P &b) { return __hadd2(a, b); }
    friend P &operator+=(P &a, const P &b) { return a = __hadd2(a, b); }
    friend P operator-(const P &a, const P &b) { return __hsub2(a, b); }
    friend P &operator-=(P &a, const P &b) { return a = __hsub2(a, b); }
    friend P operator*(const P &a, const P &b) { return __hmul2(a, b); }
    friend P &operator*=(P &a, const P &b) { return a = __hmul2(a, b); }
    friend P operator/(const P &a, const P &b) { return __h2div(a, b); }
    friend P &operator/=(P &a, const P &b) { return a = __h2div(a, b); }
    friend P operator+(const P &a) { return a; }
    friend P operator-(const P &a) { return __hneg2(a); }
    friend P &operator++(P &a) { return a = P(++a.x, ++a.y); }
    friend P &operator--(P &a) { return a = P(--a.x, --a.y); }
    friend P operator++(P &a, int)
    {
        P before = a;
        ++a;
        return before;
    }
    friend P operator--(P &a, int)
    {
        P before = a;
        --a;
        return before;
    }
    friend bool operator==(const P &a, const P &b) { return __hbeq2(a, b); }
    friend bool operator!=(const P &a, const P &b) { return __hbneu2(a, b); }
    friend bool operator<(const P &a, const P &b) { return __hblt2(a, b); }
    friend bool operator<=(const P &a, const P &b) { return __hble2(a, b); }
    friend bool operator>(const P &a, const P &b) { return __hbgt2(a, b); }
    friend bool operator>=(const P &a, const P &b) { return __hbge2(a, b); }
};
#endif

#endif
