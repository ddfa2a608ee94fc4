/* Checks of a program against the runtime: each says the line, the call and both codes when it
 * fails. For C and C++, against our headers or NVIDIA's. */
#ifndef CONFORM_H_
#define CONFORM_H_

#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures, checks;

static void conform(int good, int line, const char *text, int wanted, int got)
{
    checks++;
    if (good) return;
    failures++;
    printf("line %d: %s: wanted %d, got %d\n", line, text, wanted, got);
}

/* The call answers `code`, and the thread's last error is the same. */
#define ANSWERS(code, call)                                                                        \
    do {                                                                                           \
        cudaGetLastError();                                                                        \
        int got_ = (int)(call), last_ = (int)cudaGetLastError();                                   \
        conform(got_ == (int)(code) && last_ == got_, __LINE__, #call, (int)(code), got_);         \
    } while (0)
#define WORKS(call) ANSWERS(cudaSuccess, call)
#define HOLDS(value) conform((value) ? 1 : 0, __LINE__, #value, 1, 0)

static int finish(const char *name)
{
    printf("%s: %d checks, %d failures\n", name, checks, failures);
    return failures != 0;
}

#endif
