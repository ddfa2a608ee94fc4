/* Ways to copy on x86-64: the C library's, the string instruction, and stores that pass the caches
 * by. */
#include "bytes.h"

#include <cpuid.h>
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

enum { LINE = 64, BLOCK = 128, AHEAD = 1024, STREAM_BYTES = 256 << 10 };

static void copy_plain(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

static void copy_string(void *dst, const void *src, size_t bytes)
{
    __asm__ volatile("rep movsb" : "+D"(dst), "+S"(src), "+c"(bytes)::"memory");
}

__attribute__((target("avx2"))) static void stream_blocks(char *dst, const char *src, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += BLOCK) {
        _mm_prefetch(src + at + AHEAD, _MM_HINT_NTA); /* or the processor asks too late */
        _mm_prefetch(src + at + AHEAD + LINE, _MM_HINT_NTA);
        const __m256i *from = (const __m256i *)(const void *)(src + at);
        __m256i *to = (__m256i *)(void *)(dst + at);
        __m256i a = _mm256_loadu_si256(from);
        __m256i b = _mm256_loadu_si256(from + 1);
        __m256i c = _mm256_loadu_si256(from + 2);
        __m256i d = _mm256_loadu_si256(from + 3);
        _mm256_stream_si256(to, a);
        _mm256_stream_si256(to + 1, b);
        _mm256_stream_si256(to + 2, c);
        _mm256_stream_si256(to + 3, d);
    }
    _mm_sfence(); /* a thread that sees the copy finished sees its bytes */
}

static void copy_streaming(void *dst, const void *src, size_t bytes)
{
    char *to = dst;
    const char *from = src;
    if (bytes < STREAM_BYTES) { /* the end of a longer one */
        memcpy(dst, src, bytes);
        return;
    }
    size_t head = (LINE - (uintptr_t)to % LINE) % LINE;
    size_t body = (bytes - head) / BLOCK * BLOCK;
    memcpy(to, from, head);
    stream_blocks(to + head, from + head, body);
    memcpy(to + head + body, from + head + body, bytes - head - body);
}

/* Fast short string moves: what the processor says, asked when the library is loaded. */
enum { STRING_BYTES = 2048, FSRM = 1 << 4 };

__attribute__((constructor)) static void ask_processor(void)
{
    unsigned eax = 0;
    unsigned ebx = 0;
    unsigned ecx = 0;
    unsigned edx = 0;
    if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx))
        tt_host.copies.fast_strings = (edx & FSRM) != 0;
}

void tt_host_copy_short(void *dst, const void *src, size_t bytes)
{
    if (tt_host.copies.fast_strings && bytes >= STRING_BYTES) {
        copy_string(dst, src, bytes);
    } else {
        memcpy(dst, src, bytes);
    }
}

static bool always(void)
{
    return true;
}

static bool has_streaming(void)
{
    return __builtin_cpu_supports("avx2") != 0;
}

const struct tt_host_copy_method tt_host_copy_methods[TT_HOST_COPY_METHODS] = {
    {copy_plain, 0, always},
    {copy_string, 0, always},
    {copy_streaming, STREAM_BYTES, has_streaming},
};
