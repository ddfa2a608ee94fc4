/* Checks at compile time that a header agrees with the published one: sizes, places, types, values,
 * signatures. Works in C and C++; the files that use it hold nothing but facts. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
#include <type_traits>
#define ABI_CHECK(c, m) static_assert(c, m)
#define ABI_FIELD_TYPE(T, f, ...)                                                                  \
    static_assert(std::is_same<decltype(&((T *)0)->f), __VA_ARGS__>::value, #T "." #f " type")
#define ABI_FUNC_TYPE(fn, ...)                                                                     \
    static_assert(sizeof(static_cast<__VA_ARGS__>(&fn)) > 0, #fn " signature")
#define ABI_TYPEDEF(T, ...) static_assert(std::is_same<T, __VA_ARGS__>::value, #T " type")
#else
#define ABI_CHECK(c, m) _Static_assert(c, m)
#define ABI_FIELD_TYPE(T, f, ...)                                                                  \
    _Static_assert(_Generic(&((T *)0)->f, __VA_ARGS__ : 1, default : 0), #T "." #f " type")
#define ABI_FUNC_TYPE(fn, ...)                                                                     \
    _Static_assert(_Generic(&fn, __VA_ARGS__ : 1, default : 0), #fn " signature")
#define ABI_TYPEDEF(T, ...) _Static_assert(_Generic((T)0, __VA_ARGS__ : 1, default : 0), #T " type")
#endif
#define ABI_SIZE(T, n) ABI_CHECK(sizeof(T) == (n), "sizeof " #T)
#define ABI_ALIGN(T, n) ABI_CHECK(__alignof__(T) == (n), "alignment of " #T)
#define ABI_AT(T, f, off, sz)                                                                      \
    ABI_CHECK(offsetof(T, f) == (off) && sizeof(((T *)0)->f) == (sz), #T "." #f " place")
#define ABI_VALUE(x, v) ABI_CHECK((long long)(x) == (v), #x " value")
#define ABI_STR_(x) #x
#define ABI_STR(x) ABI_STR_(x)
#define ABI_TOKEN(x, s) ABI_CHECK(__builtin_strcmp(ABI_STR(x), s) == 0, #x " token")
#define ABI_STRING(x, s) ABI_CHECK(__builtin_strcmp(x, s) == 0, #x " text")
#if defined(__cplusplus)
#define ABI_FLOAT(x, t, v) ABI_CHECK((x) == (v), #x " value")
#define ABI_NULL(x) ABI_CHECK((x) == NULL, #x " value")
#elif defined(__clang__) /* not constant expressions for this compiler: type only */
#define ABI_FLOAT(x, t, v) ABI_CHECK(_Generic((x), t : 1, default : 0), #x " type")
#define ABI_NULL(x) ABI_CHECK(_Generic((x), void * : 1, default : 0), #x " type")
#else
#define ABI_FLOAT(x, t, v) ABI_CHECK(_Generic((x), t : 1, default : 0) && (x) == (v), #x " value")
#define ABI_NULL(x) ABI_CHECK((x) == NULL, #x " value")
#endif
