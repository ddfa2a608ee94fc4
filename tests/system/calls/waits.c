/* A thread that waits sleeps: what a process burns while one of its blocking calls waits for a peer
 * that comes late (or for a host function), over whatever transport the environment leaves. Each
 * row is two processes; all rows run at the same time. Counts processor time of all the process's
 * threads and never judges how long anything took. By hand: waits SECONDS [ROW]. */
#include "../harness/harness.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_CPU_MSEC = 100, BYTES = 1 << 20 };

struct fixture { /* shared by the two processes of a row */
    _Atomic int ready;
    ncclUniqueId id;
    unsigned late_usec;
};

struct rank {
    struct fixture *fixture;
    bool late; /* this one keeps the other waiting */
    ncclComm_t comm;
    cudaStream_t stream;
    float *buffer;
};

static double cpu_msec(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void be_late(const struct rank *rank)
{
    if (rank->late) usleep(rank->fixture->late_usec);
}

static void init(struct rank *rank)
{
    NCCL(ncclCommInitRank(&rank->comm, 2, rank->fixture->id, rank->late));
}

static void reduce(struct rank *rank, cudaStream_t stream, size_t bytes)
{
    be_late(rank);
    NCCL(ncclAllReduce(rank->buffer, rank->buffer, bytes / sizeof(float), ncclFloat, ncclSum,
                       rank->comm, stream));
}

/* ---- the rows: what blocks; `late` says whether this is the rank that the other waits for ---- */

static void row_init(struct rank *rank)
{
    be_late(rank);
    init(rank);
}

static void row_split(struct rank *rank)
{
    ncclComm_t child;
    be_late(rank);
    NCCL(ncclCommSplit(rank->comm, 0, 0, &child, NULL));
    NCCL(ncclCommDestroy(child));
}

static void row_stream(struct rank *rank)
{
    reduce(rank, rank->stream, 8);
    CUDA(cudaStreamSynchronize(rank->stream));
}

static void row_large(struct rank *rank)
{
    reduce(rank, rank->stream, BYTES);
    CUDA(cudaStreamSynchronize(rank->stream));
}

static void row_event(struct rank *rank)
{
    cudaEvent_t event;
    CUDA(cudaEventCreate(&event));
    reduce(rank, rank->stream, 8);
    CUDA(cudaEventRecord(event, rank->stream));
    CUDA(cudaEventSynchronize(event));
    CUDA(cudaEventDestroy(event));
}

static void row_device(struct rank *rank)
{
    reduce(rank, rank->stream, 8);
    CUDA(cudaDeviceSynchronize());
}

static void row_copy(struct rank *rank)
{
    float value;
    reduce(rank, NULL, 8);
    CUDA(cudaMemcpy(&value, rank->buffer, sizeof(value), cudaMemcpyDeviceToHost));
}

static void row_message(struct rank *rank)
{
    be_late(rank);
    if (rank->late) {
        NCCL(ncclSend(rank->buffer, BYTES, ncclInt8, 0, rank->comm, rank->stream));
    } else {
        NCCL(ncclRecv(rank->buffer, BYTES, ncclInt8, 1, rank->comm, rank->stream));
    }
    CUDA(cudaStreamSynchronize(rank->stream));
}

static void row_finalize(struct rank *rank)
{
    reduce(rank, rank->stream, 8);
    NCCL(ncclCommFinalize(rank->comm));
}

static void row_destroy(struct rank *rank)
{
    reduce(rank, rank->stream, 8);
    NCCL(ncclCommDestroy(rank->comm));
    rank->comm = NULL;
}

/* No thread calls: the work is left to the background. */
static void row_background(struct rank *rank)
{
    reduce(rank, rank->stream, 8);
    if (!rank->late) usleep(rank->fixture->late_usec);
    CUDA(cudaStreamSynchronize(rank->stream));
}

static void sleep_on_host(void *arg)
{
    usleep(((const struct fixture *)arg)->late_usec);
}

static void row_function(struct rank *rank)
{
    CUDA(cudaLaunchHostFunc(rank->stream, sleep_on_host, rank->fixture));
    CUDA(cudaStreamSynchronize(rank->stream));
}

static void row_abort(struct rank *rank)
{
    if (!rank->late) CUDA(cudaLaunchHostFunc(rank->stream, sleep_on_host, rank->fixture));
    if (rank->late) {
        be_late(rank);
    } else {
        reduce(rank, rank->stream, 8);
    }
    NCCL(ncclCommAbort(rank->comm));
    rank->comm = NULL;
}

static const struct row {
    const char *name;
    void (*run)(struct rank *rank);
    bool makes_comm;
} rows[] = {
    {"ncclCommInitRank", row_init, true},
    {"ncclCommSplit", row_split, false},
    {"ncclCommFinalize", row_finalize, false},
    {"ncclCommDestroy", row_destroy, false},
    {"ncclCommAbort behind a host function", row_abort, false},
    {"cudaStreamSynchronize, 8 bytes", row_stream, false},
    {"cudaStreamSynchronize, 1 MiB", row_large, false},
    {"cudaStreamSynchronize, receive", row_message, false},
    {"cudaStreamSynchronize, host function", row_function, false},
    {"cudaEventSynchronize", row_event, false},
    {"cudaDeviceSynchronize", row_device, false},
    {"cudaMemcpy", row_copy, false},
    {"no call, background only", row_background, false},
};
enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static int run_rank(const struct row *row, struct fixture *fixture, bool late)
{
    struct rank rank = {.fixture = fixture, .late = late};
    if (!late) {
        NCCL(ncclGetUniqueId(&fixture->id));
        atomic_store(&fixture->ready, 1);
    }
    while (!atomic_load(&fixture->ready)) {
        usleep(1000);
    }
    CUDA(cudaSetDevice(late));
    CUDA(cudaStreamCreateWithFlags(&rank.stream, cudaStreamNonBlocking));
    rank.buffer = harness_device_alloc(BYTES);
    if (!row->makes_comm) init(&rank);
    if (!row->makes_comm) { /* connections are made */
        reduce(&(struct rank){.fixture = fixture, .comm = rank.comm, .buffer = rank.buffer},
               rank.stream, 8);
        CUDA(cudaStreamSynchronize(rank.stream));
    }
    double before = cpu_msec();
    row->run(&rank);
    double burnt = cpu_msec() - before;
    if (!late) printf("%-38s %7.1f ms of processor time\n", row->name, burnt);
    fflush(stdout);
    if (rank.comm) NCCL(ncclCommDestroy(rank.comm));
    return !late && burnt > MOST_CPU_MSEC;
}

static pid_t start(int row, struct fixture *fixture, unsigned late_usec, bool late)
{
    pid_t pid = fork();
    CHECK(pid >= 0);
    fixture->late_usec = late_usec;
    if (pid == 0) exit(run_rank(&rows[row], fixture, late));
    return pid;
}

static bool is_well(pid_t pid)
{
    int status = 0;
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* All rows at once take a second instead of thirteen; what a crowded machine adds to one of them it
 * does not add when that one runs alone. */
int main(int argc, char **argv)
{
    unsigned late_usec = argc > 1 ? (unsigned)(atof(argv[1]) * 1e6) : 1000000;
    int only = argc > 2 ? atoi(argv[2]) : -1;
    struct fixture *fixtures = mmap(NULL, 2 * ROWS * sizeof(*fixtures), PROT_READ | PROT_WRITE,
                                    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    pid_t pids[2 * ROWS];
    bool well[ROWS];
    int wrong = 0;
    CHECK(fixtures != MAP_FAILED);
    for (int k = 0; only < 0 && k < 2 * ROWS; k++)
        pids[k] = start(k / 2, &fixtures[k / 2], late_usec, k % 2);
    for (int row = 0; row < ROWS; row++) {
        well[row] = only < 0 && is_well(pids[2 * row]);
        if (only < 0) well[row] &= is_well(pids[2 * row + 1]);
    }
    for (int row = 0; row < ROWS; row++) {
        if (well[row] || (only >= 0 && row != only)) continue;
        if (only < 0) printf("alone: ");
        fflush(stdout);
        pid_t early = start(row, &fixtures[ROWS + row], late_usec, false);
        pid_t late = start(row, &fixtures[ROWS + row], late_usec, true);
        bool both = is_well(early);
        both &= is_well(late);
        wrong += !both;
        if (!both) printf("case: %s: it failed, or burnt more than 100 ms\n", rows[row].name);
    }
    return wrong != 0;
}
