/* NCCL_CHECK_MODE=DEBUG_GLOBAL: where ranks call different collectives, each of these calls fails
 * at each rank with both calls in words, and no buffer is written; what is alike works: groups over
 * several ranks of one thread, groups that ranks cut in different ways, calls with count 0, ranks
 * that come late. In memory and over sockets.
 *
 * usage: global_check [memory|sockets] */
#include "../harness/harness.h"

#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

enum { MOST_RANKS = 5, COUNT = 1000, MARK = 0x5a };

enum func { ALLREDUCE, BROADCAST, REDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, RECV };

struct call {
    enum func func;
    int root;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    const char *words;
};

#define SUM                                                                                        \
    {                                                                                              \
        ALLREDUCE, 0, COUNT, ncclFloat, ncclSum, "AllReduce(count 1000, float, sum)"               \
    }
static const struct call sum = SUM;

/* What the rank 1 calls while all others call `sum`, or the call at its side. */
static const struct pair {
    struct call odd, others;
} pairs[] = {
    {{ALLREDUCE, 0, COUNT, ncclFloat, ncclMax, "max)"}, SUM},
    {{ALLREDUCE, 0, COUNT + 1, ncclFloat, ncclSum, "count 1001"}, SUM},
    {{ALLREDUCE, 0, 0, ncclFloat, ncclSum, "count 0"}, SUM},
    {{ALLREDUCE, 0, COUNT, ncclInt32, ncclSum, "int32"}, SUM},
    {{BROADCAST, 1, COUNT, ncclFloat, ncclSum, "Broadcast("}, SUM},
    {{ALLTOALL, 0, COUNT, ncclFloat, ncclSum, "AlltoAll("}, SUM},
    {{BROADCAST, 1, COUNT, ncclFloat, ncclSum, "root 1"},
     {BROADCAST, 0, COUNT, ncclFloat, ncclSum, "root 0"}},
    {{REDUCE, 1, COUNT, ncclFloat, ncclSum, "Reduce(count 1000"},
     {BROADCAST, 0, COUNT, ncclFloat, ncclSum, "Broadcast(count 1000"}},
    {{ALLGATHER, 0, 7, ncclFloat, ncclSum, "count 7"},
     {ALLGATHER, 0, 8, ncclFloat, ncclSum, "count 8"}},
    {{REDUCESCATTER, 0, COUNT, ncclFloat, ncclSum, "ReduceScatter("},
     {ALLGATHER, 0, COUNT, ncclFloat, ncclSum, "AllGather("}},
    {{RECV, 0, COUNT, ncclFloat, ncclSum, "Recv(count 1000"}, SUM},
};

static ncclResult_t make(const struct call *call, void *in, void *out, ncclComm_t comm,
                         cudaStream_t stream)
{
    switch (call->func) {
    case ALLREDUCE: return ncclAllReduce(in, out, call->count, call->type, call->op, comm, stream);
    case BROADCAST:
        return ncclBroadcast(in, out, call->count, call->type, call->root, comm, stream);
    case REDUCE:
        return ncclReduce(in, out, call->count, call->type, call->op, call->root, comm, stream);
    case ALLGATHER: return ncclAllGather(in, out, call->count, call->type, comm, stream);
    case REDUCESCATTER:
        return ncclReduceScatter(in, out, call->count, call->type, call->op, comm, stream);
    case ALLTOALL: return ncclAlltoAll(in, out, call->count, call->type, comm, stream);
    case RECV: return ncclRecv(out, call->count, call->type, call->root, comm, stream);
    default: return ncclSuccess;
    }
}

enum { BYTES = (COUNT + 1) * sizeof(double) * MOST_RANKS };

static void expect_untouched(const char *what, const void *device, int rank)
{
    static _Thread_local unsigned char bytes[BYTES];
    CUDA(cudaMemcpy(bytes, device, BYTES, cudaMemcpyDeviceToHost));
    for (int k = 0; k < BYTES; k++) {
        if (bytes[k] != MARK)
            harness_fail(__FILE__, __LINE__, "%s: rank %d's buffer was written", what, rank);
    }
}

static void *marked(void)
{
    void *device = harness_device_alloc(BYTES);
    CUDA(cudaMemset(device, MARK, BYTES));
    CUDA(cudaDeviceSynchronize());
    return device;
}

/* ---- ranks in threads ---- */

static void differ(struct harness_rank *rank)
{
    const struct pair *pair = rank->arg;
    const struct call *call = rank->rank == 1 ? &pair->odd : &pair->others;
    void *in = marked(), *out = marked();
    ncclResult_t state = ncclSuccess, rc = make(call, in, out, rank->comm, rank->stream);
    while (call->func == RECV && !state) { /* it has nothing to compare and waits for its message */
        NCCL(ncclCommGetAsyncError(rank->comm, &state));
        sched_yield();
    }
    const char *why = ncclGetLastError(rank->comm);
    if ((rc ? rc : state) != ncclInvalidUsage || !strstr(why, pair->odd.words) ||
        !strstr(why, pair->others.words)) {
        harness_fail(__FILE__, __LINE__, "rank %d, %s: code %d, \"%s\"", rank->rank,
                     pair->odd.words, (int)rc, why);
    }
    NCCL(ncclCommAbort(rank->comm));
    CUDA(cudaStreamSynchronize(rank->stream));
    expect_untouched(pair->odd.words, out, rank->rank);
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
    rank->comm = NULL;
}

static void expect_sum(const float *device, float want)
{
    float host[COUNT];
    CUDA(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
    for (int k = 0; k < COUNT; k++)
        CHECK(host[k] == want);
}

/* Ranks cut the same calls into groups in different ways, and some do nothing. */
static void agree(struct harness_rank *rank)
{
    float host[COUNT], *in = harness_device_alloc(BYTES), *out = harness_device_alloc(BYTES);
    const size_t lens[] = {COUNT, 0, COUNT, 0, 0, COUNT};
    const int ncalls = sizeof(lens) / sizeof(lens[0]);
    for (int k = 0; k < COUNT; k++)
        host[k] = (float)(rank->rank + 1);
    CUDA(cudaMemcpy(in, host, sizeof(host), cudaMemcpyHostToDevice));
    for (int round = 0; round < 3; round++) {
        const int cut = round == 0 ? 1 : round == 1 ? ncalls : rank->rank + 1;
        if (rank->rank == round) usleep(100000);
        for (int k = 0; k < ncalls; k += cut) {
            NCCL(ncclGroupStart());
            for (int j = k; j < k + cut && j < ncalls; j++) {
                NCCL(ncclAllReduce(in, out, lens[j], ncclFloat, ncclSum, rank->comm, rank->stream));
            }
            NCCL(ncclGroupEnd());
        }
        NCCL(ncclAllReduce(in, out, 0, ncclFloat, ncclSum, rank->comm, rank->stream));
        CUDA(cudaStreamSynchronize(rank->stream));
        expect_sum(out, (float)(rank->nranks * (rank->nranks + 1)) / 2);
    }
    NCCL(ncclGroupStart()); /* an estimate compares nothing */
    NCCL(ncclAllReduce(in, out, 0, ncclFloat, ncclSum, rank->comm, rank->stream));
    NCCL(ncclAllReduce(in, out, COUNT, ncclFloat, ncclSum, rank->comm, rank->stream));
    ncclSimInfo_t estimate = NCCL_SIM_INFO_INITIALIZER;
    NCCL(ncclGroupSimulateEnd(&estimate));
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
}

/* Rank 1 ends the communicator, whose closing comparison may find it first; all others call. */
static void leave(struct harness_rank *rank)
{
    void *in = marked(), *out = marked();
    if (rank->rank == 1) {
        NCCL(ncclCommAbort(rank->comm));
    } else {
        ncclResult_t rc = make(&sum, in, out, rank->comm, rank->stream);
        if (rc != ncclRemoteError || !strstr(ncclGetLastError(rank->comm), "rank 1"))
            harness_fail(__FILE__, __LINE__, "rank %d: code %d, \"%s\"", rank->rank, (int)rc,
                         ncclGetLastError(rank->comm));
        NCCL(ncclCommAbort(rank->comm));
    }
    expect_untouched("a rank that left", out, rank->rank);
    rank->comm = NULL;
}

/* A rank comes late: who waits for it is reported, though nothing was issued. */
static void late(struct harness_rank *rank)
{
    void *in = marked(), *out = marked();
    if (rank->rank == 1) usleep(2500000);
    NCCL(make(&sum, in, out, rank->comm, rank->stream));
    CUDA(cudaStreamSynchronize(rank->stream));
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
}

static void expect_log(const char *path, const char *words)
{
    char line[2048];
    bool found = false;
    FILE *log = fopen(path, "r");
    CHECK(log);
    while (!found && fgets(line, sizeof(line), log))
        found = strstr(line, words) != NULL;
    (void)fclose(log);
    unlink(path);
    if (!found) harness_fail(__FILE__, __LINE__, "the log does not say \"%s\"", words);
}

/* NCCL's own promise for this mode: buffers lie at the same places of symmetric windows. */
static void places(struct harness_rank *rank)
{
    ncclWindow_t window;
    char *memory = NULL;
    const size_t bytes = 1 << 20;
    NCCL(ncclMemAlloc((void **)&memory, bytes));
    NCCL(ncclCommWindowRegister(rank->comm, memory, bytes, &window, NCCL_WIN_COLL_SYMMETRIC));
    NCCL(ncclAllReduce(memory, memory + 65536, 4, ncclFloat, ncclSum, rank->comm, rank->stream));
    CUDA(cudaStreamSynchronize(rank->stream));
    ncclResult_t rc = ncclAllReduce(memory, memory + (rank->rank == 1 ? 131072 : 65536), 4,
                                    ncclFloat, ncclSum, rank->comm, rank->stream);
    if (rc != ncclInvalidArgument || !strstr(ncclGetLastError(rank->comm), "symmetric windows"))
        harness_fail(__FILE__, __LINE__, "rank %d: code %d, \"%s\"", rank->rank, (int)rc,
                     ncclGetLastError(rank->comm));
    NCCL(ncclCommAbort(rank->comm));
    rank->comm = NULL;
}

/* ---- all ranks in one thread ---- */

static void one_thread(int nranks, bool differs)
{
    ncclComm_t comms[MOST_RANKS];
    cudaStream_t streams[MOST_RANKS];
    void *in[MOST_RANKS], *out[MOST_RANKS];
    ncclResult_t rc = ncclSuccess;
    NCCL(ncclCommInitAll(comms, nranks, NULL));
    for (int r = 0; r < nranks; r++) {
        CUDA(cudaSetDevice(r));
        CUDA(cudaStreamCreate(&streams[r]));
        in[r] = marked();
        out[r] = marked();
    }
    NCCL(ncclGroupStart());
    for (int r = 0; r < nranks; r++) {
        CUDA(cudaMemset(in[r], 0, BYTES));
        NCCL(make(&sum, in[r], out[r], comms[r], streams[r]));
        struct call second = sum;
        if (differs && r == nranks - 1) second.count--;
        NCCL(make(&second, in[r], out[r], comms[r], streams[r]));
    }
    rc = ncclGroupEnd();
    CHECK(rc == (differs ? ncclInvalidUsage : ncclSuccess));
    for (int r = 0; r < nranks; r++) {
        CUDA(cudaStreamSynchronize(streams[r]));
        if (differs) {
            expect_untouched("a group", out[r], r);
            NCCL(ncclCommAbort(comms[r]));
        } else {
            expect_sum(out[r], 0);
            NCCL(ncclCommDestroy(comms[r]));
        }
    }
}

static void run_all(void)
{
    for (size_t k = 0; k < sizeof(pairs) / sizeof(pairs[0]); k++)
        harness_threads(k % 4 ? 2 + (int)k % 2 : MOST_RANKS, differ, (void *)(uintptr_t)&pairs[k],
                        0);
    harness_threads(3, agree, NULL, 0);
    harness_threads(4, leave, NULL, 0);
    harness_threads(3, places, NULL, 0);
    one_thread(3, false);
    one_thread(3, true);
}

int main(int argc, char **argv)
{
    bool sockets = argc > 1 && !strcmp(argv[1], "sockets");
    setenv("TUTTI_DEVICES", "5", 1);
    char path[64];
    snprintf(path, sizeof(path), "global-check-%d.log", (int)getpid());
    setenv("NCCL_CHECK_MODE", "DEBUG_GLOBAL", 1);
    setenv("NCCL_DEBUG", "WARN", 1);
    setenv("NCCL_DEBUG_FILE", path, 1);
    setenv("TUTTI_WATCHDOG", "1", 1);
    if (sockets) setenv("NCCL_P2P_DISABLE", "1", 1);
    if (sockets) setenv("NCCL_SHM_DISABLE", "1", 1);
    run_all();
    harness_threads(3, late, NULL, 0);
    expect_log(path, ") has not called AllReduce(count 1000, float, sum)");
    printf("global_check: %s: all is well\n", sockets ? "sockets" : "memory");
    return 0;
}
