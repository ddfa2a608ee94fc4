/* Ranks that make different calls: all pairs of calls, by number of ranks, transport and size. Rank
 * 0 (in half of the cases the last) makes one call, all others another. Every rank must learn of it
 * as ncclInvalidUsage, by GetAsyncError, with both calls in words; calls that may well meet, or
 * whose data may still be asked for, must not fail. Prints the table of docs/reliability.md with
 * --table.
 *
 * usage: mismatch [--table] [--processes] [ranks [way]]; ranks are threads, or processes.
 * MISMATCH_ROW="Send, Recv" runs that row alone */
#include "../harness/harness.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MOST_RANKS = 8, LIMIT_SEC = 20, QUIET_MSEC = 250, MOST_CASES = 512 };

enum func {
    ALLREDUCE,
    BROADCAST,
    REDUCE,
    ALLGATHER,
    REDUCESCATTER,
    ALLTOALL,
    GATHER,
    SCATTER,
    SEND,
    RECV,
    FUNCS
};

struct call {
    enum func func;
    int root; /* or peer: 1 of rank 0, 0 of the others */
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
};

enum verdict {
    DIFFERS, /* every rank is told */
    EITHER,  /* as the transport takes the data without the receiver, or not */
    PENDING, /* what one has sent may still be asked for: no rank fails */
};

struct row {
    const char *name;
    struct call one, others;
    enum verdict verdict;
    bool circle; /* each rank's peer is the next one */
};

struct finding { /* what a rank found; shared between processes */
    _Atomic int rc;
    double sec; /* from the last rank's call */
    char sentence[768];
};

struct shared {
    ncclUniqueId id;
    _Atomic int has_id, ready, called, done;
    struct finding findings[MOST_RANKS];
};

struct stage {
    const struct row *row;
    struct shared *shared;
    int nranks, odd; /* who makes the one call */
};

/* ---- the calls ---- */

static const char *const func_names[FUNCS] = {"AllReduce",     "Broadcast", "Reduce", "AllGather",
                                              "ReduceScatter", "AlltoAll",  "Gather", "Scatter",
                                              "Send",          "Recv"};

static ncclResult_t make(const struct call *call, int peer, float *in, float *out, ncclComm_t comm,
                         cudaStream_t stream)
{
    size_t count = call->count;
    switch (call->func) {
    case ALLREDUCE: return ncclAllReduce(in, out, count, call->type, call->op, comm, stream);
    case BROADCAST: return ncclBroadcast(in, out, count, call->type, call->root, comm, stream);
    case REDUCE: return ncclReduce(in, out, count, call->type, call->op, call->root, comm, stream);
    case ALLGATHER: return ncclAllGather(in, out, count, call->type, comm, stream);
    case REDUCESCATTER:
        return ncclReduceScatter(in, out, count, call->type, call->op, comm, stream);
    case ALLTOALL: return ncclAlltoAll(in, out, count, call->type, comm, stream);
    case GATHER: return ncclGather(in, out, count, call->type, call->root, comm, stream);
    case SCATTER: return ncclScatter(in, out, count, call->type, call->root, comm, stream);
    case SEND: return ncclSend(in, count, call->type, peer, comm, stream);
    default: return ncclRecv(out, count, call->type, peer, comm, stream);
    }
}

static double now_sec(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void sleep_briefly(void)
{
    struct timespec pause = {.tv_nsec = 1000000};
    nanosleep(&pause, NULL);
}

/* Until the communicator has failed, or long enough for one that will not. */
static ncclResult_t await(ncclComm_t comm, const struct stage *stage, double start)
{
    ncclResult_t state = ncclSuccess;
    double limit = stage->row->verdict == DIFFERS ? LIMIT_SEC : 1e-3 * QUIET_MSEC;
    while (!state && now_sec() - start < limit) {
        if (ncclCommGetAsyncError(comm, &state)) return ncclInternalError;
        if (!state) sleep_briefly();
    }
    return state;
}

static void play(const struct stage *stage, int rank)
{
    struct shared *shared = stage->shared;
    struct finding *finding = &shared->findings[rank];
    bool odd = rank == stage->odd;
    const struct call *call = odd ? &stage->row->one : &stage->row->others;
    size_t bytes = (call->count + 1) * sizeof(double) * (size_t)stage->nranks;
    int next = (rank + 1) % stage->nranks;
    int peer = stage->row->circle ? next : odd ? (stage->odd == 0 ? 1 : 0) : stage->odd;
    ncclComm_t comm = NULL;
    cudaStream_t stream;
    void *in, *out;
    CUDA(cudaSetDevice(rank));
    NCCL(ncclCommInitRank(&comm, stage->nranks, shared->id, rank));
    CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CUDA(cudaMalloc(&in, bytes));
    CUDA(cudaMalloc(&out, bytes));
    atomic_fetch_add(&shared->ready, 1);
    while (atomic_load(&shared->ready) < stage->nranks)
        sched_yield();
    ncclResult_t rc = make(call, peer, in, out, comm, stream);
    atomic_fetch_add(&shared->called, 1);
    while (atomic_load(&shared->called) < stage->nranks)
        sched_yield();
    double start = now_sec();
    if (!rc || rc == ncclInvalidUsage) rc = await(comm, stage, start);
    finding->sec = now_sec() - start;
    snprintf(finding->sentence, sizeof(finding->sentence), "%s", ncclGetLastError(comm));
    atomic_store(&finding->rc, (int)rc);
    atomic_fetch_add(&shared->done, 1);
    while (atomic_load(&shared->done) < stage->nranks) /* an abort would be told to the others */
        sched_yield();
    NCCL(ncclCommAbort(comm));
    cudaStreamSynchronize(stream);
    CUDA(cudaFree(in));
    CUDA(cudaFree(out));
    CUDA(cudaStreamDestroy(stream));
}

/* ---- the world ---- */

struct actor {
    const struct stage *stage;
    int rank;
};

static void *thread_main(void *arg)
{
    const struct actor *actor = arg;
    play(actor->stage, actor->rank);
    return NULL;
}

static void with_threads(const struct stage *stage)
{
    pthread_t threads[MOST_RANKS];
    struct actor actors[MOST_RANKS];
    NCCL(ncclGetUniqueId(&stage->shared->id));
    for (int r = 0; r < stage->nranks; r++) {
        actors[r] = (struct actor){stage, r};
        CHECK(pthread_create(&threads[r], NULL, thread_main, &actors[r]) == 0);
    }
    for (int r = 0; r < stage->nranks; r++)
        pthread_join(threads[r], NULL);
}

/* The first rank makes the id: its process holds the root. */
static void process_main(const struct stage *stage, int rank)
{
    struct shared *shared = stage->shared;
    if (rank == 0) NCCL(ncclGetUniqueId(&shared->id));
    if (rank == 0) atomic_store(&shared->has_id, 1);
    while (!atomic_load(&shared->has_id))
        sched_yield();
    play(stage, rank);
}

static void with_processes(const struct stage *stage)
{
    pid_t pids[MOST_RANKS];
    for (int r = 0; r < stage->nranks; r++) {
        pids[r] = fork();
        CHECK(pids[r] >= 0);
        if (pids[r]) continue;
        process_main(stage, r);
        exit(0);
    }
    for (int r = 0; r < stage->nranks; r++) {
        int status = 1;
        CHECK(waitpid(pids[r], &status, 0) == pids[r]);
        if (status) printf("wrong: the process of rank %d ended with status %#x\n", r, status);
        if (status) atomic_store(&stage->shared->findings[r].rc, ncclNumResults);
    }
}

/* ---- the table ---- */

struct transport {
    const char *name;
    const char *p2p_off, *shm_off;
};

static const struct transport transports[] = {
    {"memory, direct", "0", "0"}, {"memory, copied", "1", "0"}, {"sockets", "1", "1"}};

/* Made of messages where memory is not shared, one of which may be meant for the other, as with
 * NCCL; or some rank's part may end before the others have come. */
static bool may_meet(enum func func)
{
    return func == ALLTOALL || func == GATHER || func == SCATTER || func == BROADCAST ||
           func == REDUCE;
}

/* What a send leaves in the slots may be received later, whatever the receiver does before. */
static enum verdict verdict_of(const struct call *a, const struct call *b, size_t bytes)
{
    bool sends = a->func == SEND || b->func == SEND, receives = a->func == RECV || b->func == RECV;
    if (sends && bytes < 1024) return PENDING;
    if ((sends || receives) && (may_meet(a->func) || may_meet(b->func))) return EITHER;
    return sends && bytes < 1 << 20 ? EITHER : DIFFERS;
}

static int add_rows(struct row *rows, size_t count)
{
    static char names[MOST_CASES][64];
    int n = 0;
    for (int a = 0; a < FUNCS; a++) {
        for (int b = 0; b < FUNCS; b++) {
            if (a == b && a != SEND && a != RECV) continue;
            if ((a == SEND && b == RECV) || (a == RECV && b == SEND)) continue;
            struct row *row = &rows[n];
            row->one = (struct call){(enum func)a, 0, count, ncclFloat32, ncclSum};
            row->others = row->one;
            row->others.func = (enum func)b;
            row->verdict = verdict_of(&row->one, &row->others, count * sizeof(float));
            snprintf(names[n], sizeof(names[n]), "%s, %s", func_names[a], func_names[b]);
            row->name = names[n++];
        }
    }
    return n;
}

/* Each sends to, or receives from, the next rank, and no rank does the other thing. */
static int add_circles(struct row *rows, size_t count)
{
    const struct call send = {SEND, 0, count, ncclFloat32, ncclSum};
    struct call receive = send;
    receive.func = RECV;
    rows[0] = (struct row){"circle of Sends", send, send, DIFFERS, true};
    rows[0].verdict = verdict_of(&send, &send, count * sizeof(float));
    rows[1] = (struct row){"circle of Recvs", receive, receive, DIFFERS, true};
    return 2;
}

/* One argument differs. */
static int add_arguments(struct row *rows, size_t count)
{
    static char names[5 * FUNCS][64];
    int n = 0;
    for (int f = 0; f < SEND; f++) {
        const struct call call = {(enum func)f, 0, count, ncclFloat32, ncclSum};
        bool reduces = f == ALLREDUCE || f == REDUCE || f == REDUCESCATTER;
        bool rooted = f == BROADCAST || f == REDUCE || f == GATHER || f == SCATTER;
        for (int k = 0; k < 4; k++) {
            static const char *const what[] = {"count", "type", "operator", "root"};
            if ((k == 2 && !reduces) || (k == 3 && !rooted)) continue;
            struct row *row = &rows[n];
            *row = (struct row){.one = call, .others = call, .verdict = DIFFERS};
            if (k == 0) row->others.count += count;
            if (k == 1) row->others.type = ncclInt32;
            if (k == 2) row->others.op = ncclMax;
            if (k == 3) row->others.root = 1;
            snprintf(names[n], sizeof(names[n]), "%s: %s", func_names[f], what[k]);
            row->name = names[n++];
        }
    }
    return n;
}

struct sum {
    int cases, ranks, reported, words, wrong;
    int ntimes;
    double times[MOST_CASES * MOST_RANKS]; /* sec, of ranks that must be told */
    bool all_rows, processes;
};

static void judge(const struct stage *stage, const char *transport, struct sum *sum)
{
    const struct row *row = stage->row;
    sum->cases++;
    for (int r = 0; r < stage->nranks; r++) {
        const struct finding *finding = &stage->shared->findings[r];
        int want = row->verdict == DIFFERS ? ncclInvalidUsage : ncclSuccess;
        if (row->verdict == EITHER && atomic_load(&finding->rc)) want = ncclInvalidUsage;
        bool reported = atomic_load(&finding->rc) == want;
        const char *usual = row->circle ? "ncclGroupStart" : "called different operations";
        bool words = want == ncclSuccess || strstr(finding->sentence, usual) ||
                     strstr(finding->sentence, "wait for each other in messages") ||
                     strstr(finding->sentence, "send and receive do not match");
        sum->ranks++;
        sum->reported += reported;
        sum->words += words;
        if (row->verdict == DIFFERS) sum->times[sum->ntimes++] = finding->sec;
        if (reported && words) continue;
        sum->wrong++;
        printf("wrong: %d ranks, %s, %zu elements, rank %d makes the first call of \"%s\": rank %d "
               "has code %d, \"%s\"\n",
               stage->nranks, transport, row->one.count, stage->odd, row->name, r,
               atomic_load(&finding->rc), finding->sentence);
    }
}

static int compare_times(const void *left, const void *right)
{
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static void print_sum(const struct transport *transport, int nranks, size_t bytes, struct sum *sum)
{
    int n = sum->ntimes;
    qsort(sum->times, (size_t)n, sizeof(*sum->times), compare_times);
    printf("| %d | %s | %zu | %d | %d of %d | %d of %d | %.0f | %.0f |\n", nranks, transport->name,
           bytes, sum->cases, sum->reported, sum->ranks, sum->words, sum->ranks,
           n ? 1e3 * sum->times[n / 2] : 0, n ? 1e3 * sum->times[n - 1] : 0);
}

static void run_rows(const struct row *rows, int nrows, int nranks,
                     const struct transport *transport, struct sum *sum)
{
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(shared != MAP_FAILED);
    const char *only = getenv("MISMATCH_ROW");
    int every = sum->all_rows ? 1 : 8; /* the others: with --table */
    for (int k = only ? 0 : (nranks + (int)(transport - transports)) % every; k < nrows;
         k += only ? 1 : every) {
        if (only && strcmp(only, rows[k].name) != 0) continue;
        memset(shared, 0, sizeof(*shared));
        const struct stage stage = {&rows[k], shared, nranks, k / 8 % 2 ? nranks - 1 : 0};
        if (sum->processes) {
            with_processes(&stage);
        } else {
            with_threads(&stage);
        }
        judge(&stage, transport->name, sum);
    }
    munmap(shared, sizeof(*shared));
}

/* One way, one number of ranks: in a process of its own, as the way is read once. */
static int run_transport(const struct transport *transport, int nranks, bool table, bool processes)
{
    static const size_t counts[] = {2, 4096, (size_t)2 << 20};
    static struct row rows[MOST_CASES];
    struct sum all = {0};
    setenv("NCCL_P2P_DISABLE", transport->p2p_off, 1);
    setenv("NCCL_SHM_DISABLE", transport->shm_off, 1);
    for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
        static struct sum sum, circles;
        sum = (struct sum){.all_rows = table, .processes = processes};
        bool large = counts[k] > 1 << 20;
        if (large && nranks > 3)
            continue; /* more than the slots of all edges: not on every machine */
        int nrows = add_rows(rows, counts[k]);
        run_rows(rows, nrows, nranks, transport, &sum);
        circles = (struct sum){.all_rows = true, .processes = processes};
        run_rows(rows, nranks > 2 ? add_circles(rows, counts[k]) : 0, nranks, transport, &circles);
        all.cases += circles.cases;
        all.wrong += circles.wrong;
        nrows = large ? 0 : add_arguments(rows, counts[k]);
        run_rows(rows, nrows, nranks, transport, &sum);
        if (table) print_sum(transport, nranks, counts[k] * sizeof(float), &sum);
        all.cases += sum.cases;
        all.wrong += sum.wrong;
    }
    printf("mismatch: %d ranks, %s%s: %d cases, %d wrong\n", nranks, transport->name,
           processes ? ", processes" : "", all.cases, all.wrong);
    return all.wrong ? 1 : 0;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    bool table = argc > 1 && !strcmp(argv[1], "--table");
    int first = table ? 2 : 1;
    bool processes = argc > first && !strcmp(argv[first], "--processes");
    first += processes;
    int only_ranks = argc > first ? atoi(argv[first]) : 0;
    int only_way = argc > first + 1 ? atoi(argv[first + 1]) : -1;
    static const int sizes[] = {2, 3, 8};
    int wrong = 0;
    setenv("TUTTI_DEVICES", "8", 1);
    for (int n = 0; n < 3; n++) {
        for (int w = 0; w < 3; w++) {
            int status = 1;
            if (only_ranks && only_ranks != sizes[n]) continue;
            if (only_way >= 0 && only_way != w) continue;
            fflush(stdout);
            pid_t pid = fork();
            CHECK(pid >= 0);
            if (pid == 0) exit(run_transport(&transports[w], sizes[n], table, processes));
            CHECK(waitpid(pid, &status, 0) == pid);
            if (!WIFEXITED(status) || WEXITSTATUS(status)) wrong++;
        }
    }
    return wrong ? 1 : 0;
}
