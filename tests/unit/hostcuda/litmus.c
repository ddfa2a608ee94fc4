/* Litmus test of CUDA's ordering rules: several threads put random work on streams of every kind
 * and of several devices, with events between them, destroy streams and executables that still
 * run, and wait. Beside each call goes the model: the set of earlier operations that must have
 * ended. Every operation has a byte that it sets to 1 at its end. A host function looks at the
 * bytes of what it must follow, a copy takes its own byte from one of them, so an operation that
 * comes too early leaves a 0 behind. The bytes are plain memory: the thread sanitizer sees an order
 * that is not one.
 * usage: litmus [SEED [OPERATIONS]] */
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DEVICES = 2, THREADS = 3, STREAMS = 6, EVENTS = 6, OPS_MOST = 20000, SET_MOST = 96 };

struct set { /* of operations that must have ended */
    int ops[SET_MOST];
    int count;
};

struct lane { /* a stream and what its next operation must follow */
    cudaStream_t stream;
    int device;
    bool blocking;
    struct set after;
};

struct op {
    struct set after;
    unsigned delay_nsec;
    unsigned char *byte;
};

struct world {
    pthread_mutex_t lock; /* issue order is the model's order */
    struct lane lanes[DEVICES][STREAMS];
    struct lane legacy[DEVICES];
    struct lane own[THREADS][DEVICES]; /* per-thread default streams */
    struct set gone[DEVICES];          /* of blocking streams that were destroyed */
    cudaEvent_t events[DEVICES][EVENTS];
    struct set marks[DEVICES][EVENTS];
    struct op *ops;
    int nops, limit;
    unsigned char *bytes; /* pinned; 0 pending, 1 done */
    _Atomic int early;    /* operations that ran too early */
    _Atomic int refused;  /* calls that failed */
    unsigned seed;
};

static struct world world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static unsigned dice(unsigned *state, unsigned sides)
{
    *state = *state * 1664525U + 1013904223U;
    return (*state >> 8) % sides;
}

static void must(cudaError_t rc, int line)
{
    if (rc == cudaSuccess || rc == cudaErrorNotReady) return;
    world.refused++;
    printf("line %d: %s\n", line, cudaGetErrorName(rc));
}
#define MUST(call) must(call, __LINE__)

/* ---- sets ---- */

static bool holds(const struct set *set, int op)
{
    for (int i = 0; i < set->count; i++) {
        if (set->ops[i] == op) return true;
    }
    return false;
}

static void join(struct set *to, const struct set *from)
{
    for (int i = 0; i < from->count; i++) {
        if (to->count < SET_MOST && !holds(to, from->ops[i])) to->ops[to->count++] = from->ops[i];
    }
}

static bool all_done(const struct set *set)
{
    for (int i = 0; i < set->count; i++) {
        if (!world.bytes[set->ops[i]]) return false;
    }
    return true;
}

/* ---- operations ---- */

static void spin(unsigned nsec)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while ((now.tv_sec - start.tv_sec) * 1000000000L + now.tv_nsec - start.tv_nsec < (long)nsec);
}

static void run_op(void *arg)
{
    const struct op *op = (const struct op *)arg;
    if (!all_done(&op->after)) world.early++;
    spin(op->delay_nsec);
    *op->byte = 1;
}

/* What an operation put on the lane now must follow, by the rules for its kind. */
static void rules(const struct lane *lane, struct set *after)
{
    const struct lane *legacy = &world.legacy[lane->device];
    *after = lane->after;
    if (lane != legacy) {
        if (lane->blocking) join(after, &legacy->after);
        return;
    }
    for (int i = 0; i < STREAMS; i++) {
        const struct lane *other = &world.lanes[lane->device][i];
        if (other->blocking) join(after, &other->after);
    }
    for (int i = 0; i < THREADS; i++) {
        join(after, &world.own[i][lane->device].after);
    }
    join(after, &world.gone[lane->device]);
    world.gone[lane->device].count = 0;
}

static void launch_graph(struct op *op, cudaStream_t stream)
{
    struct cudaHostNodeParams call = {run_op, op};
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    cudaGraphNode_t first = NULL, node = NULL;
    MUST(cudaGraphCreate(&graph, 0));
    MUST(cudaGraphAddEmptyNode(&first, graph, NULL, 0));
    MUST(cudaGraphAddHostNode(&node, graph, &first, 1, &call));
    MUST(cudaGraphInstantiate(&exec, graph, 0));
    MUST(cudaGraphLaunch(exec, stream));
    MUST(cudaGraphExecDestroy(exec)); /* while it runs */
    MUST(cudaGraphDestroy(graph));
}

/* The lock is held. */
static void put_op(struct lane *lane, unsigned *state)
{
    if (world.nops == world.limit) return;
    int number = world.nops++;
    struct op *op = &world.ops[number];
    op->byte = &world.bytes[number];
    op->delay_nsec = dice(state, 4) ? 0 : dice(state, 20000);
    rules(lane, &op->after);
    lane->after.ops[0] = number;
    lane->after.count = 1;
    switch (dice(state, 6)) {
    case 0:
        if (op->after.count) {
            const unsigned char *from =
                &world.bytes[op->after.ops[dice(state, (unsigned)op->after.count)]];
            MUST(cudaMemcpyAsync(op->byte, from, 1, cudaMemcpyDefault, lane->stream));
            return;
        }
        /* fall through */
    case 1:
        if (op->after.count < 2) {
            MUST(cudaMemsetAsync(op->byte, 1, 1, lane->stream));
            return;
        }
        /* fall through */
    case 2: launch_graph(op, lane->stream); return;
    default: MUST(cudaLaunchHostFunc(lane->stream, run_op, op)); return;
    }
}

static void put_event(struct lane *lane, unsigned *state)
{
    unsigned number = dice(state, EVENTS);
    rules(lane, &world.marks[lane->device][number]);
    if (lane == &world.legacy[lane->device]) join(&lane->after, &world.marks[lane->device][number]);
    MUST(cudaEventRecord(world.events[lane->device][number], lane->stream));
}

static void put_wait(struct lane *lane, unsigned *state)
{
    unsigned device = dice(state, DEVICES), number = dice(state, EVENTS);
    if (lane->after.count + world.marks[device][number].count > SET_MOST) return;
    join(&lane->after, &world.marks[device][number]);
    MUST(cudaStreamWaitEvent(lane->stream, world.events[device][number], 0));
}

static void look(struct lane *lane, unsigned *state)
{
    unsigned number = dice(state, EVENTS);
    struct set after;
    switch (dice(state, 4)) {
    case 0:
        after = lane->after;
        MUST(cudaStreamSynchronize(lane->stream));
        break;
    case 1:
        after = world.marks[lane->device][number];
        MUST(cudaEventSynchronize(world.events[lane->device][number]));
        break;
    case 2:
        after = world.marks[lane->device][number];
        if (cudaEventQuery(world.events[lane->device][number]) != cudaSuccess) return;
        break;
    default:
        after = lane->after;
        if (cudaStreamQuery(lane->stream) != cudaSuccess) return;
        break;
    }
    if (!all_done(&after)) world.early++;
}

/* Another stream in its place; what was put on the old one still comes to its end. */
static void replace(struct lane *lane)
{
    unsigned flags = lane->blocking ? cudaStreamDefault : cudaStreamNonBlocking;
    struct set *gone = &world.gone[lane->device];
    if (lane->blocking && gone->count + lane->after.count > SET_MOST) return;
    if (lane->blocking) join(gone, &lane->after);
    MUST(cudaStreamDestroy(lane->stream));
    MUST(cudaStreamCreateWithFlags(&lane->stream, flags));
    lane->after.count = 0;
}

static void *issue(void *arg)
{
    unsigned self = (unsigned)(uintptr_t)arg;
    unsigned state = world.seed * 77U + self;
    bool more = true;
    while (more) {
        pthread_mutex_lock(&world.lock);
        int device = (int)dice(&state, DEVICES);
        unsigned which = dice(&state, STREAMS + 2);
        struct lane *lane = which < STREAMS    ? &world.lanes[device][which]
                            : which == STREAMS ? &world.legacy[device]
                                               : &world.own[self][device];
        MUST(cudaSetDevice(device));
        unsigned kind = dice(&state, 40);
        if (kind < 22) put_op(lane, &state);
        if (kind >= 22 && kind < 29) put_event(lane, &state);
        if (kind >= 29 && kind < 36) put_wait(lane, &state);
        if (kind == 36 && which < STREAMS) replace(lane);
        if (kind > 36) look(lane, &state);
        more = world.nops < world.limit;
        pthread_mutex_unlock(&world.lock);
    }
    for (int device = 0; device < DEVICES; device++) {
        MUST(cudaSetDevice(device));
        MUST(cudaDeviceSynchronize());
    }
    return NULL;
}

static void open_world(void)
{
    MUST(cudaMallocHost((void **)&world.bytes, OPS_MOST));
    memset(world.bytes, 0, OPS_MOST);
    for (int device = 0; device < DEVICES; device++) {
        MUST(cudaSetDevice(device));
        world.legacy[device].device = device;
        for (int i = 0; i < STREAMS; i++) {
            struct lane *lane = &world.lanes[device][i];
            lane->device = device;
            lane->blocking = i % 2 == 0;
            MUST(cudaStreamCreateWithFlags(&lane->stream, lane->blocking ? cudaStreamDefault
                                                                         : cudaStreamNonBlocking));
        }
        for (int i = 0; i < THREADS; i++) {
            world.own[i][device] =
                (struct lane){.stream = cudaStreamPerThread, .device = device, .blocking = true};
        }
        for (int i = 0; i < EVENTS; i++) {
            MUST(cudaEventCreateWithFlags(&world.events[device][i],
                                          i % 2 ? cudaEventDefault : cudaEventDisableTiming));
        }
    }
}

static void close_world(void)
{
    for (int device = 0; device < DEVICES; device++) {
        for (int i = 0; i < STREAMS; i++) {
            MUST(cudaStreamDestroy(world.lanes[device][i].stream));
        }
        for (int i = 0; i < EVENTS; i++) {
            MUST(cudaEventDestroy(world.events[device][i]));
        }
    }
    MUST(cudaFreeHost(world.bytes));
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    int undone = 0;
    world.seed = argc > 1 ? (unsigned)strtoul(argv[1], NULL, 10) : 1;
    world.limit = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 3000;
    if (world.limit < 1 || world.limit > OPS_MOST) return 2;
    world.ops = (struct op *)calloc((size_t)world.limit, sizeof(*world.ops));
    if (!world.ops) return 2;
    open_world();
    for (unsigned i = 0; i < THREADS; i++) {
        if (pthread_create(&threads[i], NULL, issue, (void *)(uintptr_t)i)) return 2;
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < world.nops; i++) {
        undone += world.bytes[i] != 1;
    }
    close_world();
    free(world.ops);
    printf("seed %u: %d operations, %d too early, %d undone, %d calls refused\n", world.seed,
           world.nops, world.early, undone, world.refused);
    return world.early || undone || world.refused;
}
