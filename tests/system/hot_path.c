/* What an 8-byte AllReduce on an idle stream plus cudaStreamSynchronize executes, counted and never
 * timed: no system call, no clock read, no allocation, at most three locked instructions. One of
 * two ranks is single-stepped by its parent from one breakpoint instruction to the next, every
 * instruction decoded just far enough. */
#include "harness.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WARM = 200, MEASURED = 5 };

struct counts {
    long instructions, locked, syscalls, clocks, allocations;
    long questions; /* to the processor itself: they leave a virtual machine */
};

struct shared {
    _Atomic int ready;
    ncclUniqueId id;
};

static int is_prefix(uint8_t byte)
{
    return byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0x2e || byte == 0x36 ||
           byte == 0x3e || byte == 0x26 || byte == 0x64 || byte == 0x65 || byte == 0x67;
}

static void decode(const uint8_t *code, struct counts *counts)
{
    int at = 0;
    bool lock = false;
    while (at < 8 && (is_prefix(code[at]) || code[at] == 0xf0)) {
        lock = lock || code[at] == 0xf0;
        at++;
    }
    if ((code[at] & 0xf0) == 0x40) at++; /* REX */
    const uint8_t *op = code + at;
    bool exchange =
        (op[0] == 0x86 || op[0] == 0x87) && (op[1] & 0xc0) != 0xc0; /* locked without saying so */
    if (lock || exchange) counts->locked++;
    if (op[0] == 0x0f && op[1] == 0x05) counts->syscalls++;
    if (op[0] == 0x0f && (op[1] == 0x31 || (op[1] == 0x01 && op[2] == 0xf9))) counts->clocks++;
    if (op[0] == 0x0f && op[1] == 0xa2) counts->questions++;
    counts->instructions++;
}

static void read_code(pid_t pid, uint64_t rip, uint8_t code[16])
{
    for (int i = 0; i < 2; i++) {
        errno = 0;
        long word = ptrace(PTRACE_PEEKTEXT, pid, (void *)(uintptr_t)(rip + 8 * (uint64_t)i), NULL);
        if (errno) word = 0;
        memcpy(code + 8 * i, &word, 8);
    }
}

/* From the breakpoint that the child stands behind to its next one. */
static struct counts step_through(pid_t pid)
{
    struct counts counts = {0};
    uint64_t allocators[] = {(uint64_t)(uintptr_t)malloc, (uint64_t)(uintptr_t)calloc,
                             (uint64_t)(uintptr_t)realloc};
    for (;;) {
        struct user_regs_struct regs;
        uint8_t code[16];
        int status = 0;
        CHECK(!ptrace(PTRACE_GETREGS, pid, NULL, &regs));
        read_code(pid, regs.rip, code);
        if (code[0] == 0xcc) {
            regs.rip++;
            CHECK(!ptrace(PTRACE_SETREGS, pid, NULL, &regs));
            return counts;
        }
        for (int i = 0; i < 3; i++) {
            if (regs.rip == allocators[i]) counts.allocations++;
        }
        decode(code, &counts);
        CHECK(!ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL));
        CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
        CHECK(counts.instructions < 2000000);
    }
}

static void breakpoint(void)
{
    __asm__ volatile("int3" ::: "memory");
}

static size_t type_bytes(ncclDataType_t type)
{
    return type == ncclFloat ? 4 : 2;
}

static void run(struct shared *shared, int rank, bool traced)
{
    ncclComm_t comm;
    cudaStream_t stream;
    if (rank == 0) {
        NCCL(ncclGetUniqueId(&shared->id));
        atomic_store(&shared->ready, 1);
    }
    while (!atomic_load(&shared->ready)) {
        usleep(200);
    }
    CUDA(cudaSetDevice(rank));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    NCCL(ncclCommInitRank(&comm, 2, shared->id, rank));
    float *send = harness_device_alloc(64);
    float *recv = harness_device_alloc(64);
    send[0] = send[1] = 1;
    for (int i = 0; i < WARM + MEASURED; i++) {
        if (i == WARM && traced) {
            ptrace(PTRACE_TRACEME, 0, NULL, NULL);
            raise(SIGSTOP);
        }
        if (i >= WARM && !traced)
            usleep(1000); /* the traced rank's data is there first, and the other way round */
        if (i >= WARM && traced) breakpoint();
        ncclDataType_t type = i % 2 ? ncclBfloat16 : ncclFloat; /* folded in different ways */
        ncclResult_t rc =
            ncclAllReduce(send, recv, 8 / type_bytes(type), type, ncclSum, comm, stream);
        cudaError_t err = cudaStreamSynchronize(stream);
        if (i >= WARM && traced) breakpoint();
        CHECK(rc == ncclSuccess && err == cudaSuccess && recv[1] == 2);
        recv[1] = 0;
    }
    NCCL(ncclCommDestroy(comm));
    exit(0);
}

static void wait_for_breakpoint(pid_t pid)
{
    int status = 0;
    CHECK(!ptrace(PTRACE_CONT, pid, NULL, NULL));
    CHECK(waitpid(pid, &status, 0) == pid);
    if (WIFEXITED(status))
        harness_fail(__FILE__, __LINE__, "the traced rank ended early with %d",
                     WEXITSTATUS(status));
    CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
}

int main(void)
{
    struct counts best = {.instructions = 1 << 30};
    int status = 0;
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
#if !defined(__x86_64__)
    harness_skip("decodes x86-64 instructions only");
#endif
    pid_t traced = fork();
    if (traced == 0) run(shared, 0, true);
    pid_t other = fork();
    if (other == 0) run(shared, 1, false);
    CHECK(traced > 0 && other > 0);
    CHECK(waitpid(traced, &status, WUNTRACED) == traced);
    if (WIFEXITED(status))
        harness_fail(__FILE__, __LINE__, "the traced rank ended early with %d",
                     WEXITSTATUS(status));
    if (!WIFSTOPPED(status)) harness_skip("ptrace is not allowed here");
    for (int i = 0; i < MEASURED; i++) {
        wait_for_breakpoint(traced);
        struct counts counts = step_through(traced);
        /* A peer that is late makes us poll: the turn with the fewest instructions shows the path
         * itself. */
        if (counts.instructions < best.instructions) best = counts;
        CHECK(counts.questions == 0);
    }
    CHECK(!ptrace(PTRACE_CONT, traced, NULL, NULL));
    while (waitpid(traced, &status, 0) == traced && WIFSTOPPED(status)) {
        ptrace(PTRACE_CONT, traced, NULL, NULL);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("hot-path: %ld instructions, %ld locked, %ld system calls, %ld clock reads, %ld "
           "allocations\n",
           best.instructions, best.locked, best.syscalls, best.clocks, best.allocations);
    CHECK(best.syscalls == 0);
    CHECK(best.clocks == 0);
    CHECK(best.allocations == 0);
    CHECK(best.locked <= 3);
    return 0;
}
