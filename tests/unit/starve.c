/* Takes the place of the C library's functions (ld --wrap) for all that is linked statically. */
#include "starve.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>

static _Atomic long left; /* until one fails; below 1: that was it, or none is to */
static _Atomic bool failed;

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp): the linker's names */
#pragma GCC visibility push(default) /* with --wrap it looks for them from shared libraries, too   \
                                      */
void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t bytes);
void *__real_aligned_alloc(size_t grain, size_t bytes);
char *__real_strdup(const char *text);
char *__real_strndup(const char *text, size_t bytes);
FILE *__real_open_memstream(char **text, size_t *bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t bytes);
void *__wrap_aligned_alloc(size_t grain, size_t bytes);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t bytes);
FILE *__wrap_open_memstream(char **text, size_t *bytes);
#pragma GCC visibility pop

void starve_at(long n)
{
    atomic_store(&failed, false);
    atomic_store(&left, n);
}

bool starve_end(void)
{
    atomic_store(&left, 0);
    return atomic_load(&failed);
}

static bool is_due(void)
{
    if (atomic_load(&left) <= 0 || atomic_fetch_sub(&left, 1) != 1) return false;
    atomic_store(&failed, true);
    errno = ENOMEM;
    return true;
}

void *__wrap_malloc(size_t bytes)
{
    return is_due() ? NULL : __real_malloc(bytes);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_due() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t bytes)
{
    return is_due() ? NULL : __real_realloc(old, bytes);
}

void *__wrap_aligned_alloc(size_t grain, size_t bytes)
{
    return is_due() ? NULL : __real_aligned_alloc(grain, bytes);
}

char *__wrap_strdup(const char *text)
{
    return is_due() ? NULL : __real_strdup(text);
}

char *__wrap_strndup(const char *text, size_t bytes)
{
    return is_due() ? NULL : __real_strndup(text, bytes);
}

FILE *__wrap_open_memstream(char **text, size_t *bytes)
{
    return is_due() ? NULL : __real_open_memstream(text, bytes);
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp) */
