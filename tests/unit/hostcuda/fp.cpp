// Short floating formats: every number survives a round trip through float, and halves between two
// neighbours go to the even one.
#include <cmath>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

static int failures;

static void check(bool good, const char *what, unsigned bits)
{
    if (good) return;
    failures++;
    std::printf("%s, bits 0x%x\n", what, bits);
}

template <class T, class Raw> static void round_trip(const char *name, unsigned count)
{
    for (unsigned bits = 0; bits < count; bits++) {
        T value;
        value.__x = static_cast<Raw>(bits);
        float wide = static_cast<float>(value);
        T back(wide);
        if (std::isnan(wide)) {
            check(std::isnan(static_cast<float>(back)), name, bits);
        } else if (std::isinf(wide)) {
            check(sizeof(T) == 1 || back.__x == value.__x, name, bits); // fp8 saturates
        } else {
            check(back.__x == value.__x, name, bits);
        }
    }
}

template <class T, class Raw> static void ties(const char *name, unsigned from, unsigned to)
{
    for (unsigned bits = from; bits + 1 < to; bits++) {
        T low, high;
        low.__x = static_cast<Raw>(bits);
        high.__x = static_cast<Raw>(bits + 1);
        float a = static_cast<float>(low), b = static_cast<float>(high), middle = a + (b - a) / 2;
        unsigned even = bits & 1 ? bits + 1 : bits;
        check(T(middle).__x == even, name, bits);
        check(T(std::nextafter(middle, b)).__x == bits + 1, name, bits);
        check(T(std::nextafter(middle, a)).__x == bits, name, bits);
        check(T(static_cast<double>(middle) + 1e-12 * (b - a)).__x == bits + 1, name, bits);
    }
}

int main()
{
    round_trip<__half, unsigned short>("fp16", 65536);
    round_trip<__nv_bfloat16, unsigned short>("bf16", 65536);
    round_trip<__nv_fp8_e4m3, unsigned char>("e4m3", 256);
    round_trip<__nv_fp8_e5m2, unsigned char>("e5m2", 256);
    ties<__half, unsigned short>("fp16 ties", 0, 0x7c00);
    ties<__nv_bfloat16, unsigned short>("bf16 ties", 0x80, 0x7f80);
    ties<__nv_fp8_e4m3, unsigned char>("e4m3 ties", 0, 0x7f);
    ties<__nv_fp8_e5m2, unsigned char>("e5m2 ties", 0, 0x7c);
    check(__half(1e6f).__x == 0x7c00, "fp16 overflow", 0);
    check(__half(65519.99f).__x == 0x7bff && __half(65520.0f).__x == 0x7c00, "fp16 largest", 0);
    check(__nv_fp8_e4m3(1e9f).__x == 0x7e && __nv_fp8_e4m3(-INFINITY).__x == 0xfe, "e4m3 saturates",
          0);
    check(__nv_fp8_e5m2(1e9f).__x == 0x7b, "e5m2 saturates", 0);
    check(__nv_cvt_float_to_fp8(1e9f, __NV_NOSAT, __NV_E5M2) == 0x7c, "e5m2 infinity", 0);
    check(static_cast<float>(__half(1.5f) + __half(2.25f)) == 3.75f, "fp16 sum", 0);
    std::printf("short formats: %d failures\n", failures);
    return failures != 0;
}
