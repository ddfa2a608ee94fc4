/* A sound program under TUTTI_CHECK=race:exit that lives close to closed pages: system calls on
 * pinned memory whose neighbours are in flight, also by a host function before work that uses it, a
 * child that looks at memory in flight, a handler of SIGSEGV of its own, SIGSEGV that somebody
 * sends, threads. Nothing is reported, no call fails, no byte is lost. */
#include "cuda_runtime.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 64 << 10, TURNS = 200 };

static void expect(int rc, int line, const char *call)
{
    if (!rc) return;
    fprintf(stderr, "line %d: %s: %d\n", line, call, rc);
    exit(2);
}
#define OK(call) expect((int)(call), __LINE__, #call)
#define CHECK(what) OK(!(what))

struct shared {
    char *pinned, *device;
    int pipe[2];
    cudaStream_t stream, other;
    _Atomic long served;
};

static void serve(void *arg)
{
    struct shared *my = arg;
    my->served += read(my->pipe[0], my->pinned, BYTES / 2) == BYTES / 2;
}

/* The copy behind it is there already, and other work holds the other half. */
static void host_function_reads(struct shared *my)
{
    static char want[BYTES / 2], got[BYTES];
    for (int turn = 0; turn < TURNS; turn++) {
        memset(want, turn, sizeof(want));
        CHECK(write(my->pipe[1], want, sizeof(want)) == (ssize_t)sizeof(want));
        OK(cudaMemcpyAsync(my->pinned + BYTES / 2, my->device, BYTES / 2, cudaMemcpyDefault,
                           my->other));
        OK(cudaLaunchHostFunc(my->stream, serve, my));
        OK(cudaMemcpyAsync(my->device + BYTES / 2, my->pinned, BYTES / 2, cudaMemcpyDefault,
                           my->stream));
        OK(cudaStreamSynchronize(my->stream));
        OK(cudaMemcpy(got, my->device + BYTES / 2, BYTES / 2, cudaMemcpyDefault));
        CHECK(!memcmp(got, want, sizeof(want)));
        OK(cudaStreamSynchronize(my->other));
    }
    CHECK(my->served == TURNS);
}

/* Slots within a page: one is filled from a pipe while another is in flight. */
static void neighbours(struct shared *my)
{
    enum { SLOT = 512 };
    char text[SLOT] = "slot";
    for (int turn = 0; turn < TURNS; turn++) {
        char *mine = my->pinned + turn % 8 * SLOT, *theirs = my->pinned + (turn + 1) % 8 * SLOT;
        OK(cudaMemcpyAsync(theirs, my->device, SLOT, cudaMemcpyDefault, my->stream));
        CHECK(write(my->pipe[1], text, SLOT) == SLOT);
        CHECK(read(my->pipe[0], mine, SLOT) == SLOT);
        mine[1]++;
        CHECK(write(my->pipe[1], mine, SLOT) == SLOT && read(my->pipe[0], mine, SLOT) == SLOT);
        OK(cudaStreamSynchronize(my->stream));
        theirs[0] = 1;
    }
    OK(cudaMemcpyAsync(my->device, my->pinned, BYTES, cudaMemcpyDefault, my->stream));
    CHECK(write(my->pipe[1], my->pinned, BYTES / 2) == BYTES / 2); /* reading is allowed */
    OK(cudaStreamSynchronize(my->stream));
    CHECK(read(my->pipe[0], my->pinned, BYTES / 2) == BYTES / 2);
}

static void child(struct shared *my)
{
    int status = -1;
    OK(cudaMemsetAsync(my->pinned, 3, BYTES, my->stream));
    OK(cudaMemcpyAsync(my->pinned, my->device, BYTES, cudaMemcpyDefault, my->stream));
    pid_t pid = fork();
    if (pid == 0) {
        my->pinned[0] = my->pinned[BYTES - 1];
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    OK(cudaStreamSynchronize(my->stream));
}

static sigjmp_buf back;
static volatile sig_atomic_t faults;

static void on_fault(int number)
{
    (void)number;
    faults++;
    siglongjmp(back, 1);
}

static void own_handler(struct shared *my)
{
    struct sigaction own = {.sa_handler = on_fault};
    char *closed = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    OK(sigaction(SIGSEGV, &own, NULL));
    for (int turn = 0; turn < 3; turn++) {
        OK(cudaMemcpyAsync(my->pinned, my->device, BYTES, cudaMemcpyDefault, my->stream));
        if (!sigsetjmp(back, 1)) *(volatile char *)closed = 1;
        if (!sigsetjmp(back, 1)) raise(SIGSEGV);
        CHECK(faults == 2 * (turn + 1));
        OK(cudaStreamSynchronize(my->stream));
        my->pinned[0]++;
    }
    signal(SIGSEGV, SIG_DFL);
    munmap(closed, 4096);
}

/* In a process of its own, which ends by it. */
static void is_sent(struct shared *my)
{
    OK(setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0}));
    OK(cudaMemcpyAsync(my->pinned, my->device, BYTES, cudaMemcpyDefault, my->stream));
    raise(SIGSEGV);
}

static void ended_by_signal(const char *program)
{
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        execl(program, program, "is-sent", (char *)NULL);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status != 0);
}

static void *work(void *arg)
{
    struct shared my = *(struct shared *)arg;
    OK(cudaMallocHost((void **)&my.pinned, BYTES));
    OK(cudaMalloc((void **)&my.device, BYTES));
    OK(cudaStreamCreateWithFlags(&my.stream, cudaStreamNonBlocking));
    for (int turn = 0; turn < TURNS; turn++) {
        memset(my.pinned, turn, BYTES);
        OK(cudaMemcpyAsync(my.device, my.pinned, BYTES, cudaMemcpyDefault, my.stream));
        OK(cudaStreamSynchronize(my.stream));
        memset(my.pinned, 0, BYTES);
        OK(cudaMemcpyAsync(my.pinned, my.device, BYTES, cudaMemcpyDefault, my.stream));
        OK(cudaStreamSynchronize(my.stream));
        CHECK(my.pinned[0] == (char)turn && my.pinned[BYTES - 1] == (char)turn);
    }
    OK(cudaStreamDestroy(my.stream));
    OK(cudaFree(my.device));
    OK(cudaFreeHost(my.pinned));
    return NULL;
}

int main(int argc, char **argv)
{
    struct shared my = {.served = 0};
    pthread_t threads[3];
    setenv("TUTTI_DEVICES", "2", 0);
    setenv("TUTTI_CHECK", "race:exit", 1);
    OK(pipe(my.pipe));
    OK(cudaMallocHost((void **)&my.pinned, BYTES));
    OK(cudaMalloc((void **)&my.device, BYTES));
    OK(cudaMemset(my.device, 0, BYTES));
    OK(cudaDeviceSynchronize());
    OK(cudaStreamCreateWithFlags(&my.stream, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&my.other, cudaStreamNonBlocking));
    if (argc > 1) {
        is_sent(&my);
        return 0;
    }
    ended_by_signal(argv[0]);
    host_function_reads(&my);
    neighbours(&my);
    child(&my);
    own_handler(&my);
    for (int i = 0; i < 3; i++)
        OK(pthread_create(&threads[i], NULL, work, &my));
    for (int i = 0; i < 3; i++)
        OK(pthread_join(threads[i], NULL));
    OK(cudaFreeHost(my.pinned));
    OK(cudaFree(my.device));
    return 0;
}
