/* A rank of a scenario: an init, calls by chance, a split and calls in it, the end. Every result is
 * compared with what it must be; the first error ends the life by an abort. What it came to stands
 * in the shared memory. */
#include "../soak_call.h"
#include "shared.h"

#include <cuda_runtime.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum { CALLS = 6, CALLS_OF_SPLIT = 2, MOST_BYTES = FAULT_RANKS * SOAK_MOST_COUNT * 8, ODD = 100 };

struct life {
    struct fault_shared *shared;
    struct fault_report *report;
    int rank, nranks;
    ncclComm_t comm;
    cudaStream_t stream;
    unsigned char *in, *out;
};

struct group { /* a communicator, and who this rank is in it */
    ncclComm_t comm;
    int rank, n;
};

int64_t fault_now_usec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static void doing(struct life *life, const char *step)
{
    snprintf(life->report->step, sizeof(life->report->step), "%s", step);
}

static void ends(struct life *life, enum fault_end end, int code, const char *sentence)
{
    struct fault_report *report = life->report;
    if (report->end != END_NONE) return;
    report->code = code;
    report->end_usec = fault_now_usec();
    snprintf(report->sentence, sizeof(report->sentence), "%s", sentence);
    atomic_store(&report->end, (int)end);
}

/* What a call said, or what the driver said of the memory it needs: kept, if it is an error. */
static ncclResult_t say(struct life *life, ncclResult_t rc, const struct group *g)
{
    if (rc) ends(life, END_ERROR, (int)rc, ncclGetLastError(g ? g->comm : NULL));
    return rc;
}

static ncclResult_t cuda(struct life *life, cudaError_t err)
{
    if (err) ends(life, END_ERROR, ODD + (int)err, cudaGetErrorString(err));
    return err ? ncclUnhandledCudaError : ncclSuccess;
}

static ncclResult_t messages(const struct life *life, const struct group *g,
                             const struct soak_call *call)
{
    int to = (g->rank + call->root) % g->n, from = (g->rank + g->n - call->root) % g->n;
    ncclDataType_t type = soak_type(call);
    ncclResult_t rc = ncclGroupStart();
    if (!rc) rc = ncclSend(life->in, call->count, type, to, g->comm, life->stream);
    if (!rc) rc = ncclRecv(life->out, call->count, type, from, g->comm, life->stream);
    ncclResult_t ended = ncclGroupEnd();
    return rc ? rc : ended;
}

static ncclResult_t launch(const struct life *life, const struct group *g,
                           const struct soak_call *call)
{
    unsigned char *in = life->in, *out = call->in_place ? in : life->out;
    ncclDataType_t type = soak_type(call);
    ncclRedOp_t op = call->op;
    size_t n = call->count;
    cudaStream_t s = life->stream;
    switch (call->func) {
    case SOAK_ALL_REDUCE: return ncclAllReduce(in, out, n, type, op, g->comm, s);
    case SOAK_REDUCE: return ncclReduce(in, out, n, type, op, call->root, g->comm, s);
    case SOAK_REDUCE_SCATTER: return ncclReduceScatter(in, out, n, type, op, g->comm, s);
    case SOAK_BROADCAST: return ncclBroadcast(in, out, n, type, call->root, g->comm, s);
    case SOAK_ALL_GATHER: return ncclAllGather(in, out, n, type, g->comm, s);
    case SOAK_ALL_TO_ALL: return ncclAlltoAll(in, out, n, type, g->comm, s);
    case SOAK_GATHER: return ncclGather(in, out, n, type, call->root, g->comm, s);
    case SOAK_SCATTER: return ncclScatter(in, out, n, type, call->root, g->comm, s);
    default: return messages(life, g, call);
    }
}

static ncclResult_t compare(struct life *life, const struct group *g, const struct soak_call *call)
{
    const unsigned char *out = call->in_place ? life->in : life->out;
    for (size_t i = 0; i < soak_out_count(call, g->rank, g->n); i++) {
        uint64_t got = soak_get(out, call->width, i), want = soak_expected(call, g->rank, g->n, i);
        if (got == want) continue;
        char text[128];
        snprintf(text, sizeof(text), "call %d, element %zu of %zu: %#llx, not %#llx",
                 (int)call->func, i, call->count, (unsigned long long)got,
                 (unsigned long long)want);
        ends(life, END_WRONG, 0, text);
        return ncclInternalError;
    }
    return ncclSuccess;
}

static ncclResult_t operate(struct life *life, const struct group *g, uint64_t *state)
{
    struct soak_call call = soak_call_random(state, g->n);
    ncclResult_t late = ncclSuccess;
    memset(life->out, 0xa5, soak_out_count(&call, g->rank, g->n) * (size_t)call.width);
    for (size_t i = 0; i < soak_in_count(&call, g->n); i++) {
        soak_put(life->in, call.width, i, soak_input(&call, g->rank, i));
    }
    ncclResult_t rc = say(life, launch(life, g, &call), g);
    cudaError_t err = rc ? cudaSuccess : cudaStreamSynchronize(life->stream);
    if (!rc) rc = say(life, ncclCommGetAsyncError(g->comm, &late), g);
    if (!rc) rc = say(life, late, g);
    if (!rc) rc = cuda(life, err);
    return rc ? rc : compare(life, g, &call);
}

static ncclResult_t part(struct life *life, uint64_t *state)
{
    int color = life->rank % 2;
    struct group g = {NULL, life->rank / 2, (life->nranks - color + 1) / 2};
    struct group whole = {life->comm, life->rank, life->nranks};
    doing(life, "split");
    ncclResult_t rc = say(life, ncclCommSplit(life->comm, color, 0, &g.comm, NULL), &whole);
    uint64_t own = soak_mix(*state + (uint64_t)color);
    doing(life, "calls of the split");
    for (int k = 0; k < CALLS_OF_SPLIT && !rc; k++) {
        rc = operate(life, &g, &own);
    }
    if (!g.comm) return rc;
    ncclResult_t ended = rc ? ncclCommAbort(g.comm) : say(life, ncclCommDestroy(g.comm), NULL);
    return rc ? rc : ended;
}

static ncclResult_t live(struct life *life)
{
    struct fault_shared *shared = life->shared;
    uint64_t state = shared->scenario.seed;
    doing(life, "init");
    ncclResult_t rc =
        say(life, ncclCommInitRank(&life->comm, life->nranks, shared->id, life->rank), NULL);
    struct group g = {life->comm, life->rank, life->nranks};
    if (!rc) doing(life, "calls");
    for (int k = 0; k < CALLS && !rc; k++) {
        rc = operate(life, &g, &state);
    }
    if (!rc) rc = part(life, &state);
    if (!rc) doing(life, "destroy");
    if (!rc) {
        rc = say(life, ncclCommDestroy(life->comm), NULL);
        life->comm = NULL;
    }
    return rc;
}

/* Descriptors for as many more as the scenario says. */
static void limit_descriptors(const struct life *life)
{
    const struct fault_scenario *scenario = &life->shared->scenario;
    struct rlimit limit;
    if (scenario->kind != FAULT_DESCRIPTORS || scenario->victim != life->rank) return;
    int next = dup(0);
    close(next);
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max = (rlim_t)next + scenario->moment;
    setrlimit(RLIMIT_NOFILE, &limit);
    atomic_store(&life->shared->injected_usec, fault_now_usec());
}

/* All begin together, so that what was told of the scenario's moment has one meaning. */
static void barrier(struct life *life)
{
    struct fault_shared *shared = life->shared;
    if (life->rank == 0) {
        if (!say(life, ncclGetUniqueId(&shared->id), NULL)) atomic_store(&shared->has_id, true);
    }
    while (!atomic_load(&shared->has_id)) {
        usleep(100);
    }
    limit_descriptors(life);
    atomic_fetch_add(&shared->ready, 1);
    while (!atomic_load(&shared->begin_usec)) { /* the driver's clock runs from here on */
        usleep(100);
    }
}

int fault_rank(int fd, int rank)
{
    struct fault_shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int ndevices = 0;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (shared == MAP_FAILED) return 2;
    struct life life = {
        shared, &shared->reports[rank], rank, shared->scenario.nranks, NULL, NULL, NULL, NULL};
    doing(&life, "start");
    ncclResult_t rc = cuda(&life, cudaGetDeviceCount(&ndevices));
    if (!rc) rc = cuda(&life, cudaSetDevice(rank % ndevices));
    if (!rc) rc = cuda(&life, cudaStreamCreateWithFlags(&life.stream, cudaStreamNonBlocking));
    if (!rc) rc = cuda(&life, cudaMalloc((void **)&life.in, MOST_BYTES));
    if (!rc) rc = cuda(&life, cudaMalloc((void **)&life.out, MOST_BYTES));
    if (rc) return 2;
    barrier(&life);
    rc = live(&life);
    if (rc && life.comm && ncclCommAbort(life.comm)) (void)ncclCommAbort(life.comm);
    ends(&life, END_WELL, 0, "");
    (void)cudaFree(life.in);
    (void)cudaFree(life.out);
    (void)cudaStreamDestroy(life.stream);
    return 0;
}
