/* What a process of the soak does with a communicator: random calls, whose results it compares. */
#include "soak_member.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

int64_t soak_now_usec(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

_Noreturn void soak_wrong(const struct member *m, const char *what, int code)
{
    fprintf(stderr, "soak: slot %d (rank %d of %d), step %d, %s: %s: code %d: %s\n", m->slot,
            m->rank, m->nranks, m->step, m->world->shared->doing[m->slot], what, code,
            ncclGetLastError(NULL));
    _exit(1);
}

void soak_must(const struct member *m, ncclResult_t rc, const char *what)
{
    if (rc != ncclSuccess) soak_wrong(m, what, (int)rc);
}

void soak_cuda(const struct member *m, cudaError_t err, const char *what)
{
    if (err) soak_wrong(m, what, (int)err);
}

ncclResult_t soak_result(ncclComm_t comm, ncclResult_t rc)
{
    if (rc != ncclSuccess && rc != ncclInProgress) return rc;
    ncclResult_t state = ncclInProgress;
    while (comm && state == ncclInProgress) {
        rc = ncclCommGetAsyncError(comm, &state);
        if (rc) return rc;
        if (state == ncclInProgress) usleep(100);
    }
    return comm ? state : ncclSuccess;
}

ncclResult_t soak_made(ncclComm_t from, ncclComm_t *comm, ncclResult_t rc)
{
    rc = soak_result(from, rc);
    if (!rc && !*comm) rc = ncclInternalError;
    return rc ? rc : soak_result(*comm, rc);
}

/* ---- calls ---- */

static ncclResult_t send_around(const struct soak_call *call, const struct group *g, const void *in,
                                void *out, cudaStream_t s)
{
    int to = (g->rank + call->root) % g->n, from = (g->rank + g->n - call->root) % g->n;
    ncclResult_t rc = ncclGroupStart(), ended;
    if (rc) return rc;
    rc = ncclSend(in, call->count, soak_type(call), to, g->comm, s);
    if (rc == ncclSuccess || rc == ncclInProgress)
        rc = ncclRecv(out, call->count, soak_type(call), from, g->comm, s);
    ended = ncclGroupEnd();
    return rc ? rc : ended;
}

static ncclResult_t launch(const struct member *m, const struct group *g,
                           const struct soak_call *call, int k)
{
    unsigned char *in = m->in[k], *out = call->in_place ? in : m->out[k];
    ncclDataType_t type = soak_type(call);
    size_t count = call->count;
    cudaStream_t s = m->stream;
    switch (call->func) {
    case SOAK_ALL_REDUCE: return ncclAllReduce(in, out, count, type, call->op, g->comm, s);
    case SOAK_REDUCE: return ncclReduce(in, out, count, type, call->op, call->root, g->comm, s);
    case SOAK_REDUCE_SCATTER: return ncclReduceScatter(in, out, count, type, call->op, g->comm, s);
    case SOAK_BROADCAST: return ncclBroadcast(in, out, count, type, call->root, g->comm, s);
    case SOAK_ALL_GATHER: return ncclAllGather(in, out, count, type, g->comm, s);
    case SOAK_ALL_TO_ALL: return ncclAlltoAll(in, out, count, type, g->comm, s);
    case SOAK_GATHER: return ncclGather(in, out, count, type, call->root, g->comm, s);
    case SOAK_SCATTER: return ncclScatter(in, out, count, type, call->root, g->comm, s);
    default: return send_around(call, g, in, out, s);
    }
}

static void compare(const struct member *m, const struct group *g, const struct soak_call *call,
                    int k)
{
    const unsigned char *out = call->in_place ? m->in[k] : m->out[k];
    for (size_t i = 0; i < soak_out_count(call, g->rank, g->n); i++) {
        uint64_t got = soak_get(out, call->width, i), want = soak_expected(call, g->rank, g->n, i);
        if (got == want) continue;
        fprintf(stderr, "soak: call %d of %d ranks, element %zu of %zu: %#llx, not %#llx\n",
                (int)call->func, g->n, i, call->count, (unsigned long long)got,
                (unsigned long long)want);
        soak_wrong(m, "a wrong value", 0);
    }
}

ncclResult_t soak_begin(struct member *m, const struct group *g, uint64_t *state,
                        struct burst *burst)
{
    bool grouped = soak_pick(state, 3) == 0;
    ncclResult_t rc = ncclSuccess, ended = ncclSuccess;
    burst->ncalls = 1 + soak_pick(state, BURST);
    for (int k = 0; k < burst->ncalls; k++) {
        struct soak_call *call = &burst->calls[k];
        *call = soak_call_random(state, g->n);
        memset(m->out[k], 0xa5, soak_out_count(call, g->rank, g->n) * (size_t)call->width);
        for (size_t i = 0; i < soak_in_count(call, g->n); i++) {
            soak_put(m->in[k], call->width, i, soak_input(call, g->rank, i));
        }
    }
    if (grouped) ended = ncclGroupStart();
    for (int k = 0; k < burst->ncalls && (rc == ncclSuccess || rc == ncclInProgress); k++) {
        rc = launch(m, g, &burst->calls[k], k);
        if (!grouped) rc = soak_result(g->comm, rc);
    }
    if (grouped) ended = ncclGroupEnd();
    if (rc == ncclSuccess || rc == ncclInProgress) rc = soak_result(g->comm, ended);
    return rc;
}

ncclResult_t soak_operate(struct member *m, const struct group *g, uint64_t *state)
{
    struct burst burst;
    ncclResult_t rc = soak_begin(m, g, state, &burst);
    cudaError_t err = cudaStreamSynchronize(m->stream);
    if (!rc) rc = soak_result(g->comm, ncclSuccess);
    if (rc) return rc;
    soak_cuda(m, err, "cudaStreamSynchronize");
    for (int k = 0; k < burst.ncalls; k++) {
        compare(m, g, &burst.calls[k], k);
    }
    return ncclSuccess;
}

struct group soak_whole(const struct member *m)
{
    return (struct group){m->comm, m->rank, m->nranks};
}

ncclResult_t soak_use_and_end(struct member *m, struct group g, uint64_t *state)
{
    bool finalizes = soak_pick(state, 2);
    ncclResult_t rc = soak_operate(m, &g, state);
    if (!rc && finalizes) rc = soak_result(g.comm, ncclCommFinalize(g.comm));
    ncclResult_t ended = rc ? ncclCommAbort(g.comm) : ncclCommDestroy(g.comm);
    return rc ? rc : ended;
}
