/* Litmus test of the order of work between processes: three of them take turns at calls that a seed
 * chose, on streams of their own, with interprocess events that any of them records and waits for,
 * also while an earlier record of the same event is not reached. All know the model: the operations
 * that must have ended before another. Each operation sets a byte of memory that the first process
 * exported, and a host function looks at the bytes of what it must follow.
 * usage: litmus_ipc SEED */
#include <cuda_runtime.h>
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

enum { PROCESSES = 3, STREAMS = 3, EVENTS = 6, STEPS = 400, WORDS = (STEPS + 63) / 64 };

struct set { /* of steps that must have ended */
    unsigned long words[WORDS];
};

struct common { /* what the processes share beside CUDA's */
    _Atomic int turn, ready, early, refused;
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t events[EVENTS];
};

struct op {
    struct set after;
    unsigned delay_nsec;
    int step;
};

struct world {
    struct common *common;
    cudaStream_t streams[STREAMS];
    cudaEvent_t events[EVENTS];
    struct set lanes[PROCESSES][STREAMS], marks[EVENTS]; /* the model */
    unsigned char *bytes;
    struct op ops[STEPS];
    int self;
    unsigned dice;
};
static struct world world;

static void must(cudaError_t rc, int line)
{
    if (rc == cudaSuccess) return;
    atomic_fetch_add(&world.common->refused, 1);
    printf("process %d, line %d: %s\n", world.self, line, cudaGetErrorName(rc));
}
#define MUST(call) must(call, __LINE__)

static unsigned dice(unsigned sides)
{
    world.dice = world.dice * 1664525U + 1013904223U;
    return (world.dice >> 8) % sides;
}

static void spin(unsigned nsec)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < (long)nsec);
}

static void join(struct set *to, const struct set *from)
{
    for (int i = 0; i < WORDS; i++) {
        to->words[i] |= from->words[i];
    }
}

static void check(const struct set *after)
{
    for (int i = 0; i < STEPS; i++) {
        bool wanted = after->words[i / 64] >> i % 64 & 1;
        if (wanted && !__atomic_load_n(&world.bytes[i], __ATOMIC_ACQUIRE))
            atomic_fetch_add(&world.common->early, 1);
    }
}

static void run_op(void *arg)
{
    const struct op *op = (const struct op *)arg;
    check(&op->after);
    spin(op->delay_nsec);
    __atomic_store_n(&world.bytes[op->step], 1, __ATOMIC_RELEASE);
}

/* ---- one step: all processes follow the model, one process makes the call ---- */

struct choice {
    int process, stream, event;
    unsigned kind, delay_nsec;
};

static void work(const struct choice *choice, int step)
{
    struct set *lane = &world.lanes[choice->process][choice->stream];
    struct op *op = &world.ops[step];
    *op = (struct op){*lane, choice->delay_nsec, step};
    lane->words[step / 64] |= 1UL << step % 64;
    if (choice->process == world.self)
        MUST(cudaLaunchHostFunc(world.streams[choice->stream], run_op, op));
}

static void record(const struct choice *choice)
{
    world.marks[choice->event] = world.lanes[choice->process][choice->stream];
    if (choice->process == world.self)
        MUST(cudaEventRecord(world.events[choice->event], world.streams[choice->stream]));
}

static void wait_event(const struct choice *choice)
{
    join(&world.lanes[choice->process][choice->stream], &world.marks[choice->event]);
    if (choice->process == world.self)
        MUST(cudaStreamWaitEvent(world.streams[choice->stream], world.events[choice->event], 0));
}

static void synchronize(const struct choice *choice)
{
    struct set after = world.marks[choice->event];
    if (choice->process != world.self) return;
    MUST(cudaEventSynchronize(world.events[choice->event]));
    check(&after);
    if (cudaEventQuery(world.events[choice->event]) != cudaSuccess)
        atomic_fetch_add(&world.common->early, 1);
}

static void take_turn(int step)
{
    struct choice choice = {(int)dice(PROCESSES), (int)dice(STREAMS), (int)dice(EVENTS), dice(16),
                            dice(4) ? dice(20000) : dice(300000)};
    while (atomic_load(&world.common->turn) < step) {
        sched_yield();
    }
    if (choice.kind < 7) {
        work(&choice, step);
    } else if (choice.kind < 11) {
        record(&choice);
    } else if (choice.kind < 15) {
        wait_event(&choice);
    } else {
        synchronize(&choice);
    }
    if (choice.process == world.self) atomic_store(&world.common->turn, step + 1);
}

/* ---- processes ---- */

static void barrier(int count)
{
    atomic_fetch_add(&world.common->ready, 1);
    while (atomic_load(&world.common->ready) < count) {
        sched_yield();
    }
}

/* Event i is made by process i % PROCESSES and opened by the others. */
static void share(void)
{
    struct common *common = world.common;
    if (world.self == 0) {
        MUST(cudaMalloc((void **)&world.bytes, STEPS));
        MUST(cudaMemset(world.bytes, 0, STEPS));
        MUST(cudaIpcGetMemHandle(&common->memory, world.bytes));
    }
    for (int i = world.self; i < EVENTS; i += PROCESSES) {
        MUST(cudaEventCreateWithFlags(&world.events[i],
                                      cudaEventDisableTiming | cudaEventInterprocess));
        MUST(cudaIpcGetEventHandle(&common->events[i], world.events[i]));
    }
    barrier(PROCESSES);
    if (world.self)
        MUST(cudaIpcOpenMemHandle((void **)&world.bytes, common->memory,
                                  cudaIpcMemLazyEnablePeerAccess));
    for (int i = 0; i < EVENTS; i++) {
        if (i % PROCESSES != world.self)
            MUST(cudaIpcOpenEventHandle(&world.events[i], common->events[i]));
    }
    barrier(2 * PROCESSES);
}

static int play(struct common *common, int self, unsigned seed)
{
    world.common = common;
    world.self = self;
    world.dice = seed * 2654435761U;
    alarm(50); /* a process that waits for ever fails */
    for (int i = 0; i < STREAMS; i++) {
        MUST(cudaStreamCreateWithFlags(&world.streams[i], cudaStreamNonBlocking));
    }
    share();
    for (int step = 0; step < STEPS && !atomic_load(&common->refused); step++) {
        take_turn(step);
    }
    MUST(cudaDeviceSynchronize());
    barrier(3 * PROCESSES);
    for (int i = 0; i < EVENTS; i++) {
        MUST(cudaEventDestroy(world.events[i]));
    }
    if (self) MUST(cudaIpcCloseMemHandle(world.bytes));
    barrier(4 * PROCESSES);
    return atomic_load(&common->refused) != 0;
}

int main(int argc, char **argv)
{
    const char *seed = argc > 1 ? argv[1] : "1";
    int fd = argc > 3 ? atoi(argv[2]) : memfd_create("litmus", 0);
    if (argc <= 3 && ftruncate(fd, sizeof(struct common))) return 1;
    struct common *common =
        (struct common *)mmap(NULL, sizeof(*common), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (common == MAP_FAILED) return 1;
    if (argc > 3) return play(common, atoi(argv[3]), (unsigned)atoi(seed));
    for (int i = 1; i < PROCESSES; i++) {
        char fd_text[16], self[16];
        snprintf(fd_text, sizeof(fd_text), "%d", fd);
        snprintf(self, sizeof(self), "%d", i);
        if (fork() == 0) {
            execl("/proc/self/exe", argv[0], seed, fd_text, self, (char *)NULL);
            _exit(127);
        }
    }
    int bad = play(common, 0, (unsigned)atoi(seed));
    for (int i = 1, status = 0; i < PROCESSES; i++) {
        bad = wait(&status) < 0 || status || bad;
    }
    int early = atomic_load(&common->early);
    printf("litmus between processes, seed %s: %d steps, %d too early\n", seed, STEPS, early);
    return bad || early;
}
