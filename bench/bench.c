/* The timing loop. A sample is the longest time of any rank for a batch of calls, divided by the
 * batch; the figure is the median of the samples, the least stands beside it. Batches are sized
 * once, by rank 0, so that no rank decides by its own clock.
 *
 * A hypervisor may move its cores, so that for seconds or minutes two of them share no cache. All
 * that passes from one to the other then takes up to five times as long in every library; so
 * the time of a cache line between the first two ranks is taken with each sample, and the median
 * is that of the samples with the cores as near as they were. */
#include "bench.h"

#include <fcntl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANKS = 64, MAX_SIZES = 32, SAMPLES = 15, LINE_TRIES = 8, LINE_TRIPS = 50 };
#define LINE_FAR 2 /* times the shortest */

struct shared {
    _Atomic uint32_t arrived;
    char pad0[60];
    _Atomic uint32_t generation;
    char pad1[60];
    _Atomic uint64_t batch;
    double usec[MAX_RANKS][8];
    char pad2[64];
    _Atomic uint32_t line; /* trips between ranks 0 and 1 */
    char pad3[60];
    char blob[4096];
};

struct state { /* of this process */
    struct shared *shared;
    uint32_t nranks;
    bool oversubscribed, pinned;
    uint32_t trips; /* so far */
};
static struct state state;

static double now_usec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

bool bench_attach(struct bench_peer *peer)
{
    const char *name = getenv("BENCH_SHM");
    int fd = name ? shm_open(name, O_RDWR, 0600) : -1;
    if (fd < 0) {
        fprintf(stderr, "bench: BENCH_SHM names no shared memory; start this by bench/run\n");
        return false;
    }
    void *map = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map == MAP_FAILED || peer->nranks > MAX_RANKS) return false;
    cpu_set_t cores;
    sched_getaffinity(0, sizeof(cores), &cores);
    state.shared = map;
    state.nranks = (uint32_t)peer->nranks;
    state.oversubscribed = peer->nranks > CPU_COUNT(&cores);
    return true;
}

void *bench_blob(void)
{
    return state.shared->blob;
}

void bench_barrier(void)
{
    struct shared *m = state.shared;
    uint32_t generation = atomic_load(&m->generation);
    if (atomic_fetch_add(&m->arrived, 1) + 1 == state.nranks) {
        atomic_store(&m->arrived, 0);
        atomic_fetch_add(&m->generation, 1);
        return;
    }
    for (int spins = 0; atomic_load(&m->generation) == generation; spins++) {
        if (state.oversubscribed || spins > 20000) sched_yield();
    }
}

void bench_pin(int rank)
{
    const char *no = getenv("BENCH_PIN");
    cpu_set_t all;
    cpu_set_t one;
    if (no && *no == '0') return;
    sched_getaffinity(0, sizeof(all), &all);
    int want = rank % CPU_COUNT(&all);
    for (int c = 0; c < CPU_SETSIZE; c++) {
        if (!CPU_ISSET(c, &all) || want-- > 0) continue;
        CPU_ZERO(&one);
        CPU_SET(c, &one);
        state.pinned = !sched_setaffinity(0, sizeof(one), &one);
        return;
    }
}

static const char *const op_names[] = {"allreduce", "allgather", "reducescatter", "broadcast",
                                       "reduce",    "alltoall",  "pingpong"};
static const char *const type_names[] = {"float32", "bfloat16", "float16", "float8e4m3",
                                         "float8e5m2"};

static int read_sizes(size_t sizes[MAX_SIZES])
{
    const char *text = getenv("BENCH_SIZES");
    int n = 0;
    for (; text && *text && n < MAX_SIZES; n++) {
        char *end = NULL;
        sizes[n] = strtoull(text, &end, 10);
        if (end == text) break;
        text = *end ? end + 1 : end;
    }
    return n;
}

/* True when the variable is unset or its comma list holds the name. */
static bool wanted(const char *variable, const char *name)
{
    const char *list = getenv(variable);
    size_t len = strlen(name);
    if (!list || !*list) return true;
    for (const char *at = list; at; at = strchr(at, ',')) {
        if (*at == ',') at++;
        if (!strncmp(at, name, len) && (at[len] == ',' || !at[len])) return true;
    }
    return false;
}

size_t bench_max_bytes(void)
{
    size_t sizes[MAX_SIZES];
    size_t most = 4096;
    int n = read_sizes(sizes);
    for (int i = 0; i < n; i++) {
        if (sizes[i] > most) most = sizes[i];
    }
    return most;
}

static double batch_usec(struct bench_peer *peer, const struct bench_point *point, uint64_t batch)
{
    bench_barrier();
    double start = now_usec();
    for (uint64_t i = 0; i < batch; i++) {
        peer->call(peer, point);
    }
    state.shared->usec[peer->rank][0] = (now_usec() - start) / (double)batch;
    bench_barrier();
    double longest = 0;
    for (int r = 0; r < peer->nranks; r++) {
        if (state.shared->usec[r][0] > longest) longest = state.shared->usec[r][0];
    }
    bench_barrier();
    return longest;
}

/* How long a cache line takes from rank 0 to rank 1 and back. 0: not known. All ranks. */
static double line_nsec(const struct bench_peer *peer)
{
    double least = 0;
    if (!state.pinned || state.oversubscribed || peer->nranks < 2) return 0;
    bench_barrier();
    for (int try = 0; try < LINE_TRIES && peer->rank < 2; try++) {
        double start = now_usec();
        for (int trip = 0; trip < LINE_TRIPS; trip++, state.trips += 2) {
            uint32_t mine = state.trips + (uint32_t)peer->rank;
            while (atomic_load(&state.shared->line) != mine) {
            }
            atomic_store(&state.shared->line, mine + 1);
        }
        double nsec = (now_usec() - start) * 1000 / LINE_TRIPS;
        if (try == 0 || nsec < least) least = nsec;
    }
    return least;
}

struct sample {
    double usec, line_nsec;
};

static int by_usec(const void *a, const void *b)
{
    double x = ((const struct sample *)a)->usec;
    double y = ((const struct sample *)b)->usec;
    return (x > y) - (x < y);
}

/* Leaves the samples with the cores as near as they were, in order; returns how many. */
static int keep_near(struct sample *samples, int count, double *line_out)
{
    int kept = 0;
    double nearest = samples[0].line_nsec;
    for (int i = 1; i < count; i++)
        if (samples[i].line_nsec < nearest) nearest = samples[i].line_nsec;
    for (int i = 0; i < count; i++)
        if (samples[i].line_nsec <= nearest * LINE_FAR) samples[kept++] = samples[i];
    qsort(samples, (size_t)kept, sizeof(samples[0]), by_usec);
    *line_out = nearest;
    return kept;
}

static double bus_factor(enum bench_op op, int n)
{
    if (op == BENCH_ALLREDUCE) return 2.0 * (n - 1) / n;
    if (op == BENCH_ALLGATHER || op == BENCH_REDUCESCATTER || op == BENCH_ALLTOALL)
        return (double)(n - 1) / n;
    return 1;
}

/* Whole-buffer sums of ones: right results are known without a second implementation. */
static bool right(struct bench_peer *peer, const struct bench_point *point)
{
    if (point->op != BENCH_ALLREDUCE || point->type != BENCH_FLOAT32) return true;
    const float *got = (const float *)(void *)peer->recv;
    size_t count = point->bytes / 4;
    return got[0] == (float)peer->nranks && got[count - 1] == (float)peer->nranks;
}

static void one_point(struct bench_peer *peer, const struct bench_point *point)
{
    struct sample samples[SAMPLES];
    const double want_usec = 20000;
    for (size_t i = 0; i < point->bytes / 4; i++) {
        ((float *)(void *)peer->send)[i] = point->type == BENCH_FLOAT32 ? 1.0f : 0.0f;
    }
    bench_barrier();
    if (peer->call(peer, point) < 0) return; /* the same answer on every rank */
    bool ok = right(peer, point);
    double first = batch_usec(peer, point, 3);
    if (peer->rank == 0) {
        double batch = want_usec / (first > 0.01 ? first : 0.01);
        atomic_store(&state.shared->batch, batch < 1        ? 1
                                           : batch > 100000 ? 100000
                                                            : (uint64_t)batch);
    }
    bench_barrier();
    uint64_t batch = atomic_load(&state.shared->batch);
    batch_usec(peer, point, batch / 4 + 1);
    int nsamples = first > 200000 ? 3 : SAMPLES;
    double before = line_nsec(peer);
    for (int s = 0; s < nsamples; s++) {
        samples[s].usec = batch_usec(peer, point, batch);
        double after = line_nsec(peer);
        samples[s].line_nsec = after > before ? after : before;
        before = after;
    }
    if (peer->rank != 0) return;
    double line = 0;
    nsamples = keep_near(samples, nsamples, &line);
    double median = samples[nsamples / 2].usec;
    printf("{\"peer\": \"%s\", \"version\": \"%s\", \"op\": \"%s\", \"type\": \"%s\", \"bytes\": "
           "%zu, \"ranks\": %d, "
           "\"median_usec\": %.4f, \"min_usec\": %.4f, \"busbw_gbps\": %.3f, \"batch\": %llu, "
           "\"line_nsec\": %.0f, \"ok\": %s}\n",
           peer->name, peer->version, op_names[point->op], type_names[point->type], point->bytes,
           peer->nranks, median, samples[0].usec,
           (double)point->bytes / median * 1e-3 * bus_factor(point->op, peer->nranks),
           (unsigned long long)batch, line, ok ? "true" : "false");
    fflush(stdout);
}

int bench_run(struct bench_peer *peer)
{
    size_t sizes[MAX_SIZES];
    int nsizes = read_sizes(sizes);
    for (int op = 0; op < BENCH_OP_COUNT_; op++) {
        if (!wanted("BENCH_OPS", op_names[op])) continue;
        for (int type = 0; type < BENCH_TYPE_COUNT_; type++) {
            bool measured = type == BENCH_FLOAT32 || op == BENCH_ALLREDUCE;
            if (!measured || !wanted("BENCH_TYPES", type_names[type])) continue;
            for (int i = 0; i < nsizes; i++) {
                struct bench_point point = {(enum bench_op)op, (enum bench_type)type, sizes[i]};
                size_t least = 4u * (size_t)peer->nranks;
                if (op != BENCH_ALLREDUCE && op != BENCH_BROADCAST && op != BENCH_REDUCE &&
                    op != BENCH_PINGPONG && sizes[i] < least)
                    continue;
                one_point(peer, &point);
            }
        }
    }
    bench_barrier();
    return 0;
}
