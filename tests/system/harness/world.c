/* See world.h. Processes are forked before anything touches a device; the first failure of one ends
 * all, by their ids. */
#include "world.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct world_mode modes[] = {
    {"one-thread", 1, 1},
    {"threads", 1, 0},
    {"processes", 0, 1},
    {"mixed", 2, 0},
};

const struct world_mode *world_mode(const char *name)
{
    for (size_t k = 0; k < sizeof(modes) / sizeof(modes[0]); k++) {
        if (strcmp(modes[k].name, name) == 0) return &modes[k];
    }
    return NULL;
}

int world_ranks(const char *text, int fallback, int most)
{
    if (!text) return fallback;
    char *end;
    long value = strtol(text, &end, 10);
    return *end == 0 && value >= 2 && value <= most ? (int)value : 0;
}

void world_check(ncclResult_t rc, const char *what)
{
    if (rc == ncclSuccess) return;
    fprintf(stderr, "%s: %s (%s)\n", what, ncclGetErrorString(rc), ncclGetLastError(NULL));
    _exit(3);
}

void world_check_cuda(cudaError_t err, const char *what)
{
    if (err == cudaSuccess) return;
    fprintf(stderr, "%s: CUDA error %d (%s)\n", what, (int)err, cudaGetErrorString(err));
    _exit(3);
}

struct shared { /* between the processes of one world */
    ncclUniqueId id;
    _Atomic int ready;
};

struct thread_arg {
    pthread_t thread;
    struct world_team team;
    const ncclUniqueId *id;
    int (*body)(struct world_team *team);
    int failures;
};

static void team_init(struct world_team *team, const ncclUniqueId *id)
{
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < team->count; k++) {
        struct world_rank *own = &team->ranks[k];
        world_check_cuda(cudaSetDevice(own->device), "cudaSetDevice");
        world_check(ncclCommInitRank(&own->comm, team->nranks, *id, own->rank), "ncclCommInitRank");
    }
    world_check(ncclGroupEnd(), "ncclGroupEnd of init");
    for (int k = 0; k < team->count; k++) {
        world_check_cuda(cudaSetDevice(team->ranks[k].device), "cudaSetDevice");
        world_check_cuda(cudaStreamCreate(&team->ranks[k].stream), "cudaStreamCreate");
    }
}

static void team_fini(struct world_team *team)
{
    world_check(ncclGroupStart(), "ncclGroupStart");
    for (int k = 0; k < team->count; k++) {
        world_check(ncclCommFinalize(team->ranks[k].comm), "ncclCommFinalize");
    }
    world_check(ncclGroupEnd(), "ncclGroupEnd of finalize");
    for (int k = 0; k < team->count; k++) {
        world_check(ncclCommDestroy(team->ranks[k].comm), "ncclCommDestroy");
        world_check_cuda(cudaStreamDestroy(team->ranks[k].stream), "cudaStreamDestroy");
    }
}

static void *thread_main(void *arg)
{
    struct thread_arg *self = arg;
    team_init(&self->team, self->id);
    self->failures = self->body(&self->team);
    team_fini(&self->team);
    return NULL;
}

/* Ranks [first, first + count) in this process. */
static int process_run(struct thread_arg *model, int first, int count, int nthreads)
{
    struct world_rank ranks[WORLD_MAX];
    struct thread_arg threads[WORLD_MAX];
    int failures = 0;
    for (int k = 0; k < count; k++) {
        ranks[k] = (struct world_rank){.rank = first + k, .device = first + k};
    }
    for (int t = 0; t < nthreads; t++) {
        int lo = t * count / nthreads, hi = (t + 1) * count / nthreads;
        threads[t] = *model;
        threads[t].team.ranks = &ranks[lo];
        threads[t].team.count = hi - lo;
        pthread_create(&threads[t].thread, NULL, thread_main, &threads[t]);
    }
    for (int t = 0; t < nthreads; t++) {
        pthread_join(threads[t].thread, NULL);
        failures += threads[t].failures;
    }
    return failures;
}

/* Wait for any child; its number of failures, 1 when a signal ended it. */
static int wait_one(pid_t *pids, int count, bool quiet)
{
    int status;
    pid_t pid = wait(&status);
    for (int k = 0; k < count; k++) {
        if (pids[k] == pid) pids[k] = 0;
    }
    int own = WIFEXITED(status) ? WEXITSTATUS(status) : 1;
    if (own && !quiet) {
        bool exited = WIFEXITED(status);
        fprintf(stderr, "process %d ended with %s %d\n", (int)pid, exited ? "status" : "signal",
                exited ? own : WTERMSIG(status));
    }
    return own;
}

static int wait_all(pid_t *pids, int count)
{
    int failures = 0;
    for (int done = 0; done < count; done++) {
        int own = wait_one(pids, count, failures > 0);
        failures += own;
        for (int k = 0; own && k < count; k++) {
            if (pids[k]) kill(pids[k], SIGTERM);
        }
    }
    return failures;
}

/* Process 0 makes the id; the others get it through memory that all share. */
static const ncclUniqueId *share_id(struct shared *shared, int process)
{
    if (process == 0) {
        world_check(ncclGetUniqueId(&shared->id), "ncclGetUniqueId");
        shared->ready = 1;
    }
    while (!shared->ready)
        usleep(100); /* its maker may need a while; nothing else tells */
    return &shared->id;
}

int world_run(const struct world_mode *mode, int nranks, int (*body)(struct world_team *team),
              void *arg)
{
    int nprocesses = mode->processes ? mode->processes : nranks;
    struct thread_arg model = {.team = {.nranks = nranks, .arg = arg}, .body = body};
    pid_t pids[WORLD_MAX];
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 1;
    for (int p = 0; p < nprocesses; p++) {
        int first = p * nranks / nprocesses, count = (p + 1) * nranks / nprocesses - first;
        int nthreads = mode->threads ? mode->threads : count;
        if (nprocesses == 1) {
            model.id = share_id(shared, 0);
            int failures = process_run(&model, first, count, nthreads);
            munmap(shared, sizeof(*shared));
            return failures;
        }
        pids[p] = fork();
        if (pids[p] != 0) continue;
        model.id = share_id(shared, p);
        int failures = process_run(&model, first, count, nthreads);
        exit(failures > 100 ? 100 : failures);
    }
    int failures = wait_all(pids, nprocesses);
    munmap(shared, sizeof(*shared));
    return failures;
}
