/* The profiler plugin that one writes first, for `bench/profiler-study`: each call takes the time
 * and formats a JSON line into one file under one lock (the stream's own). Handles are numbers,
 * which are never used again. PROFILER_LINES is the folder of the file. */
#include "nccl/profiler.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static FILE *out;
static _Atomic uintptr_t events;

static unsigned long long now_nsec(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (unsigned long long)at.tv_sec * 1000000000ull + (unsigned long long)at.tv_nsec;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): atomics write there */
static ncclResult_t lines_init(void **context, uint64_t comm_id, int *mask, const char *comm_name,
                               int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    char name[4096];
    const char *folder = getenv("PROFILER_LINES");
    (void)log;
    if (!out) { /* one thread at a time is here */
        snprintf(name, sizeof(name), "%s/lines.%d", folder ? folder : ".", (int)getpid());
        out = fopen(name, "we");
    }
    if (!out) return ncclSystemError;
    fprintf(out,
            "{\"t\":\"comm\",\"comm\":\"%llx\",\"name\":\"%s\",\"rank\":%d,\"nranks\":%d,"
            "\"nnodes\":%d}\n",
            (unsigned long long)comm_id, comm_name ? comm_name : "", rank, nranks, nnodes);
    *context = out;
    __atomic_store_n(mask, 4095, __ATOMIC_RELAXED);
    return ncclSuccess;
}

/* What is written of each event beside its type, as the reader of a trace needs it. */
static const char *function_of(const ncclProfilerEventDescr_v7_t *descr)
{
    const char *name = NULL;
    if (descr->type == ncclProfileColl) name = descr->coll.func;
    if (descr->type == ncclProfileP2p) name = descr->p2p.func;
    return name ? name : "";
}

static ncclResult_t lines_start(void *context, void **handle, ncclProfilerEventDescr_v7_t *descr)
{
    uintptr_t id = atomic_fetch_add(&events, 1) + 1;
    (void)context;
    fprintf(out,
            "{\"t\":\"start\",\"id\":%llu,\"parent\":%llu,\"ts\":%llu,\"type\":%llu,"
            "\"rank\":%d,\"func\":\"%s\",\"seq\":%llu}\n",
            (unsigned long long)id, (unsigned long long)(uintptr_t)descr->parentObj, now_nsec(),
            (unsigned long long)descr->type, descr->rank, function_of(descr),
            descr->type == ncclProfileColl ? (unsigned long long)descr->coll.seqNumber : 0);
    *handle = (void *)id;
    return ncclSuccess;
}

static ncclResult_t lines_stop(void *handle)
{
    fprintf(out, "{\"t\":\"stop\",\"id\":%llu,\"ts\":%llu}\n",
            (unsigned long long)(uintptr_t)handle, now_nsec());
    return ncclSuccess;
}

static ncclResult_t lines_state(void *handle, ncclProfilerEventState_v7_t state,
                                ncclProfilerEventStateArgs_v7_t *args)
{
    fprintf(out, "{\"t\":\"state\",\"id\":%llu,\"ts\":%llu,\"state\":%d,\"value\":%zu}\n",
            (unsigned long long)(uintptr_t)handle, now_nsec(), (int)state,
            args ? args->proxyStep.transSize : 0);
    return ncclSuccess;
}

static ncclResult_t lines_finalize(void *context)
{
    fflush(context);
    return ncclSuccess;
}

__attribute__((visibility("default"))) const ncclProfiler_v7_t ncclProfiler_v7 = {
    .name = "Lines",
    .init = lines_init,
    .startEvent = lines_start,
    .stopEvent = lines_stop,
    .recordEventState = lines_state,
    .finalize = lines_finalize,
};
