/* Random collectives over random communicators, for as long as asked. Each world is some processes
 * that take the same random steps: calls, splits, shrinks, grows, new inits, and ranks that stand
 * still, leave, abort, revoke or are killed. Every result is compared with what it must be, every
 * error must come in time, with a sentence, and only after a fault. A world's seed makes all its
 * choices; only the moment within a call at which a signal comes is not the same again.
 * usage: bench-soak [SECONDS [SEED [WORLDS]]] */
#include "soak_member.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STUCK_SEC = 180 };
enum { MOST_BYTES = MOST * SOAK_MOST_COUNT * 8 };
enum { MEDIA = 3, SIZES = 3, SAMPLES = 1 << 13 }; /* samples: of a row's times, for the median */

/* ---- a world ---- */

static _Noreturn void live(const struct world *world, int slot, int number)
{
    struct shared *shared = world->shared;
    struct member m = {.world = world, .slot = slot, .rank = slot, .nranks = world->nslots};
    int ndevices = 0, nsteps = SOAK_STEPS;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setenv("NCCL_P2P_DISABLE", world->medium > 0 ? "1" : "0", 1);
    setenv("NCCL_SHM_DISABLE", world->medium > 1 ? "1" : "0", 1);
    shared->pids[slot] = getpid();
    shared->doing[slot] = number ? "joining" : "init";
    soak_cuda(&m, cudaGetDeviceCount(&ndevices), "cudaGetDeviceCount");
    soak_cuda(&m, cudaSetDevice(slot % ndevices), "cudaSetDevice");
    soak_cuda(&m, cudaStreamCreateWithFlags(&m.stream, cudaStreamNonBlocking), "stream");
    for (int k = 0; k < BURST; k++) {
        soak_cuda(&m, cudaMalloc((void **)&m.in[k], MOST_BYTES), "cudaMalloc");
        soak_cuda(&m, cudaMalloc((void **)&m.out[k], MOST_BYTES), "cudaMalloc");
    }
    for (int r = 0; r < m.nranks; r++) {
        m.slots[r] = r;
    }
    if (number) {
        ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
        config.blocking = world->nonblocking ? 0 : 1;
        m.nranks = shared->nmembers[number];
        m.rank = m.nranks - 1;
        memcpy(m.slots, shared->members[number], sizeof(m.slots));
        ncclResult_t rc =
            ncclCommGrow(NULL, m.nranks, &shared->ids[number], m.rank, &m.comm, &config);
        soak_must(&m, soak_made(NULL, &m.comm, rc), "ncclCommGrow of the newcomer");
    } else {
        soak_init(&m, 0);
    }
    for (m.step = number; m.step < STEPS; m.step++) {
        m.common = soak_mix(world->seed * STEPS + (uint64_t)m.step);
        const struct step *step = &soak_steps[soak_pick(&m.common, nsteps)];
        if (m.nranks == 1) step = &soak_steps[step->alone];
        shared->doing[slot] = step->name;
        shared->at_step[slot] = m.step;
        soak_must(&m, step->take(&m, &m.common), "a step");
    }
    soak_must(&m, ncclCommDestroy(m.comm), "ncclCommDestroy");
    for (int k = 0; k < BURST; k++) {
        soak_cuda(&m, cudaFree(m.in[k]), "cudaFree");
        soak_cuda(&m, cudaFree(m.out[k]), "cudaFree");
    }
    soak_cuda(&m, cudaStreamDestroy(m.stream), "cudaStreamDestroy");
    exit(0);
}

static pid_t start(const struct world *world, int slot, int number)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) live(world, slot, number);
    if (pid < 0) {
        perror("soak: fork");
        exit(2); /* and all others with this process */
    }
    return pid;
}

/* A child that ended or stands still; false: it ended as it should not. */
static bool look_after(const struct world *world, pid_t *pids, pid_t pid, int status)
{
    int slot = 0;
    while (slot < MOST && pids[slot] != pid) {
        slot++;
    }
    if (slot == MOST) return true;
    if (WIFSTOPPED(status)) {
        usleep((useconds_t)(soak_mix(world->seed + (uint64_t)slot) % 100000));
        kill(pid, SIGCONT);
        return true;
    }
    pids[slot] = 0;
    if (WIFEXITED(status)) return WEXITSTATUS(status) == 0;
    if (WTERMSIG(status) == SIGKILL && atomic_exchange(&world->shared->doomed[slot], false))
        return true;
    fprintf(stderr, "soak: slot %d, step %d, %s: ended by signal %d\n", slot,
            world->shared->at_step[slot], world->shared->doing[slot], WTERMSIG(status));
    return false;
}

/* Into the slot that a grow waits for, when its last holder is gone; how many came. */
static int bring_newcomer(const struct world *world, pid_t *pids)
{
    struct shared *shared = world->shared;
    int number = atomic_load(&shared->joining);
    if (!number) return 0;
    int slot = shared->members[number][shared->nmembers[number] - 1];
    if (pids[slot]) return 0;
    atomic_store(&shared->joining, 0);
    pids[slot] = start(world, slot, number);
    return 1;
}

static const char *const media[MEDIA] = {"memory", "copies", "sockets"};

static bool run_world(const struct world *world)
{
    struct shared *shared = world->shared;
    pid_t pids[MOST] = {0};
    int alive = world->nslots, status;
    bool well = true;
    int64_t end = soak_now_usec() + (int64_t)STUCK_SEC * 1000000;
    for (int slot = 0; slot < world->nslots; slot++) {
        shared->at_step[slot] = -1;
        pids[slot] = start(world, slot, 0);
    }
    while (alive && well && soak_now_usec() < end) {
        pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED);
        if (pid > 0) {
            well = look_after(world, pids, pid, status);
            alive -= !WIFSTOPPED(status);
        }
        alive += bring_newcomer(world, pids);
        if (pid <= 0) usleep(500);
    }
    for (int slot = 0; slot < world->nslots && alive; slot++) {
        if (!pids[slot]) continue;
        fprintf(stderr, "soak: slot %d is in step %d, %s\n", slot, shared->at_step[slot],
                shared->doing[slot]);
        kill(pids[slot], SIGKILL);
        waitpid(pids[slot], NULL, 0);
    }
    return well && !alive;
}

/* ---- all worlds ---- */

struct row {
    int faults, reported, remote, named;
    int64_t usec[SAMPLES]; /* of the first so many */
};

struct sums {
    int worlds, faults;
    struct row rows[MEDIA][FAULTS][SIZES];
};

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* A table as docs/reliability.md has it. */
static void report_all(struct sums *sums)
{
    static const char *const faults[] = {"killed", "aborts", "revokes"};
    static const char *const sizes[] = {"2", "3", "4 to 6"};
    printf("\n| medium | fault | ranks | faults | survivors with an error | as ncclRemoteError | "
           "naming the rank "
           "| median ms | slowest ms |\n|---|---|---|---|---|---|---|---|---|\n");
    for (int k = 0; k < MEDIA * FAULTS * SIZES; k++) {
        int medium = k / (FAULTS * SIZES), fault = k / SIZES % FAULTS, size = k % SIZES;
        struct row *row = &sums->rows[medium][fault][size];
        int n = row->faults < SAMPLES ? row->faults : SAMPLES;
        if (!n) continue;
        qsort(row->usec, (size_t)n, sizeof(*row->usec), by_size);
        int64_t median = row->usec[n / 2], most = row->usec[n - 1];
        printf("| %s | %s | %s | %d | %d | %d | %d | %.1f | %.1f |\n", media[medium], faults[fault],
               sizes[size], row->faults, row->reported, row->remote, row->named,
               (double)median / 1000, (double)most / 1000);
    }
}

static void count(struct sums *sums, const struct world *world)
{
    sums->worlds++;
    for (int step = 0; step < STEPS; step++) {
        const struct incident *incident = &world->shared->incidents[step];
        if (!incident->reported) continue;
        int size = incident->nranks < 4 ? incident->nranks - 2 : SIZES - 1;
        struct row *row = &sums->rows[world->medium][incident->fault][size];
        if (row->faults < SAMPLES) row->usec[row->faults] = incident->reported_usec;
        row->faults++;
        row->reported += incident->reported;
        row->remote += incident->remote;
        row->named += incident->named;
        sums->faults++;
    }
}

static uint64_t number_of(const char *text, uint64_t otherwise)
{
    char *rest = NULL;
    if (!text) return otherwise;
    uint64_t value = strtoull(text, &rest, 0);
    if (rest != text && !*rest) return value;
    fprintf(stderr, "usage: bench-soak [SECONDS [SEED [WORLDS]]]\n");
    exit(2);
}

int main(int argc, char **argv)
{
    uint64_t seconds = number_of(argc > 1 ? argv[1] : NULL, 60);
    uint64_t first = number_of(argc > 2 ? argv[2] : NULL, (uint64_t)soak_now_usec());
    uint64_t least = number_of(argc > 3 ? argv[3] : NULL, 1);
    int64_t begin = soak_now_usec(), reported = begin;
    struct sums *sums =
        mmap(NULL, sizeof(*sums), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct world world = {.shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0)};
    if (sums == MAP_FAILED || world.shared == MAP_FAILED) return 2;
    printf("soak: first seed %llu\n", (unsigned long long)first);
    for (uint64_t k = 0; k < least || soak_now_usec() - begin < (int64_t)seconds * 1000000; k++) {
        uint64_t state = soak_mix(first + k);
        memset(world.shared, 0, sizeof(*world.shared));
        world.seed = first + k;
        world.nslots = 2 + soak_pick(&state, MOST - 1);
        world.medium = soak_pick(&state, 3);
        world.nonblocking = soak_pick(&state, 4) == 0;
        if (!run_world(&world)) {
            fprintf(stderr, "soak: %d ranks, %s%s failed; again: bench-soak 0 %llu 1\n",
                    world.nslots, media[world.medium], world.nonblocking ? ", not blocking," : "",
                    (unsigned long long)world.seed);
            return 1;
        }
        count(sums, &world);
        if (soak_now_usec() - reported < 10000000) continue;
        reported = soak_now_usec();
        printf("soak: %d worlds, %d faults\n", sums->worlds, sums->faults);
        fflush(stdout);
    }
    printf("soak: %d worlds from seed %llu, %d faults, all as it must be\n", sums->worlds,
           (unsigned long long)first, sums->faults);
    report_all(sums);
    munmap(sums, sizeof(*sums));
    munmap(world.shared, sizeof(struct shared));
    return 0;
}
