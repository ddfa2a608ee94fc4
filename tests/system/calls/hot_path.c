/* What small calls on an idle stream plus cudaStreamSynchronize execute, counted and never timed:
 * no system call, no clock read, no allocation, few locked instructions, and groups and replays no
 * more than so many calls. One of two ranks is single-stepped by its parent from one breakpoint
 * instruction to the next, every instruction decoded just far enough; the other one's data is there
 * before. With the name of a row as argument only that is measured, and with a file as second one
 * every address that was executed is written there, with how often. */
#include "../harness/harness.h"
#include "touched.h"

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
    long code_lines, data_lines; /* of 64 bytes */
    long questions;              /* to the processor itself: they leave a virtual machine */
};

struct shared {
    _Atomic int ready;
    _Atomic int posted; /* calls of the other rank that have begun */
    ncclUniqueId id;
};

/* ---- what is counted ---- */

struct rank {
    ncclComm_t comm;
    cudaStream_t stream;
    float *send, *recv;
    int rank, turn;
    cudaGraphExec_t graph; /* of one AllReduce */
};

static size_t type_bytes(ncclDataType_t type)
{
    return type == ncclFloat ? 4 : 2;
}

static void all_reduce(const struct rank *r)
{
    ncclDataType_t type = r->turn % 2 ? ncclBfloat16 : ncclFloat; /* reduced in different ways */
    NCCL(ncclAllReduce(r->send, r->recv, 8 / type_bytes(type), type, ncclSum, r->comm, r->stream));
}

static void group_of(const struct rank *r, int ncalls)
{
    NCCL(ncclGroupStart());
    for (int k = 0; k < ncalls; k++)
        NCCL(ncclAllReduce(r->send, r->recv, 2, ncclFloat, ncclSum, r->comm, r->stream));
    NCCL(ncclGroupEnd());
}

static void group_of_4(const struct rank *r)
{
    group_of(r, 4);
}

static void group_of_64(const struct rank *r)
{
    group_of(r, 64);
}

static void send_and_recv(const struct rank *r)
{
    NCCL(ncclGroupStart());
    NCCL(ncclSend(r->send, 8, ncclInt8, !r->rank, r->comm, r->stream));
    NCCL(ncclRecv(r->recv, 8, ncclInt8, !r->rank, r->comm, r->stream));
    NCCL(ncclGroupEnd());
}

static void all_to_all(const struct rank *r)
{
    NCCL(ncclGroupStart());
    for (int peer = 0; peer < 2; peer++) {
        NCCL(ncclSend(r->send + 2 * peer, 2, ncclFloat, peer, r->comm, r->stream));
        NCCL(ncclRecv(r->recv + 2 * peer, 2, ncclFloat, peer, r->comm, r->stream));
    }
    NCCL(ncclGroupEnd());
}

static void replay(const struct rank *r)
{
    CUDA(cudaGraphLaunch(r->graph, r->stream));
}

static const struct row {
    const char *name;
    void (*call)(const struct rank *rank);
    float result;
    int most; /* instructions, in tenths of those of the first row */
} rows[] = {
    {"all-reduce", all_reduce, 2, 10},       {"replay", replay, 2, 10},
    {"group-of-4", group_of_4, 2, 26},       {"group-of-64", group_of_64, 2, 180},
    {"send-and-recv", send_and_recv, 1, 17}, {"all-to-all", all_to_all, 1, 24},
};
enum { NROWS = sizeof(rows) / sizeof(rows[0]) };

/* Instructions and cache lines of data of the first row, as a compiler that optimises makes them.
 */
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
enum { MOST = 700, MOST_LINES = 80 };
#else
enum { MOST = 100000, MOST_LINES = 100000 };
#endif

/* ---- counting ---- */

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

static FILE *trace; /* the addresses that are executed; NULL: not asked for */

/* Where its libraries lie, to read the addresses by. */
static void trace_maps(pid_t pid)
{
    char line[512];
    snprintf(line, sizeof(line), "/proc/%d/maps", (int)pid);
    FILE *maps = trace ? fopen(line, "r") : NULL;
    while (maps && fgets(line, sizeof(line), maps))
        fputs(line, trace);
    if (maps) fclose(maps);
}

/* From the breakpoint that the child stands behind to its next one. */
static struct counts step_through(pid_t pid)
{
    static struct touched touched;
    struct counts counts = {0};
    touched.ncode = touched.ndata = 0;
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
            counts.code_lines = touched.ncode;
            counts.data_lines = touched.ndata;
            return counts;
        }
        for (int i = 0; i < 3; i++) {
            if (regs.rip == allocators[i]) counts.allocations++;
        }
        if (trace) fprintf(trace, "%lx\n", (unsigned long)regs.rip);
        decode(code, &counts);
        touched_note(&touched, code, &regs);
        CHECK(!ptrace(PTRACE_SINGLESTEP, pid, NULL, NULL));
        CHECK(waitpid(pid, &status, 0) == pid && WIFSTOPPED(status));
        CHECK(counts.instructions < 2000000);
    }
}

static void breakpoint(void)
{
    __asm__ volatile("int3" ::: "memory");
}

static void capture(struct rank *r)
{
    cudaGraph_t graph;
    CUDA(cudaStreamBeginCapture(r->stream, cudaStreamCaptureModeThreadLocal));
    group_of(r, 1);
    CUDA(cudaStreamEndCapture(r->stream, &graph));
    CUDA(cudaGraphInstantiate(&r->graph, graph, 0));
    CUDA(cudaGraphDestroy(graph));
}

static void run(const struct row *row, struct shared *shared, bool traced)
{
    struct rank r = {.rank = traced ? 0 : 1};
    if (traced) {
        NCCL(ncclGetUniqueId(&shared->id));
        atomic_store(&shared->ready, 1);
    }
    while (!atomic_load(&shared->ready)) {
        usleep(200);
    }
    CUDA(cudaSetDevice(r.rank));
    CUDA(cudaStreamCreateWithFlags(&r.stream, cudaStreamNonBlocking));
    NCCL(ncclCommInitRank(&r.comm, 2, shared->id, r.rank));
    r.send = harness_device_alloc(64);
    r.recv = harness_device_alloc(64);
    for (int i = 0; i < 4; i++)
        r.send[i] = 1;
    capture(&r);
    for (r.turn = 0; r.turn < WARM + MEASURED; r.turn++) {
        if (r.turn == WARM && traced) {
            ptrace(PTRACE_TRACEME, 0, NULL, NULL);
            raise(SIGSTOP);
        }
        if (r.turn >= WARM && traced) breakpoint();
        row->call(&r);
        if (!traced) { /* a look at the stream lets what waits there begin */
            cudaStreamQuery(r.stream);
            atomic_store(&shared->posted, r.turn + 1);
        }
        cudaError_t err = cudaStreamSynchronize(r.stream);
        if (r.turn >= WARM && traced) breakpoint();
        CHECK(err == cudaSuccess && r.recv[1] == row->result);
        r.recv[1] = 0;
    }
    CUDA(cudaGraphExecDestroy(r.graph));
    NCCL(ncclCommDestroy(r.comm));
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

/* What one turn of a row executes; the least of a few, as waiting for a late peer polls. */
static struct counts count(const struct row *row)
{
    struct counts best = {.instructions = 1L << 30};
    int status = 0;
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    fflush(stdout);
    pid_t traced = fork();
    if (traced == 0) run(row, shared, true);
    pid_t other = fork();
    if (other == 0) run(row, shared, false);
    CHECK(traced > 0 && other > 0);
    CHECK(waitpid(traced, &status, WUNTRACED) == traced);
    if (WIFEXITED(status))
        harness_fail(__FILE__, __LINE__, "the traced rank ended early with %d",
                     WEXITSTATUS(status));
    if (!WIFSTOPPED(status)) harness_skip("ptrace is not allowed here");
    trace_maps(traced);
    for (int i = 0; i < MEASURED; i++) {
        wait_for_breakpoint(traced);
        while (atomic_load(&shared->posted) < WARM + i + 1) {
            usleep(100);
        }
        if (trace) fprintf(trace, "turn %d\n", i);
        struct counts counts = step_through(traced);
        if (counts.instructions < best.instructions) best = counts;
        CHECK(counts.questions == 0);
    }
    CHECK(!ptrace(PTRACE_CONT, traced, NULL, NULL));
    while (waitpid(traced, &status, 0) == traced && WIFSTOPPED(status)) {
        ptrace(PTRACE_CONT, traced, NULL, NULL);
    }
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CHECK(waitpid(other, &status, 0) == other && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    munmap(shared, sizeof(*shared));
    return best;
}

int main(int argc, char **argv)
{
    struct counts counts[NROWS] = {{0}};
    int nrows = 0;
#if !defined(__x86_64__)
    harness_skip("decodes x86-64 instructions only");
#endif
    if (argc > 2) trace = fopen(argv[2], "w");
    for (int k = 0; k < NROWS; k++) {
        if (argc > 1 && strcmp(argv[1], rows[k].name) != 0) continue;
        struct counts *own = &counts[k];
        *own = count(&rows[k]);
        nrows++;
        printf("hot-path: %s: %ld instructions, %ld locked, %ld system calls, %ld clock reads, "
               "%ld allocations, %ld cache lines of data, %ld of code\n",
               rows[k].name, own->instructions, own->locked, own->syscalls, own->clocks,
               own->allocations, own->data_lines, own->code_lines);
        CHECK(own->syscalls == 0);
        CHECK(own->clocks == 0);
        CHECK(own->allocations == 0);
    }
    CHECK(nrows > 0);
    if (nrows < NROWS) return 0;
    CHECK(counts[0].locked <= 3);
    CHECK(counts[0].instructions <= MOST);
    CHECK(counts[0].data_lines <= MOST_LINES);
    for (int k = 0; k < NROWS; k++)
        CHECK(counts[k].locked <= (k < 2 ? 6 : 5) &&
              10 * counts[k].instructions <= rows[k].most * counts[0].instructions);
    return 0;
}
