/* Checks of a program against the runtime: each says the line, the call and both codes when it
 * fails. A call that must work counts for the row of its function as "does", one that must be
 * refused as "refuses"; with CONFORM_ROWS=FILE the counts are appended there (surface.py adds them
 * up). For C and C++, against our headers or NVIDIA's; with CONFORM_DRIVER for cuda.h. */
#ifndef CONFORM_H_
#define CONFORM_H_

#ifdef CONFORM_DRIVER
#include <cuda.h>
#else
#include <cuda_runtime.h>
#endif
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CONFORM_ROWS_MOST = 512, CONFORM_NAME = 80 };

struct conform_row {
    char name[CONFORM_NAME];
    int does, refuses, fails;
};

static struct conform_row conform_rows[CONFORM_ROWS_MOST];
static int failures, checks;

/* The row of "cudaMalloc((void **)&p, 8)" is cudaMalloc. */
static struct conform_row *conform_row_of(const char *text)
{
    size_t len = strcspn(text, "(");
    if (len >= CONFORM_NAME || strncmp(text + (text[0] == '_' ? 2 : 0), "cu", 2) != 0) return NULL;
    for (int i = 0; i < CONFORM_ROWS_MOST; i++) {
        struct conform_row *row = &conform_rows[i];
        if (!row->name[0]) memcpy(row->name, text, len);
        if (strlen(row->name) == len && !memcmp(row->name, text, len)) return row;
    }
    return NULL;
}

/* What another thread counts up has come to this; `wanted` that never comes is a test that hangs.
 */
static inline void conform_await(int *count, int wanted)
{
    while (__atomic_load_n(count, __ATOMIC_ACQUIRE) != wanted) {
        sched_yield();
    }
}

static void conform(int good, int line, const char *text, int wanted, int got)
{
    struct conform_row *row = conform_row_of(text);
    checks++;
    if (row && wanted) row->refuses++;
    if (row && !wanted) row->does++;
    if (good) return;
    failures++;
    if (row) row->fails++;
    printf("line %d: %s: wanted %d, got %d\n", line, text, wanted, got);
}

/* A result must also be the thread's last error, which the driver does not have. */
#ifdef CONFORM_DRIVER
#define CONFORM_CALL(code, text, call)                                                             \
    do {                                                                                           \
        int got_ = (int)(call);                                                                    \
        conform(got_ == (int)(code), __LINE__, text, (int)(code), got_);                           \
    } while (0)
#else
#define CONFORM_CALL(code, text, call)                                                             \
    do {                                                                                           \
        cudaGetLastError();                                                                        \
        int got_ = (int)(call), last_ = (int)cudaGetLastError();                                   \
        conform(got_ == (int)(code) && last_ == got_, __LINE__, text, (int)(code), got_);          \
    } while (0)
#endif
#define ANSWERS(code, call) CONFORM_CALL(code, #call, call)
#define WORKS(call) CONFORM_CALL(0, #call, call)
/* A condition of no row; DOES and REFUSES name one, for functions that return no code. */
#define HOLDS(value) conform((value) ? 1 : 0, __LINE__, " " #value, 1, 0)
#define DOES(function, value) conform((value) ? 1 : 0, __LINE__, #function "()", 0, 1)
#define REFUSES(function, value) conform((value) ? 1 : 0, __LINE__, #function "()", 1, 0)

static int finish(const char *name)
{
    const char *path = getenv("CONFORM_ROWS");
    FILE *file = path ? fopen(path, "a") : NULL;
    for (int i = 0; file && i < CONFORM_ROWS_MOST && conform_rows[i].name[0]; i++) {
        const struct conform_row *row = &conform_rows[i];
        fprintf(file, "%s %d %d %d\n", row->name, row->does, row->refuses, row->fails);
    }
    if (file) fclose(file);
    printf("%s: %d checks, %d failures\n", name, checks, failures);
    return failures != 0;
}

#endif
