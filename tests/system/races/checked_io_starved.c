/* A system call on closed pages when no memory is left to judge it: it does its work all the same,
 * and nothing is reported. */
#include "cuda_runtime.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BYTES = 64 << 10 };

static _Thread_local bool starves;
static _Thread_local int refused;

/* NOLINTNEXTLINE(bugprone-reserved-identifier): the C library's */
void *__libc_calloc(size_t count, size_t bytes);

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
    refused += starves;
    return starves ? NULL : __libc_calloc(count, bytes);
}

static void expect(int rc, int line, const char *call)
{
    if (!rc) return;
    fprintf(stderr, "line %d: %s: %d\n", line, call, rc);
    exit(2);
}
#define OK(call) expect((int)(call), __LINE__, #call)
#define CHECK(what) OK(!(what))

int main(void)
{
    static char sent[BYTES / 4], got[BYTES / 4];
    char *pinned, *device;
    int ends[2];
    cudaStream_t stream;
    setenv("TUTTI_CHECK", "race:exit", 1);
    OK(pipe(ends));
    OK(cudaMallocHost((void **)&pinned, BYTES));
    OK(cudaMalloc((void **)&device, BYTES));
    OK(cudaMemset(device, 7, BYTES));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    memset(sent, 3, sizeof(sent));
    CHECK(write(ends[1], sent, sizeof(sent)) == sizeof(sent));

    OK(cudaMemcpyAsync(pinned, device, BYTES, cudaMemcpyDefault, stream));
    starves = true;
    ssize_t n = write(ends[1], pinned + BYTES / 2, BYTES / 8);
    ssize_t more = read(ends[0], pinned, sizeof(sent));
    starves = false;
    CHECK(n == BYTES / 8 && more == sizeof(sent));
    CHECK(refused == 2);
    OK(cudaStreamSynchronize(stream));
    CHECK(read(ends[0], got, BYTES / 8) == BYTES / 8);
    OK(cudaFreeHost(pinned));
    OK(cudaFree(device));
    return 0;
}
