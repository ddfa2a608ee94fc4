/* starved STEP [FROM [TO]]: each STEPth allocation of two ranks' whole life fails once, from init
 * over a collective and a split to the end: an error, or all goes well and the sums are right; no
 * hang, no crash. Leaks are the sanitizer's. */
#include "../../unit/starve.h"

#include "base/error.h"

#include <cuda_runtime.h>
#include <nccl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { RANKS = 2, COUNT = 1000, TIMEOUT_SEC = 60, SPARE = 8 };

struct world {
    float *buffer[RANKS];
    ncclComm_t comm[RANKS], child[RANKS];
    ncclWindow_t window[RANKS];
};

static int fill(const struct world *world)
{
    float values[COUNT];
    int error = 0;
    for (int k = 0; k < COUNT; k++)
        values[k] = (float)k;
    for (int r = 0; r < RANKS && !error; r++)
        error = (int)cudaMemcpy(world->buffer[r], values, sizeof(values), cudaMemcpyHostToDevice);
    return error;
}

static int count_wrong(const struct world *world, float factor)
{
    float values[COUNT];
    int wrong = 0;
    for (int r = 0; r < RANKS; r++) {
        if (cudaMemcpy(values, world->buffer[r], sizeof(values), cudaMemcpyDeviceToHost)) return -1;
        for (int k = 0; k < COUNT; k++)
            wrong += values[k] != factor * (float)k;
    }
    return wrong;
}

static ncclResult_t sum_up(const struct world *world, const ncclComm_t *comm)
{
    ncclResult_t rc = ncclGroupStart();
    if (rc) return rc;
    for (int r = 0; r < RANKS && !rc; r++)
        rc = ncclAllReduce(world->buffer[r], world->buffer[r], COUNT, ncclFloat, ncclSum, comm[r],
                           NULL);
    ncclResult_t end = ncclGroupEnd();
    for (int r = 0; r < RANKS && !rc && !end; r++) {
        if (cudaSetDevice(r) || cudaStreamSynchronize(NULL)) rc = ncclUnhandledCudaError;
        if (!rc && ncclCommGetAsyncError(comm[r], &end)) rc = ncclInternalError;
    }
    return rc ? rc : end;
}

static ncclResult_t exchange(const struct world *world)
{
    ncclResult_t rc = ncclGroupStart();
    if (rc) return rc;
    for (int r = 0; r < RANKS && !rc; r++) {
        rc = ncclSend(world->buffer[r], COUNT, ncclFloat, 1 - r, world->comm[r], NULL);
        if (!rc) rc = ncclRecv(world->buffer[r], COUNT, ncclFloat, 1 - r, world->comm[r], NULL);
    }
    ncclResult_t end = ncclGroupEnd();
    return rc ? rc : end;
}

static ncclResult_t split(struct world *world)
{
    ncclResult_t rc = ncclGroupStart();
    if (rc) return rc;
    for (int r = 0; r < RANKS && !rc; r++)
        rc = ncclCommSplit(world->comm[r], 0, r, &world->child[r], NULL);
    ncclResult_t end = ncclGroupEnd();
    return rc ? rc : end;
}

/* One rank without memory is the other's failure, too; windows end with their communicators. */
static ncclResult_t windows(struct world *world)
{
    ncclResult_t rc = ncclGroupStart();
    if (rc) return rc;
    for (int r = 0; r < RANKS && !rc; r++)
        rc = ncclCommWindowRegister(world->comm[r], world->buffer[r], COUNT * sizeof(float),
                                    &world->window[r], NCCL_WIN_DEFAULT);
    ncclResult_t end = ncclGroupEnd();
    return rc ? rc : end;
}

/* All of it; a success that is wrong is none. */
static ncclResult_t live(struct world *world, int *wrong)
{
    ncclResult_t rc = ncclCommInitAll(world->comm, RANKS, NULL);
    if (!rc) rc = sum_up(world, world->comm);
    if (!rc) rc = exchange(world);
    if (!rc) rc = windows(world);
    if (!rc) rc = split(world);
    if (!rc) rc = sum_up(world, world->child);
    if (!rc) *wrong = count_wrong(world, RANKS * RANKS);
    return rc;
}

/* Who did not fail itself hears of a rank that did, by name or as one that went. */
static int is_reason(const char *why)
{
    static const char *const words[] = {
        "memory",  "no network works", /* for want of memory, says its log */
        "is gone", "went away",        "refused its part",
        "gave up", "aborted",          "remote process exited"};
    for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
        if (strstr(why, words[k])) return 1;
    return 0;
}

/* An end that fails for lack of memory has done nothing, or it has ended the communicator and tells
 * that a rank had no memory, late: the abort that follows ends it, or is refused by name. */
static int end(ncclComm_t comm, int *broken)
{
    if (!comm) return 0;
    ncclResult_t rc = *broken ? ncclCommAbort(comm) : ncclCommDestroy(comm);
    if (rc) *broken = 1;
    if (rc == ncclSystemError && starve_end() && is_reason(ncclGetLastError(NULL))) {
        rc = ncclCommAbort(comm);
        if (rc == ncclInvalidArgument) rc = ncclSuccess;
    }
    /* the other rank had no memory, late, and said so */
    if (rc == ncclRemoteError && starve_end() && is_reason(ncclGetLastError(comm)))
        rc = ncclSuccess;
    if (rc) printf("the end of a communicator: code %d: %s\n", (int)rc, ncclGetLastError(NULL));
    return rc != ncclSuccess;
}

/* In a thread of its own: what the caller reads has been said since. */
static void *say_nothing(void *unused)
{
    (void)tt_fail(ncclInternalError, "nobody said anything");
    return unused;
}

/* 1: something is wrong; 0: an allocation failed and nothing is; -1: there were none left. */
static int turn(struct world *world, long n, long *done_without)
{
    int wrong = 0, bad = 0, broken = 0;
    pthread_t thread;
    memset(world->comm, 0, sizeof(world->comm));
    memset(world->child, 0, sizeof(world->child));
    if (fill(world)) return 1;
    alarm(TIMEOUT_SEC);
    if (pthread_create(&thread, NULL, say_nothing, NULL) || pthread_join(thread, NULL)) return 1;
    starve_at(n);
    ncclResult_t rc = live(world, &wrong);
    if (rc && !is_reason(ncclGetLastError(NULL))) {
        printf("allocation %ld: code %d: %s\n", n, (int)rc, ncclGetLastError(NULL));
        bad = getenv("STARVED_ON") == NULL;
    }
    if (wrong) printf("allocation %ld: %d values are wrong, and nobody said so\n", n, wrong);
    broken = rc != ncclSuccess;
    for (int r = 0; r < RANKS; r++) {
        bad |= end(world->child[r], &broken);
        bad |= end(world->comm[r], &broken);
    }
    int failed = starve_end();
    alarm(0);
    *done_without += failed && !rc;
    if (rc && !failed) printf("allocation %ld: code %d without a reason\n", n, (int)rc);
    if (wrong || bad || (rc && !failed)) return 1;
    return failed ? 0 : -1;
}

int main(int argc, char **argv)
{
    struct world world;
    long step = argc > 1 ? atol(argv[1]) : 1, n = argc > 2 ? atol(argv[2]) : 1;
    long to = argc > 3 ? atol(argv[3]) : 1000000;
    long done_without = 0, turns = 0;
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    int wrong = 0;
    for (int r = 0; r < RANKS; r++) {
        if (cudaSetDevice(r) || cudaMalloc((void **)&world.buffer[r], COUNT * sizeof(float)))
            return 1;
    }
    /* threads make the number of allocations vary: some turns more than the first that had all */
    for (int spared = 0; n < to && spared < SPARE && !wrong; turns++) {
        int state = turn(&world, n, &done_without);
        wrong = state > 0;
        spared += state < 0;
        n += step;
    }
    printf("%ld turns, up to allocation %ld, %ld done without, %d wrong\n", turns, n, done_without,
           wrong);
    for (int r = 0; r < RANKS; r++)
        (void)cudaFree(world.buffer[r]);
    return wrong;
}
