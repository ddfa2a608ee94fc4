/* Memory that is kept and must not be touched: the address sanitizer, where it is loaded, treats it
 * as freed. Whole words of 8 bytes. */
#pragma once

#include <stddef.h>

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): its names, not ours */
void __asan_poison_memory_region(const volatile void *start, size_t bytes) __attribute__((weak));
void __asan_unpoison_memory_region(const volatile void *start, size_t bytes) __attribute__((weak));
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */

static inline void tt_poison(const void *start, size_t bytes)
{
    if (__asan_poison_memory_region) __asan_poison_memory_region(start, bytes);
}

static inline void tt_unpoison(const void *start, size_t bytes)
{
    if (__asan_unpoison_memory_region) __asan_unpoison_memory_region(start, bytes);
}
