/* The sums of mac.c with the carry-less products of x86-64 processors: of one, two or four pairs of
 * words at a time, some 26, 57 and 85 GB/s in the cache. */
#include "transport/net/mac.h"

#include <immintrin.h>
#include <stdbool.h>

__attribute__((target("pclmul"))) static inline __m128i product(const uint64_t *key,
                                                                const unsigned char *bytes)
{
    __m128i keyed = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)bytes),
                                  _mm_loadu_si128((const __m128i *)(const void *)key));
    return _mm_clmulepi64_si128(keyed, keyed, 0x10); /* the lower half times the upper one */
}

__attribute__((target("pclmul"))) static void
sum_by_one(const uint64_t *key, const unsigned char *bytes, size_t len_bytes, uint64_t sum_out[2])
{
    __m128i even = _mm_setzero_si128(), odd = even;
    for (size_t n = 0; n < len_bytes; n += 32) {
        even = _mm_xor_si128(even, product(key + n / 8, bytes + n));
        odd = _mm_xor_si128(odd, product(key + n / 8 + 2, bytes + n + 16));
    }
    _mm_storeu_si128((__m128i *)(void *)sum_out, _mm_xor_si128(even, odd));
}

__attribute__((target("avx2,vpclmulqdq"))) static inline __m256i
products(const uint64_t *key, const unsigned char *bytes)
{
    __m256i keyed = _mm256_xor_si256(_mm256_loadu_si256((const __m256i *)(const void *)bytes),
                                     _mm256_loadu_si256((const __m256i *)(const void *)key));
    return _mm256_clmulepi64_epi128(keyed, keyed, 0x10);
}

__attribute__((target("avx2"))) static inline void add_lanes(__m256i sums, uint64_t sum_out[2])
{
    __m128i sum = _mm_xor_si128(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
    _mm_storeu_si128((__m128i *)(void *)sum_out, sum);
}

__attribute__((target("avx2,vpclmulqdq"))) static void
sum_by_two(const uint64_t *key, const unsigned char *bytes, size_t len_bytes, uint64_t sum_out[2])
{
    __m256i even = _mm256_setzero_si256(), odd = even;
    for (size_t n = 0; n < len_bytes; n += 64) {
        even = _mm256_xor_si256(even, products(key + n / 8, bytes + n));
        odd = _mm256_xor_si256(odd, products(key + n / 8 + 4, bytes + n + 32));
    }
    add_lanes(_mm256_xor_si256(even, odd), sum_out);
}

__attribute__((target("avx512f,vpclmulqdq"))) static inline __m512i
products_of_four(const uint64_t *key, const unsigned char *bytes)
{
    __m512i keyed = _mm512_xor_si512(_mm512_loadu_si512(bytes), _mm512_loadu_si512(key));
    return _mm512_clmulepi64_epi128(keyed, keyed, 0x10);
}

__attribute__((target("avx512f,vpclmulqdq"))) static void
sum_by_four(const uint64_t *key, const unsigned char *bytes, size_t len_bytes, uint64_t sum_out[2])
{
    __m512i even = _mm512_setzero_si512(), odd = even;
    size_t n = 0;
    for (; n + 128 <= len_bytes; n += 128) {
        even = _mm512_xor_si512(even, products_of_four(key + n / 8, bytes + n));
        odd = _mm512_xor_si512(odd, products_of_four(key + n / 8 + 8, bytes + n + 64));
    }
    if (n < len_bytes) even = _mm512_xor_si512(even, products_of_four(key + n / 8, bytes + n));
    even = _mm512_xor_si512(even, odd);
    add_lanes(_mm256_xor_si256(_mm512_castsi512_si256(even), _mm512_extracti64x4_epi64(even, 1)),
              sum_out);
}

tt_mac_sum_fn *const *tt_mac_sums(void)
{
    static tt_mac_sum_fn *const sums[] = {sum_by_four, sum_by_two, sum_by_one, tt_mac_sum, NULL};
    bool wide = __builtin_cpu_supports("vpclmulqdq");
    if (wide && __builtin_cpu_supports("avx512f")) return sums;
    if (wide && __builtin_cpu_supports("avx2")) return sums + 1;
    return sums + (__builtin_cpu_supports("pclmul") ? 2 : 3);
}
