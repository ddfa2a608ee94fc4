/* Copies with instructions that C does not have, for x86-64: stores that go around the
 * cache. */
#include "exec/host/reduce.h"

#include <emmintrin.h>
#include <string.h>

#define LINE 64
#define AHEAD 1024 /* the processors ask too late by themselves when stores go around the cache */

static inline void stream_line(char *dst, const char *src)
{
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)src);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(src + 16));
    __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(src + 32));
    __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(src + 48));
    _mm_stream_si128((__m128i *)(void *)dst, a);
    _mm_stream_si128((__m128i *)(void *)(dst + 16), b);
    _mm_stream_si128((__m128i *)(void *)(dst + 32), c);
    _mm_stream_si128((__m128i *)(void *)(dst + 48), d);
}

void tt_stream_copy(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;
    size_t head = (LINE - (uintptr_t)to % LINE) % LINE;
    if (bytes < head + LINE) {
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, head);
    size_t at = head;
    for (; at + LINE <= bytes; at += LINE) {
        __builtin_prefetch(from + at + AHEAD);
        stream_line(to + at, from + at);
    }
    memcpy(to + at, from + at, bytes - at);
}

static bool all_on_lines(void *const *dsts, int ndsts, size_t at)
{
    for (int k = 0; k < ndsts; k++) {
        if (((uintptr_t)dsts[k] + at) % LINE) return false;
    }
    return true;
}

void tt_stream_tile(const struct tt_stream_tile *tile)
{
    size_t at = tile->at, end = at + tile->bytes;
    const char *from = tile->from;
    bool lines = all_on_lines(tile->dsts, tile->ndsts, at);
    for (; lines && at + LINE <= end; at += LINE, from += LINE) {
        for (int k = 0; k < tile->nsrcs; k++)
            __builtin_prefetch((const char *)tile->srcs[k] + at + tile->bytes);
        for (int k = 0; k < tile->ndsts; k++)
            stream_line((char *)tile->dsts[k] + at, from);
    }
    for (int k = 0; at < end && k < tile->ndsts; k++)
        tt_stream_copy((char *)tile->dsts[k] + at, from, end - at);
}

void tt_stream_fence(void)
{
    _mm_sfence();
}
