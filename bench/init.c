/* How long ncclCommInitRank takes for n processes of this machine that are already running: from
 * the first call to the last return, and the processor time of all of them meanwhile.
 *   bench-init [ranks] [rounds]  median of the rounds; 2 and 8 ranks, 20 rounds
 *   bench-init table [rounds]    best of them, over ranks and channels */
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

struct shared { /* shared by all processes */
    _Atomic int round, arrived, failed;
    ncclUniqueId id;
    double start_sec[MAX_RANKS], end_sec[MAX_RANKS], busy_sec[MAX_RANKS];
};

static double clock_sec(clockid_t clock)
{
    struct timespec at;
    clock_gettime(clock, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static void sleep_briefly(void)
{
    const struct timespec some = {.tv_nsec = 50000};
    nanosleep(&some, NULL);
}

static void rank_main(struct shared *shared, int nranks, int rank, int rounds)
{
    for (int round = 1; round <= rounds; round++) {
        ncclComm_t comm = NULL;
        while (atomic_load(&shared->round) < round)
            sleep_briefly();
        double busy_sec = clock_sec(CLOCK_PROCESS_CPUTIME_ID);
        shared->start_sec[rank] = clock_sec(CLOCK_MONOTONIC);
        ncclResult_t rc = ncclCommInitRank(&comm, nranks, shared->id, rank);
        shared->end_sec[rank] = clock_sec(CLOCK_MONOTONIC);
        shared->busy_sec[rank] = clock_sec(CLOCK_PROCESS_CPUTIME_ID) - busy_sec;
        if (rc) {
            fprintf(stderr, "rank %d: %s\n", rank, ncclGetLastError(NULL));
            atomic_fetch_add(&shared->failed, 1);
        }
        atomic_fetch_add(&shared->arrived, 1);
        ncclCommDestroy(comm);
    }
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double round_sec(const struct shared *shared, int nranks)
{
    double first = shared->start_sec[0], last = shared->end_sec[0];
    for (int r = 1; r < nranks; r++) {
        if (shared->start_sec[r] < first) first = shared->start_sec[r];
        if (shared->end_sec[r] > last) last = shared->end_sec[r];
    }
    return last - first;
}

static double busy_sum(const struct shared *shared, int nranks)
{
    double sum = 0;
    for (int r = 0; r < nranks; r++)
        sum += shared->busy_sec[r];
    return sum;
}

struct times { /* of the rounds, the shortest first */
    double *wall_sec, *busy_sec;
    int failed;
};

static int run(int nranks, int rounds, struct times *times)
{
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    times->wall_sec = calloc((size_t)rounds, sizeof(double));
    times->busy_sec = calloc((size_t)rounds, sizeof(double));
    if (shared == MAP_FAILED || !times->wall_sec || !times->busy_sec) return 1;
    fflush(NULL);
    for (int r = 0; r < nranks; r++) {
        if (fork()) continue;
        rank_main(shared, nranks, r, rounds);
        exit(0);
    }
    for (int round = 1; round <= rounds; round++) {
        if (ncclGetUniqueId(&shared->id)) return 1;
        atomic_store(&shared->arrived, 0);
        atomic_store(&shared->round, round);
        while (atomic_load(&shared->arrived) < nranks)
            sleep_briefly();
        times->wall_sec[round - 1] = round_sec(shared, nranks);
        times->busy_sec[round - 1] = busy_sum(shared, nranks);
    }
    while (wait(NULL) > 0)
        sleep_briefly();
    qsort(times->wall_sec, (size_t)rounds, sizeof(double), compare);
    qsort(times->busy_sec, (size_t)rounds, sizeof(double), compare);
    times->failed = atomic_load(&shared->failed);
    munmap(shared, sizeof(*shared));
    return times->failed != 0;
}

static int measure(int nranks, int rounds)
{
    struct times times = {0};
    int rc = run(nranks, rounds, &times);
    if (times.wall_sec && times.busy_sec)
        printf("init of %d processes: median %.1f ms, best %.1f ms, worst %.1f ms of %d rounds, "
               "%.1f ms of processors%s\n",
               nranks, times.wall_sec[rounds / 2] * 1e3, times.wall_sec[0] * 1e3,
               times.wall_sec[rounds - 1] * 1e3, rounds, times.busy_sec[rounds / 2] * 1e3,
               times.failed ? ", WITH ERRORS" : "");
    free(times.wall_sec);
    free(times.busy_sec);
    return rc;
}

/* In a process of its own, which has read no variable yet. */
static int table_cell(int nranks, int nchannels, int rounds)
{
    int status = 1;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        struct times times = {0};
        char text[16];
        snprintf(text, sizeof(text), "%d", nchannels);
        setenv("NCCL_MIN_CTAS", text, 1);
        setenv("NCCL_MAX_CTAS", text, 1);
        int rc = run(nranks, rounds, &times);
        if (!rc) printf(" %.1f (%.1f) |", times.wall_sec[0] * 1e3, times.busy_sec[0] * 1e3);
        exit(rc);
    }
    return child < 0 || waitpid(child, &status, 0) != child || status != 0;
}

/* Milliseconds: the best round, and in brackets the least processor time of all ranks. */
static int table(int rounds)
{
    static const int channels[] = {1, 2, 8, 32}, ranks[] = {2, 4, 8, 16, 32, 64};
    int rc = 0;
    printf("| ranks |");
    for (size_t c = 0; c < sizeof(channels) / sizeof(channels[0]); c++)
        printf(" %d |", channels[c]);
    for (size_t r = 0; r < sizeof(ranks) / sizeof(ranks[0]); r++) {
        printf("\n| %d |", ranks[r]);
        for (size_t c = 0; c < sizeof(channels) / sizeof(channels[0]); c++)
            rc |= table_cell(ranks[r], channels[c], rounds);
    }
    printf("\n");
    return rc;
}

int main(int argc, char **argv)
{
    int rounds = argc > 2 ? atoi(argv[2]) : 20;
    setenv("NCCL_MULTI_RANK_GPU_ENABLE", "1", 0);
    if (rounds < 1) return 2;
    if (argc > 1 && strcmp(argv[1], "table") == 0) return table(rounds);
    if (argc < 2) return measure(2, rounds) | measure(8, rounds);
    int nranks = atoi(argv[1]);
    return nranks < 1 || nranks > MAX_RANKS ? 2 : measure(nranks, rounds);
}
