// What cuda_fp16.h, cuda_bf16.h and cuda_fp8.h have beyond conversions to nearest: directed
// rounding, integers, comparisons, pairs. Expected values come from arithmetic in double, which is
// exact here.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <limits>

static int failures;

static void check(bool good, const char *what, long long which)
{
    if (good) return;
    failures++;
    std::printf("%s, case %lld\n", what, which);
}

template <class T> static T of_bits(unsigned bits)
{
    T value;
    value.__x = static_cast<unsigned short>(bits);
    return value;
}

// Some of every kind: zeros, subnormals, powers of two, largest, infinities, NaN.
static const unsigned bits_of_interest[] = {
    0,      0x8000, 1,      0x8001, 0x3ff,  0x400,  0x3c00, 0xbc00, 0x3c01, 0x4000, 0x7bff, 0xfbff,
    0x7c00, 0xfc00, 0x7e00, 0xfe00, 0x3f80, 0xbf80, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x80,   0x5bcd};

// ---- rounding of integers and floats in a given direction ----

template <class T> static double next_to(const T &value, bool up)
{
    bool negative = value.__x & 0x8000, zero = !(value.__x & 0x7fff);
    if (zero) return static_cast<float>(of_bits<T>(up ? 1 : 0x8001));
    return static_cast<float>(of_bits<T>(value.__x + (up != negative ? 1 : -1)));
}

// The result is the number next to the exact one: none lies between, on the right side.
template <class T> static bool is_down(const T &got, double exact)
{
    return static_cast<float>(got) <= exact && next_to(got, true) > exact;
}

template <class T> static bool is_up(const T &got, double exact)
{
    return static_cast<float>(got) >= exact && next_to(got, false) < exact;
}

static void directed_floats()
{
    for (uint32_t bits = 0x33000000; bits < 0x47000000; bits += 0x1fff3) {
        for (uint32_t sign = 0; sign < 2; sign++) {
            float value = tutti_bits_float(bits | sign << 31);
            check(is_down(__float2half_rd(value), value), "half down", bits);
            check(is_up(__float2half_ru(value), value), "half up", bits);
            check(is_down(__float2bfloat16_rd(value), value), "bfloat16 down", bits);
            check(is_up(__float2bfloat16_ru(value), value), "bfloat16 up", bits);
            __half cut = __float2half_rz(value);
            check(sign ? is_up(cut, value) : is_down(cut, value), "half to zero", bits);
        }
    }
    check(__float2half_rz(1e9f).__x == 0x7bff && __float2half_ru(1e9f).__x == 0x7c00, "beyond", 0);
    check(__float2half_rd(-1e9f).__x == 0xfc00 && __float2half_ru(-1e9f).__x == 0xfbff, "beyond",
          1);
}

static void integers()
{
    for (long long value = 1; value < 40000; value = value * 5 / 4 + 1) {
        check(is_down(__ll2half_rd(-value), static_cast<double>(-value)), "ll down", value);
        check(is_up(__int2half_ru(static_cast<int>(value)), static_cast<double>(value)), "int up",
              value);
        check(__half2int_rz(__int2half_rz(static_cast<int>(value))) <= value, "int and back",
              value);
    }
    // Rounded once: half a place above 2^62, and a little more, of which double keeps nothing.
    long long half_way = (1LL << 62) + (1LL << 54);
    check(__ll2bfloat16_rn(half_way).__x == 0x5e80, "to even", half_way);
    check(__ll2bfloat16_rn(half_way + 1).__x == 0x5e81, "above the middle", half_way);
    check(__nv_bfloat16(half_way + 1).__x == 0x5e81, "constructor", half_way);
    check(__half2int_rz(of_bits<__half>(0x7e00)) == 0, "NaN", 0);
    check(__half2char_rz(__half(300.0f)) == 127 && __half2uchar_rz(__half(-2.0f)) == 0, "limits",
          0);
    check(__bfloat162ll_rz(__nv_bfloat16(1e30f)) == std::numeric_limits<long long>::max(), "limits",
          1);
    check(__bfloat162uint_rz(__nv_bfloat16(-INFINITY)) == 0, "limits", 2);
    int implied = __half(-2.75f);
    check(implied == -2 && static_cast<bool>(of_bits<__half>(1)), "conversion", implied);
}

// ---- comparisons and arithmetic ----

template <class T> static void compare(const T &a, const T &b, long long which)
{
    double x = static_cast<float>(a), y = static_cast<float>(b);
    bool unordered = std::isnan(x) || std::isnan(y);
    check(__heq(a, b) == (x == y) && __hequ(a, b) == (unordered || x == y), "equal", which);
    check(__hne(a, b) == (!unordered && x != y) && __hneu(a, b) == (x != y), "not equal", which);
    check(__hlt(a, b) == (x < y) && __hltu(a, b) == !(x >= y), "less", which);
    check(__hge(a, b) == (x >= y) && __hgeu(a, b) == !(x < y), "greater or equal", which);
    check((a != b) == (x != y) && (a <= b) == (x <= y), "operators", which);
    double larger = static_cast<float>(__hmax(a, b)), nan = static_cast<float>(__hmin_nan(a, b));
    check(unordered ? std::isnan(larger) == (std::isnan(x) && std::isnan(y))
                    : larger == std::fmax(x, y),
          "larger", which);
    check(unordered ? std::isnan(nan) : nan == std::fmin(x, y), "smaller", which);
    check(__hisinf(a) == (std::isinf(x) ? x > 0 ? 1 : -1 : 0), "infinity", which);
    double sum = static_cast<float>(__hadd_sat(a, b)), wide = static_cast<float>(a + b);
    check(sum == (wide > 0 ? std::fmin(wide, 1.0) : 0.0) && !std::signbit(sum), "saturated", which);
}

template <class T, class P> static void pairs(const T &a, const T &b, long long which)
{
    P left(a, b), right(b, b), sum = left + right;
    check(sum.x == a + b || __hisnan(sum.x), "sum of pairs", which);
    check((__heq2_mask(left, right) & 0xffff) == (__heq(a, b) ? 0xffffU : 0U), "mask", which);
    check(__hbne2(left, right) == (__hne(a, b) && __hne(b, b)), "both", which);
    check(static_cast<float>(__hgt2(left, right).x) == (a > b ? 1.0f : 0.0f), "truth", which);
    check((left == right) == (a == b && b == b), "equal pairs", which);
    check(__lowhigh2highlow(left).x.__x == b.__x, "swapped", which);
    P stepped = P(T(1.0f), T(2.0f));
    stepped++;
    stepped *= P(T(2.0f), T(0.5f));
    check(stepped.x == T(4.0f) && stepped.y == T(1.5f) && -stepped != stepped, "steps", which);
}

template <class T, class P> static void all_pairs()
{
    for (unsigned a : bits_of_interest) {
        for (unsigned b : bits_of_interest) {
            compare(of_bits<T>(a), of_bits<T>(b), static_cast<long long>(a) << 16 | b);
            pairs<T, P>(of_bits<T>(a), of_bits<T>(b), static_cast<long long>(a) << 16 | b);
        }
    }
    check(__hmax(of_bits<T>(0x8000), of_bits<T>(0)).__x == 0, "larger zero", 0);
    check(__hmin(of_bits<T>(0), of_bits<T>(0x8000)).__x == 0x8000, "smaller zero", 0);
    T number(1.5f);
    check((number++).__x == T(1.5f).__x && (--number).__x == T(1.5f).__x, "one more", 0);
}

// ---- names that differ, and eight bits ----

static void moves()
{
    __half2 pair = make_half2(__half(1.0f), __half(2.0f)), other = __half2half2(__half(3.0f));
    check(__lows2half2(pair, other).y == __half(3.0f) && __high2half2(pair).x == __half(2.0f),
          "halves", 0);
    check(__half22float2(__float22half2_rn(make_float2(0.1f, -7.0f))).y == -7.0f, "float2", 0);
    check(__short_as_half(-1).__x == 0xffff && __half_as_short(__half(-0.0f)) == -32768, "bits", 0);
    __nv_bfloat162 brain = make_bfloat162(__nv_bfloat16(1.0f), __nv_bfloat16(-2.0f));
    check(__bfloat1622float2(__habs2(brain)).y == 2.0f && __high2float(brain) == -2.0f, "bfloat16",
          0);
    check(sizeof(__half2) == 4 && sizeof(__nv_bfloat16) == 2, "sizes", 0);
}

static void eight_bits()
{
    __half2_raw raw = make_half2(__half(448.0f), __half(-0.5f));
    check(__nv_cvt_halfraw2_to_fp8x2(raw, __NV_SATFINITE, __NV_E4M3) == 0xb07e, "pair", 0);
    check(__nv_cvt_fp8x2_to_halfraw2(0xb07e, __NV_E4M3).y == raw.y, "pair and back", 0);
    check(static_cast<int>(__nv_fp8_e5m2(-3.5f)) == -3, "integer", 0);
    double nan = std::nan("0x4000000000000"); // the second highest bit of the mantissa
    check(__nv_cvt_double_to_fp8(nan, __NV_NOSAT, __NV_E5M2) == 0x7f, "NaN of e5m2", 0);
    check(__nv_cvt_float_to_e8m0(3.0f, __NV_SATFINITE, cudaRoundPosInf) == 129, "scale up", 0);
    check(__nv_cvt_float_to_e8m0(-3.0f, __NV_NOSAT, cudaRoundZero) == 128, "scale down", 0);
    check(__nv_cvt_float_to_e8m0(INFINITY, __NV_NOSAT, cudaRoundZero) == 255, "no scale", 0);
    check(__nv_cvt_e8m0_to_bf16raw(0).x == 0x40, "smallest scale", 0);
}

int main()
{
    directed_floats();
    integers();
    all_pairs<__half, __half2>();
    all_pairs<__nv_bfloat16, __nv_bfloat162>();
    moves();
    eight_bits();
    std::printf("short arithmetic: %d failures\n", failures);
    return failures != 0;
}
