/* Where the nanoseconds of a small call go: an 8-byte AllReduce and its synchronise with one and
 * two pinned ranks, the pieces beside it, and groups and graphs of such calls. Instructions come
 * from the processor's counters where they can be read; the test `hot-path` counts locked
 * instructions and system calls. */
#include <cuda_runtime.h>
#include <linux/perf_event.h>
#include <nccl.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 2000, ROUNDS = 51 };

struct shared {
    _Atomic int ready;
    ncclUniqueId id;
};

struct figures {
    double nsec;
    double instructions; /* negative: not to be had here */
};

static double now_nsec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int open_counter(void)
{
    struct perf_event_attr attr;
    memset(&attr, 0, sizeof(attr));
    attr.size = sizeof(attr);
    attr.type = PERF_TYPE_HARDWARE;
    attr.config = PERF_COUNT_HW_INSTRUCTIONS;
    attr.exclude_kernel = 1;
    attr.exclude_hv = 1;
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

static uint64_t read_counter(int fd)
{
    uint64_t value = 0;
    return fd >= 0 && read(fd, &value, sizeof(value)) == (ssize_t)sizeof(value) ? value : 0;
}

struct call {
    ncclComm_t comm;
    cudaStream_t stream;
    float *send, *recv;
    int rank, nranks;
    cudaGraphExec_t graph; /* of one AllReduce */
};

static void must(int bad, const char *what)
{
    if (!bad) return;
    fprintf(stderr, "path: %s: %s\n", what, ncclGetLastError(NULL));
    exit(1);
}

static void both(const struct call *c)
{
    must(ncclAllReduce(c->send, c->recv, 2, ncclFloat, ncclSum, c->comm, c->stream) != ncclSuccess,
         "AllReduce");
    must(cudaStreamSynchronize(c->stream) != cudaSuccess, "synchronise");
}
static void group_of(const struct call *c, int calls)
{
    ncclGroupStart();
    for (int k = 0; k < calls; k++)
        ncclAllReduce(c->send, c->recv, 2, ncclFloat, ncclSum, c->comm, c->stream);
    must(ncclGroupEnd() != ncclSuccess, "group");
    must(cudaStreamSynchronize(c->stream) != cudaSuccess, "synchronise");
}
static void group_4(const struct call *c)
{
    group_of(c, 4);
}
static void group_64(const struct call *c)
{
    group_of(c, 64);
}
static void send_recv(const struct call *c)
{
    ncclGroupStart();
    ncclSend(c->send, 8, ncclInt8, !c->rank, c->comm, c->stream);
    ncclRecv(c->recv, 8, ncclInt8, !c->rank, c->comm, c->stream);
    must(ncclGroupEnd() != ncclSuccess, "group");
    must(cudaStreamSynchronize(c->stream) != cudaSuccess, "synchronise");
}
static void all_to_all(const struct call *c)
{
    ncclGroupStart();
    for (int peer = 0; peer < c->nranks; peer++) {
        ncclSend(c->send + 2 * peer, 2, ncclFloat, peer, c->comm, c->stream);
        ncclRecv(c->recv + 2 * peer, 2, ncclFloat, peer, c->comm, c->stream);
    }
    must(ncclGroupEnd() != ncclSuccess, "group");
    must(cudaStreamSynchronize(c->stream) != cudaSuccess, "synchronise");
}
static void replay(const struct call *c)
{
    must(cudaGraphLaunch(c->graph, c->stream) != cudaSuccess, "graph launch");
    must(cudaStreamSynchronize(c->stream) != cudaSuccess, "synchronise");
}

static void capture(struct call *c)
{
    cudaGraph_t graph;
    cudaStreamBeginCapture(c->stream, cudaStreamCaptureModeThreadLocal);
    ncclAllReduce(c->send, c->recv, 2, ncclFloat, ncclSum, c->comm, c->stream);
    must(cudaStreamEndCapture(c->stream, &graph) != cudaSuccess, "capture");
    must(cudaGraphInstantiate(&c->graph, graph, 0) != cudaSuccess, "instantiate");
    cudaGraphDestroy(graph);
}

static void synchronise(const struct call *c)
{
    cudaStreamSynchronize(c->stream);
}
static void query(const struct call *c)
{
    cudaStreamQuery(c->stream);
}
static void last_error(const struct call *c)
{
    (void)c;
    cudaGetLastError();
}

static struct figures measure(void (*fn)(const struct call *), const struct call *c)
{
    struct figures best = {1e18, -1};
    int counter = open_counter();
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t before = read_counter(counter);
        double start = now_nsec();
        for (int i = 0; i < CALLS; i++) {
            fn(c);
        }
        double nsec = (now_nsec() - start) / CALLS;
        if (nsec >= best.nsec) continue;
        best.nsec = nsec;
        if (counter >= 0) best.instructions = (double)(read_counter(counter) - before) / CALLS;
    }
    if (counter >= 0) close(counter);
    return best;
}

static void print(const char *what, int nranks, struct figures f)
{
    printf("%-42s %d %10.1f ns", what, nranks, f.nsec);
    if (f.instructions >= 0) {
        printf(" %8.0f instructions\n", f.instructions);
    } else {
        printf("   (instructions: no counter here)\n");
    }
}

static void run(struct shared *shared, int rank, int nranks)
{
    struct call c = {.rank = rank, .nranks = nranks};
    cpu_set_t core;
    CPU_ZERO(&core);
    CPU_SET(rank, &core);
    sched_setaffinity(0, sizeof(core), &core);
    if (rank == 0) {
        must(ncclGetUniqueId(&shared->id) != ncclSuccess, "id");
        atomic_store(&shared->ready, 1);
    }
    while (!atomic_load(&shared->ready)) {
        usleep(100);
    }
    must(cudaSetDevice(rank) != cudaSuccess, "device");
    must(ncclCommInitRank(&c.comm, nranks, shared->id, rank) != ncclSuccess, "init");
    must(cudaStreamCreateWithFlags(&c.stream, cudaStreamNonBlocking) != cudaSuccess, "stream");
    must(cudaMalloc((void **)&c.send, 64) != cudaSuccess, "memory");
    must(cudaMalloc((void **)&c.recv, 64) != cudaSuccess, "memory");
    struct figures f = measure(both, &c);
    static const struct {
        const char *what;
        void (*fn)(const struct call *c);
    } rows[] = {
        {"graph of one AllReduce, ranks", replay},
        {"group of 4 AllReduce, ranks", group_4},
        {"group of 64 AllReduce, ranks", group_64},
        {"grouped Send and Recv of 8 bytes, ranks", send_recv},
        {"AlltoAll of 8 bytes as messages, ranks", all_to_all},
    };
    if (rank == 0) print("AllReduce of 8 bytes and synchronise, ranks", nranks, f);
    capture(&c);
    for (size_t k = 0; nranks > 1 && k < sizeof(rows) / sizeof(rows[0]); k++) {
        f = measure(rows[k].fn, &c);
        if (rank == 0) print(rows[k].what, nranks, f);
    }
    cudaGraphExecDestroy(c.graph);
    if (rank == 0 && nranks == 1) {
        print("cudaStreamSynchronize on an idle stream", 1, measure(synchronise, &c));
        print("cudaStreamQuery on an idle stream", 1, measure(query, &c));
        print("cudaGetLastError", 1, measure(last_error, &c));
    }
    ncclCommDestroy(c.comm);
    exit(0);
}

int main(void)
{
    for (int nranks = 1; nranks <= 2; nranks++) {
        struct shared *shared =
            mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (shared == MAP_FAILED) return 1;
        fflush(stdout);
        for (int rank = 0; rank < nranks; rank++) {
            if (fork() == 0) run(shared, rank, nranks);
        }
        while (wait(NULL) > 0) {
        }
        munmap(shared, sizeof(*shared));
    }
    return 0;
}
