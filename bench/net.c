/* What the built-in network costs over loopback, against raw sockets with as many streams in the
 * same run: a lone message, a stream, both directions at once and an 8-byte ping-pong, with system
 * calls and processor time. The two take turns; a ratio is that of the medians.
 *
 *     bench/net [ROUNDS] [LANES] [PLUGIN [registered]]
 *
 * 7 rounds, no data lanes (NCCL_SOCKET_NTHREADS). With a network plugin its figures stand in place
 * of the built-in's; `registered`: the buffers are, so that it need not copy. */
#include <cuda_runtime.h>
#include <errno.h>
#include <nccl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_ROUNDS = 101, MOST_LANES = 16, STREAM = 16, PINGS = 500, MIB = 1 << 20 };
#define SINGLE_BYTES ((size_t)16 * MIB)
#define STREAM_BYTES ((size_t)4 * MIB)

struct shared { /* shared by both processes */
    _Atomic int arrived;
    ncclUniqueId id;
    uint16_t port;
    uint64_t calls[2]; /* of both ends, when they last met */
    double cpu_sec[2];
};

struct side {
    int rank, nstreams, fds[MOST_LANES];
    bool registered;
    struct shared *shared;
    int barriers;
    ncclComm_t comm;
    cudaStream_t stream;
    char *out, *in;
};

/* ---- counting: these stand before libc's for the library as well ---- */

#define EXPORTED __attribute__((visibility("default")))
static _Atomic uint64_t calls;

EXPORTED ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return syscall(SYS_sendmsg, fd, message, flags);
}

EXPORTED ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return syscall(SYS_recvmsg, fd, message, flags);
}

EXPORTED ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
}

EXPORTED ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL);
}

EXPORTED int poll(struct pollfd *fds, nfds_t nfds, int timeout_msec)
{
    struct timespec timeout = {timeout_msec / 1000, timeout_msec % 1000 * 1000000L};
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    return (int)syscall(SYS_ppoll, fds, nfds, timeout_msec < 0 ? NULL : &timeout, NULL, 0);
}

/* ---- both ---- */

static void must(bool bad, const char *what)
{
    if (!bad) return;
    fprintf(stderr, "net: %s: %s (%s)\n", what, ncclGetLastError(NULL), strerror(errno));
    exit(1);
}

static double now_sec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double cpu_sec(void)
{
    struct rusage use;
    getrusage(RUSAGE_SELF, &use);
    return (double)(use.ru_utime.tv_sec + use.ru_stime.tv_sec) +
           (double)(use.ru_utime.tv_usec + use.ru_stime.tv_usec) * 1e-6;
}

static void barrier(struct side *side)
{
    int want = 2 * ++side->barriers;
    side->shared->calls[side->rank] = atomic_load(&calls);
    side->shared->cpu_sec[side->rank] = cpu_sec();
    atomic_fetch_add(&side->shared->arrived, 1);
    while (atomic_load(&side->shared->arrived) < want)
        sched_yield();
}

/* ---- raw sockets ---- */

static void raw_connect(struct side *side)
{
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    int on = 1, listener = socket(AF_INET, SOCK_STREAM, 0);
    if (side->rank == 0) {
        must(bind(listener, (struct sockaddr *)&addr, len) || listen(listener, MOST_LANES), "raw");
        getsockname(listener, (struct sockaddr *)&addr, &len);
        side->shared->port = addr.sin_port;
    }
    barrier(side);
    addr.sin_port = side->shared->port;
    for (int i = 0; i < side->nstreams; i++) {
        int fd = side->rank ? socket(AF_INET, SOCK_STREAM, 0) : accept(listener, NULL, NULL);
        if (side->rank) must(connect(fd, (struct sockaddr *)&addr, len) != 0, "raw connect");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        side->fds[i] = fd;
    }
    close(listener);
}

struct raw_job {
    int fd;
    bool sends;
    char *bytes;
    size_t len;
    pthread_t thread;
};

static void *raw_move(void *arg)
{
    const struct raw_job *job = arg;
    for (size_t at = 0; at < job->len;) {
        ssize_t n = job->sends ? send(job->fd, job->bytes + at, job->len - at, 0)
                               : recv(job->fd, job->bytes + at, job->len - at, 0);
        must(n <= 0, "raw");
        at += (size_t)n;
    }
    return NULL;
}

/* One direction over all streams, a thread each. */
/* NOLINTNEXTLINE(readability-non-const-parameter): recv() writes there */
static void raw_run(struct side *side, bool sends, char *bytes, size_t len)
{
    struct raw_job jobs[MOST_LANES] = {{.fd = -1}};
    size_t share = len / (size_t)side->nstreams;
    for (int i = 0; i < side->nstreams; i++) {
        jobs[i] = (struct raw_job){side->fds[i], sends, bytes + (size_t)i * share, share, 0};
        if (i) must(pthread_create(&jobs[i].thread, NULL, raw_move, &jobs[i]) != 0, "thread");
    }
    raw_move(&jobs[0]);
    for (int i = 1; i < side->nstreams; i++)
        pthread_join(jobs[i].thread, NULL);
}

static void *raw_receive(void *arg)
{
    struct side *side = arg;
    raw_run(side, false, side->in, SINGLE_BYTES);
    return NULL;
}

static void raw_pass(struct side *side, size_t bytes, bool sends)
{
    raw_run(side, sends, sends ? side->out : side->in, bytes);
}

/* As fast as sockets can be polled where no other process wants the core. */
static void raw_ping(struct side *side, bool sends)
{
    char word[8] = "";
    if (sends) must(send(side->fds[0], word, sizeof(word), 0) != sizeof(word), "raw ping");
    for (int tries = 0; !sends; tries++) {
        if (recv(side->fds[0], word, sizeof(word), MSG_DONTWAIT) == sizeof(word)) return;
        if (tries >= 20) sched_yield();
    }
}

/* ---- ours ---- */

static void nccl_wait(struct side *side)
{
    must(cudaStreamSynchronize(side->stream) != cudaSuccess, "synchronise");
}

static void nccl_pass(struct side *side, size_t bytes, bool sends)
{
    int peer = 1 - side->rank;
    ncclResult_t rc = sends ? ncclSend(side->out, bytes, ncclChar, peer, side->comm, side->stream)
                            : ncclRecv(side->in, bytes, ncclChar, peer, side->comm, side->stream);
    must(rc != ncclSuccess, "message");
    nccl_wait(side);
}

/* ---- what is measured ---- */

static void single(struct side *side, bool raw)
{
    raw ? raw_pass(side, SINGLE_BYTES, side->rank == 0)
        : nccl_pass(side, SINGLE_BYTES, side->rank == 0);
}

static void stream(struct side *side, bool raw)
{
    for (int i = 0; i < STREAM; i++) {
        raw ? raw_pass(side, STREAM_BYTES, side->rank == 0)
            : nccl_pass(side, STREAM_BYTES, side->rank == 0);
    }
}

static void both_directions(struct side *side, bool raw)
{
    pthread_t thread;
    int peer = 1 - side->rank;
    if (raw) {
        must(pthread_create(&thread, NULL, raw_receive, side) != 0, "thread");
        raw_pass(side, SINGLE_BYTES, true);
        pthread_join(thread, NULL);
        return;
    }
    ncclGroupStart();
    ncclSend(side->out, SINGLE_BYTES, ncclChar, peer, side->comm, side->stream);
    ncclRecv(side->in, SINGLE_BYTES, ncclChar, peer, side->comm, side->stream);
    must(ncclGroupEnd() != ncclSuccess, "group");
    nccl_wait(side);
}

static void ping_pong(struct side *side, bool raw)
{
    for (int i = 0; i < 2 * PINGS; i++) {
        bool sends = (i & 1) == side->rank;
        raw ? raw_ping(side, sends) : nccl_pass(side, 8, sends);
    }
}

static const struct measure {
    const char *name;
    void (*run)(struct side *side, bool raw);
    double units; /* per round: MiB, or messages */
    const char *unit;
} measures[] = {
    {"lone 16 MiB", single, 16, "MiB"},
    {"stream of 4 MiB", stream, 4 * STREAM, "MiB"},
    {"both ways 16 MiB", both_directions, 32, "MiB"},
    {"ping-pong 8 B", ping_pong, 2 * PINGS, "message"},
};

struct figures {
    double sec[MOST_ROUNDS], calls,
        cpu_sec; /* calls and processor time: of both ends, all rounds */
};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure_round(struct side *side, const struct measure *measure, bool raw, int round,
                          struct figures *figures)
{
    const struct shared *shared = side->shared;
    barrier(side);
    double start = now_sec();
    double before = (double)(shared->calls[0] + shared->calls[1]);
    double cpu_before = shared->cpu_sec[0] + shared->cpu_sec[1];
    measure->run(side, raw);
    barrier(side);
    figures->sec[round] = now_sec() - start;
    figures->calls += (double)(shared->calls[0] + shared->calls[1]) - before;
    figures->cpu_sec += shared->cpu_sec[0] + shared->cpu_sec[1] - cpu_before;
    barrier(side);
}

static void measure_one(struct side *side, const struct measure *measure, int rounds)
{
    struct figures raw = {.calls = 0}, ours = {.calls = 0};
    measure->run(side, true); /* both warm */
    measure->run(side, false);
    for (int round = 0; round < rounds; round++) {
        measure_round(side, measure, true, round, &raw);
        measure_round(side, measure, false, round, &ours);
    }
    if (side->rank) return;
    qsort(raw.sec, (size_t)rounds, sizeof(double), by_value);
    qsort(ours.sec, (size_t)rounds, sizeof(double), by_value);
    double raw_usec = raw.sec[rounds / 2] * 1e6, usec = ours.sec[rounds / 2] * 1e6;
    double units = measure->units * rounds;
    printf("%-17s raw %9.2f us  ours %9.2f us  of raw's speed %.2f  least %.2f  calls per %s %.2f "
           "(raw %.2f)  us of processor time per %s %.1f (raw %.1f)\n",
           measure->name, raw_usec, usec, raw_usec / usec, raw.sec[0] / ours.sec[0], measure->unit,
           ours.calls / units, raw.calls / units, measure->unit, ours.cpu_sec * 1e6 / units,
           raw.cpu_sec * 1e6 / units);
}

/* Rank 0 waits for a message that comes after 3 s. */
static void measure_waiting(struct side *side)
{
    barrier(side);
    double before = cpu_sec();
    if (side->rank) sleep(3);
    nccl_pass(side, 8, side->rank == 1);
    if (side->rank == 0) printf("3 s of waiting    %.3f s of processor time\n", cpu_sec() - before);
    barrier(side);
}

static void run(struct side *side, int rounds)
{
    if (side->rank == 0) must(ncclGetUniqueId(&side->shared->id) != ncclSuccess, "id");
    barrier(side);
    must(cudaSetDevice(side->rank) != cudaSuccess, "device");
    must(ncclCommInitRank(&side->comm, 2, side->shared->id, side->rank) != ncclSuccess, "init");
    must(cudaStreamCreate(&side->stream) != cudaSuccess, "stream");
    must(cudaMalloc((void **)&side->out, SINGLE_BYTES) != cudaSuccess, "memory");
    must(cudaMalloc((void **)&side->in, SINGLE_BYTES) != cudaSuccess, "memory");
    memset(side->out, side->rank + 1, SINGLE_BYTES);
    memset(side->in, 0, SINGLE_BYTES);
    void *handles[2];
    if (side->registered) {
        must(ncclCommRegister(side->comm, side->out, SINGLE_BYTES, &handles[0]) != ncclSuccess ||
                 ncclCommRegister(side->comm, side->in, SINGLE_BYTES, &handles[1]) != ncclSuccess,
             "registering");
    }
    raw_connect(side);
    for (size_t i = 0; i < sizeof(measures) / sizeof(*measures); i++)
        measure_one(side, &measures[i], rounds);
    measure_waiting(side);
    ncclCommDestroy(side->comm);
}

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 7;
    int lanes = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0, status = 0;
    if (rounds < 1 || rounds > MOST_ROUNDS || lanes < 0 || lanes > MOST_LANES) {
        fprintf(stderr, "usage: net [ROUNDS] [LANES] [PLUGIN [registered]]\n");
        return 2;
    }
    setenv("NCCL_P2P_DISABLE", "1", 0);
    setenv("NCCL_SHM_DISABLE", "1", 0);
    setenv("NCCL_SOCKET_IFNAME", "=lo", 0);
    if (lanes) setenv("NCCL_SOCKET_NTHREADS", argv[2], 1);
    if (argc > 3) setenv("NCCL_NET_PLUGIN", argv[3], 1);
    struct side side = {.nstreams = lanes ? lanes : 1};
    side.registered = argc > 4 && strcmp(argv[4], "registered") == 0;
    side.shared =
        mmap(NULL, sizeof(*side.shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t child = fork();
    must(side.shared == MAP_FAILED || child < 0, "start");
    side.rank = child == 0;
    run(&side, rounds);
    fflush(stdout);
    if (child == 0) _exit(0);
    waitpid(child, &status, 0);
    return status != 0;
}
