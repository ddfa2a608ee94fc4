/* The programs of a study of NCCL's profiler interface, and what a plugin costs one of them.
 * `bench/profiler-study` runs them; which plugin is loaded is the environment's affair.
 *
 *     study devices     one process, one thread, four devices, all calls in groups
 *     study threads     two processes with a thread for each of two devices
 *     study groups      four processes, six communicators (one for each two of them), one group
 *     study overhead [CALLS [BYTES]]
 *
 * `overhead` prints a JSON line per cycle of a communicator's life, of two processes: microseconds
 * of its init, of an AllReduce and of a Send with a Recv of 1 KiB or BYTES (each of the least
 * disturbed batch of BATCH calls with their synchronise), of a split and of a destroy, as process 0
 * sees them. All processes wait for each other before each of these. With STUDY_HOSTS=A,B process 0
 * runs in the network namespace A, process 1 in B, each as a host of that name. */
#include <cuda_runtime.h>
#include <fcntl.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 4, USUAL_BYTES = 1024, REPEATS = 4, CYCLES = 6, BATCH = 10 };

struct shared { /* shared by all processes */
    _Atomic int arrived;
    ncclUniqueId id;
};

struct process {
    struct shared *shared;
    int number, count, barriers, calls;
    size_t bytes;
};

struct rank {
    ncclComm_t comm;
    cudaStream_t stream;
    float *memory;
    size_t count; /* of what is summed or sent */
    int number, device;
    ncclUniqueId id;
    pthread_t thread;
};

static void must(bool bad, const char *what)
{
    if (!bad) return;
    fprintf(stderr, "study: %s: %s\n", what, ncclGetLastError(NULL));
    exit(1);
}

static double now_usec(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec * 1e6 + (double)at.tv_nsec * 1e-3;
}

static void barrier(struct process *self)
{
    int want = self->count * ++self->barriers;
    atomic_fetch_add(&self->shared->arrived, 1);
    while (atomic_load(&self->shared->arrived) < want)
        sched_yield();
}

/* Give each process its share of the cores, so that both run at once beside other programs. */
static void pin(const struct process *self)
{
    cpu_set_t all, share;
    must(sched_getaffinity(0, sizeof(all), &all) != 0, "affinity");
    int ncores = CPU_COUNT(&all), seen = 0;
    CPU_ZERO(&share);
    for (int core = 0; core < CPU_SETSIZE; core++) {
        if (CPU_ISSET(core, &all) && seen++ * self->count / ncores == self->number)
            CPU_SET(core, &share);
    }
    if (ncores >= self->count) sched_setaffinity(0, sizeof(share), &share);
}

/* The process's part of STUDY_HOSTS. */
static void join_host(const struct process *self)
{
    const char *at = getenv("STUDY_HOSTS");
    char name[32], path[64];
    if (!at || !*at) return;
    for (int skip = self->number; skip > 0 && strchr(at, ','); skip--)
        at = strchr(at, ',') + 1;
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(at, ","), at);
    snprintf(path, sizeof(path), "/run/netns/%s", name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    must(fd < 0 || setns(fd, CLONE_NEWNET) || unshare(CLONE_NEWUTS) ||
             sethostname(name, strlen(name)),
         path);
    close(fd);
}

/* The id of a communicator of all processes: process 0 makes it. */
static ncclUniqueId new_id(struct process *self)
{
    barrier(self);
    if (self->number == 0) must(ncclGetUniqueId(&self->shared->id), "unique id");
    barrier(self);
    return self->shared->id;
}

static void rank_open(struct rank *rank)
{
    if (!rank->count) rank->count = USUAL_BYTES / sizeof(float);
    size_t bytes = 2 * rank->count * sizeof(float);
    must(cudaSetDevice(rank->device) || cudaStreamCreate(&rank->stream) ||
             cudaMalloc((void **)&rank->memory, bytes) || cudaMemset(rank->memory, 0, bytes),
         "device");
}

static void rank_close(struct rank *rank)
{
    must(cudaFree(rank->memory) || cudaStreamDestroy(rank->stream), "device");
}

static void sum(struct rank *rank)
{
    must(ncclAllReduce(rank->memory, rank->memory, rank->count, ncclFloat, ncclSum, rank->comm,
                       rank->stream),
         "AllReduce");
}

static void pass_on(struct rank *rank, int nranks)
{
    int next = (rank->number + 1) % nranks, previous = (rank->number + nranks - 1) % nranks;
    must(ncclGroupStart(), "group");
    must(ncclSend(rank->memory, rank->count, ncclFloat, next, rank->comm, rank->stream), "Send");
    must(ncclRecv(rank->memory + rank->count, rank->count, ncclFloat, previous, rank->comm,
                  rank->stream),
         "Recv");
    must(ncclGroupEnd(), "group");
}

/* ---- the study's programs ---- */

static void devices(struct process *self)
{
    struct rank ranks[MOST_RANKS] = {0};
    ncclComm_t comms[MOST_RANKS];
    (void)self;
    must(ncclCommInitAll(comms, MOST_RANKS, NULL), "init");
    for (int r = 0; r < MOST_RANKS; r++) {
        ranks[r] = (struct rank){.comm = comms[r], .number = r, .device = r};
        rank_open(&ranks[r]);
    }
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        must(ncclGroupStart(), "group");
        for (int r = 0; r < MOST_RANKS; r++)
            sum(&ranks[r]);
        must(ncclGroupEnd(), "group");
        for (int r = 0; r < MOST_RANKS; r++)
            must(cudaStreamSynchronize(ranks[r].stream), "synchronise");
    }
    for (int r = 0; r < MOST_RANKS; r++) {
        rank_close(&ranks[r]);
        must(ncclCommDestroy(ranks[r].comm), "destroy");
    }
}

static void *thread_main(void *opaque)
{
    struct rank *rank = opaque;
    rank_open(rank);
    must(ncclCommInitRank(&rank->comm, MOST_RANKS, rank->id, rank->number), "init");
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        sum(rank);
        pass_on(rank, MOST_RANKS);
        must(cudaStreamSynchronize(rank->stream), "synchronise");
    }
    rank_close(rank);
    must(ncclCommDestroy(rank->comm), "destroy");
    return NULL;
}

static void threads(struct process *self)
{
    enum { THREADS = MOST_RANKS / 2 };
    struct rank ranks[THREADS] = {0};
    ncclUniqueId id = new_id(self);
    for (int t = 0; t < THREADS; t++) {
        int number = self->number * THREADS + t;
        ranks[t] = (struct rank){.id = id, .number = number, .device = number};
        must(pthread_create(&ranks[t].thread, NULL, thread_main, &ranks[t]), "thread");
    }
    for (int t = 0; t < THREADS; t++)
        pthread_join(ranks[t].thread, NULL);
}

static void groups(struct process *self)
{
    enum { PARTNERS = MOST_RANKS - 1 };
    struct rank ranks[PARTNERS] = {0};
    ncclComm_t world;
    must(cudaSetDevice(self->number), "device");
    must(ncclCommInitRank(&world, MOST_RANKS, new_id(self), self->number), "init");
    for (int p = 0; p < PARTNERS; p++) { /* numbers differ from the partner's in the bits p + 1 */
        int partner = self->number ^ (p + 1);
        int color = partner < self->number ? partner : self->number;
        ranks[p].device = self->number;
        rank_open(&ranks[p]);
        must(ncclCommSplit(world, color, self->number, &ranks[p].comm, NULL), "split");
    }
    for (int repeat = 0; repeat < REPEATS; repeat++) {
        must(ncclGroupStart(), "group");
        for (int p = 0; p < PARTNERS; p++)
            sum(&ranks[p]);
        must(ncclGroupEnd(), "group");
        for (int p = 0; p < PARTNERS; p++)
            must(cudaStreamSynchronize(ranks[p].stream), "synchronise");
    }
    for (int p = 0; p < PARTNERS; p++) {
        rank_close(&ranks[p]);
        must(ncclCommDestroy(ranks[p].comm), "destroy");
    }
    must(ncclCommDestroy(world), "destroy");
}

/* ---- what a plugin costs ---- */

static double call_usec(struct process *self, struct rank *rank, bool messages)
{
    double least = 1e12;
    for (int done = -BATCH; done < self->calls; done += BATCH) { /* the first connects the ranks */
        barrier(self);
        double begin = now_usec();
        for (int i = 0; i < BATCH; i++) {
            if (messages) pass_on(rank, self->count);
            if (!messages) sum(rank);
            must(cudaStreamSynchronize(rank->stream), "synchronise");
        }
        double usec = (now_usec() - begin) / BATCH;
        if (done >= 0 && usec < least) least = usec;
    }
    return least;
}

static void cycle(struct process *self)
{
    struct rank rank = {.number = self->number, .device = self->number, .id = new_id(self)};
    rank.count = self->bytes / sizeof(float);
    ncclComm_t part;
    rank_open(&rank);
    barrier(self);
    double begin = now_usec();
    must(ncclCommInitRank(&rank.comm, self->count, rank.id, rank.number), "init");
    double init = now_usec() - begin;
    double collective = call_usec(self, &rank, false);
    double message = call_usec(self, &rank, true);
    barrier(self);
    begin = now_usec();
    must(ncclCommSplit(rank.comm, 0, rank.number, &part, NULL), "split");
    double split = now_usec() - begin;
    must(ncclCommDestroy(part), "destroy");
    barrier(self);
    begin = now_usec();
    must(ncclCommDestroy(rank.comm), "destroy");
    double destroy = now_usec() - begin;
    rank_close(&rank);
    if (self->number == 0) {
        printf("{\"init\": %.3f, \"collective\": %.3f, \"message\": %.3f, \"split\": %.3f, "
               "\"destroy\": %.3f}\n",
               init, collective, message, split, destroy);
    }
}

static void overhead(struct process *self)
{
    pin(self);
    join_host(self);
    for (int i = 0; i < CYCLES; i++)
        cycle(self);
}

static const struct {
    const char *name;
    int processes;
    void (*run)(struct process *self);
} programs[] = {
    {"devices", 1, devices},
    {"threads", 2, threads},
    {"groups", MOST_RANKS, groups},
    {"overhead", 2, overhead},
};

static int start(size_t program, int calls, size_t bytes)
{
    int failed = 0, status;
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    must(shared == MAP_FAILED, "memory");
    for (int p = 0; p < programs[program].processes; p++) {
        struct process self = {shared, p, programs[program].processes, 0, calls, bytes};
        pid_t child = fork();
        must(child < 0, "fork");
        if (child) continue;
        programs[program].run(&self);
        exit(0);
    }
    while (wait(&status) > 0)
        failed |= status != 0;
    munmap(shared, sizeof(*shared));
    return failed;
}

int main(int argc, char **argv)
{
    int calls = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 100;
    size_t bytes = argc > 3 ? strtoul(argv[3], NULL, 10) : USUAL_BYTES;
    for (size_t i = 0; argc > 1 && i < sizeof(programs) / sizeof(*programs); i++) {
        if (!strcmp(argv[1], programs[i].name) && calls >= BATCH && bytes >= sizeof(float))
            return start(i, calls, bytes);
    }
    fprintf(stderr, "usage: study devices|threads|groups|overhead [CALLS of %d or more [BYTES]]\n",
            BATCH);
    return 2;
}
