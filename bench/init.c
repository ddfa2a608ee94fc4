/* How long ncclCommInitRank takes for n processes of this machine that are already running: from
 * the first call to the last return, median of several rounds. bench-init [ranks] [rounds]      (2
 * and 8 ranks, 20 rounds) */
#include "nccl.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MAX_RANKS 128

struct board { /* shared by all processes */
    _Atomic int round, arrived, failed;
    ncclUniqueId id;
    double start_sec[MAX_RANKS], end_sec[MAX_RANKS];
};

static double now_sec(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void nap(void)
{
    const struct timespec some = {.tv_nsec = 50000};
    nanosleep(&some, NULL);
}

static void rank_main(struct board *board, int nranks, int rank, int rounds)
{
    for (int round = 1; round <= rounds; round++) {
        ncclComm_t comm = NULL;
        while (atomic_load(&board->round) < round)
            nap();
        board->start_sec[rank] = now_sec();
        ncclResult_t rc = ncclCommInitRank(&comm, nranks, board->id, rank);
        board->end_sec[rank] = now_sec();
        if (rc) {
            fprintf(stderr, "rank %d: %s\n", rank, ncclGetLastError(NULL));
            atomic_fetch_add(&board->failed, 1);
        }
        atomic_fetch_add(&board->arrived, 1);
        ncclCommDestroy(comm);
    }
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double round_sec(const struct board *board, int nranks)
{
    double first = board->start_sec[0], last = board->end_sec[0];
    for (int r = 1; r < nranks; r++) {
        if (board->start_sec[r] < first) first = board->start_sec[r];
        if (board->end_sec[r] > last) last = board->end_sec[r];
    }
    return last - first;
}

static int measure(int nranks, int rounds)
{
    struct board *board =
        mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    double *times = calloc((size_t)rounds, sizeof(*times));
    if (board == MAP_FAILED || !times) return 1;
    memset(board, 0, sizeof(*board));
    fflush(NULL);
    for (int r = 0; r < nranks; r++) {
        if (fork()) continue;
        rank_main(board, nranks, r, rounds);
        exit(0);
    }
    for (int round = 1; round <= rounds; round++) {
        if (ncclGetUniqueId(&board->id)) return 1;
        atomic_store(&board->arrived, 0);
        atomic_store(&board->round, round);
        while (atomic_load(&board->arrived) < nranks)
            nap();
        times[round - 1] = round_sec(board, nranks);
    }
    while (wait(NULL) > 0)
        nap();
    qsort(times, (size_t)rounds, sizeof(*times), compare);
    int failed = atomic_load(&board->failed);
    printf("init of %d processes: median %.1f ms, best %.1f ms, worst %.1f ms of %d rounds%s\n",
           nranks, times[rounds / 2] * 1e3, times[0] * 1e3, times[rounds - 1] * 1e3, rounds,
           failed ? ", WITH ERRORS" : "");
    free(times);
    munmap(board, sizeof(*board));
    return failed != 0;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 20;
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    if (rounds < 1) return 2;
    if (argc < 2) return measure(2, rounds) | measure(8, rounds);
    int nranks = atoi(argv[1]);
    return nranks < 1 || nranks > MAX_RANKS ? 2 : measure(nranks, rounds);
}
