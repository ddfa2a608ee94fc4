/* fp16 to fp32 and back with the processor's conversions, eight at a time (F16C). */
#pragma once

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline __m256 tt_half_load(const char *src)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(const void *)src));
}

static inline void tt_half_store(char *dst, __m256 value)
{
    _mm_storeu_si128((__m128i *)(void *)dst, _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT));
}

static void tt_half_widen(float *dst, const void *src, size_t count)
{
    const char *from = src;
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        _mm256_storeu_ps(dst + i, tt_half_load(from + 2 * i));
    char rest[16] = {0};
    float wide[8];
    memcpy(rest, from + 2 * i, 2 * (count - i));
    _mm256_storeu_ps(wide, tt_half_load(rest));
    memcpy(dst + i, wide, sizeof(float) * (count - i));
}

static void tt_half_narrow(void *dst, const float *src, size_t count)
{
    char *to = dst;
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        tt_half_store(to + 2 * i, _mm256_loadu_ps(src + i));
    float wide[8] = {0};
    char rest[16];
    memcpy(wide, src + i, sizeof(float) * (count - i));
    tt_half_store(rest, _mm256_loadu_ps(wide));
    memcpy(to + 2 * i, rest, 2 * (count - i));
}

static void tt_half_sum(void *dst, const void *a, const void *b, size_t count)
{
    char *to = dst;
    const char *x = a, *y = b;
    size_t i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 total = _mm256_add_ps(tt_half_load(x + 2 * i), tt_half_load(y + 2 * i));
        tt_half_store(to + 2 * i, total);
    }
    char p[16] = {0}, q[16] = {0};
    memcpy(p, x + 2 * i, 2 * (count - i));
    memcpy(q, y + 2 * i, 2 * (count - i));
    tt_half_store(p, _mm256_add_ps(tt_half_load(p), tt_half_load(q)));
    memcpy(to + 2 * i, p, 2 * (count - i));
}

/* `lanes` sums (at most 8) of all sources from element `at` on. */
static inline void tt_half_sum_few(char *dst, const void *const *srcs, int nsrcs, size_t at,
                                   size_t lanes)
{
    __m256 sum = _mm256_set1_ps(-0.0f);
    char x[16] = {0};
    for (int k = 0; k < nsrcs; k++) {
        memcpy(x, (const char *)srcs[k] + 2 * at, 2 * lanes);
        sum = _mm256_add_ps(sum, tt_half_load(x));
    }
    tt_half_store(x, sum);
    memcpy(dst, x, 2 * lanes);
}

/* Sums of all sources from element `at` on, kept as fp32 in registers; dst may be a source there.
 */
static void tt_half_sum_many(void *dst, const void *const *srcs, int nsrcs, size_t at, size_t count)
{
    enum { VECTORS = 4, LANES = 8 };
    char *to = dst;
    size_t done = 0;
    for (; done + VECTORS * LANES <= count; done += VECTORS * LANES) {
        const size_t byte = 2 * (at + done);
        __m256 sum[VECTORS];
        for (int v = 0; v < VECTORS; v++)
            sum[v] = tt_half_load((const char *)srcs[0] + byte + 2 * LANES * v);
        for (int k = 1; k < nsrcs; k++) {
            const char *from = (const char *)srcs[k] + byte;
            for (int v = 0; v < VECTORS; v++)
                sum[v] = _mm256_add_ps(sum[v], tt_half_load(from + 2 * LANES * v));
        }
        for (int v = 0; v < VECTORS; v++)
            tt_half_store(to + 2 * (done + (size_t)v * LANES), sum[v]);
    }
    for (; done < count; done += LANES) {
        tt_half_sum_few(to + 2 * done, srcs, nsrcs, at + done,
                        count - done < LANES ? count - done : LANES);
    }
}
