/* A profiler plugin that does nothing, for `bench/profiler-study`. The build makes two of it: with
 * GIVES_HANDLES 1 it hears of all states and ends, with 0 of begins alone. */
#include "nccl/profiler.h"

/* NOLINTNEXTLINE(readability-non-const-parameter): atomics write there */
static ncclResult_t empty_init(void **context, uint64_t comm_id, int *mask, const char *comm_name,
                               int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    static char something;
    (void)comm_id, (void)comm_name, (void)nnodes, (void)nranks, (void)rank, (void)log;
    *context = &something;
    __atomic_store_n(mask, 4095, __ATOMIC_RELAXED);
    return ncclSuccess;
}

static ncclResult_t empty_start(void *context, void **handle, ncclProfilerEventDescr_v7_t *descr)
{
    (void)descr;
    *handle = GIVES_HANDLES ? context : NULL;
    return ncclSuccess;
}

static ncclResult_t empty_stop(void *handle)
{
    (void)handle;
    return ncclSuccess;
}

static ncclResult_t empty_state(void *handle, ncclProfilerEventState_v7_t state,
                                ncclProfilerEventStateArgs_v7_t *args)
{
    (void)handle, (void)state, (void)args;
    return ncclSuccess;
}

static ncclResult_t empty_finalize(void *context)
{
    (void)context;
    return ncclSuccess;
}

__attribute__((visibility("default"))) const ncclProfiler_v7_t ncclProfiler_v7 = {
    .name = "Empty",
    .init = empty_init,
    .startEvent = empty_start,
    .stopEvent = empty_stop,
    .recordEventState = empty_state,
    .finalize = empty_finalize,
};
