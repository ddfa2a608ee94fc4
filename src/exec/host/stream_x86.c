/* Copies with instructions that C does not have, for x86-64: stores that go around the cache, and
 * the string move. */
#include "exec/host/fold.h"

#include <emmintrin.h>
#include <string.h>

#define LINE 64

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
    for (; at + LINE <= bytes; at += LINE)
        stream_line(to + at, from + at);
    memcpy(to + at, from + at, bytes - at);
}

void tt_stream_fence(void)
{
    _mm_sfence();
}

void tt_string_copy(void *dst, const void *src, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(bytes)::"memory");
}
