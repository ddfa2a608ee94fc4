/* A profiler with a mistake, as plugins of the field have them. PROFILER_MISTAKE: "channel" (dies
 * of channel 32), "hang" (the end of a step never comes back), "decline" (no context), "open" (dies
 * in finalize of a communicator with open events). */
#include "nccl/profiler_v5.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static uint64_t types[16]; /* handles: one per type of event */
static int open_events;

static bool mistake(const char *name)
{
    const char *text = getenv("PROFILER_MISTAKE");
    return text && !strcmp(text, name);
}

static ncclResult_t fragile_init(void **context, uint64_t comm, int *mask, const char *name,
                                 int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    (void)comm, (void)name, (void)nnodes, (void)nranks, (void)rank, (void)log;
    *mask = ncclProfileProxyStep | ncclProfileKernelCh;
    *context = mistake("decline") ? NULL : &open_events;
    return ncclSuccess;
}

static ncclResult_t fragile_start(void *context, void **handle, ncclProfilerEventDescr_v5_t *descr)
{
    uint64_t *event = &types[__builtin_ctzll(descr->type)];
    (void)context;
    if (descr->type == ncclProfileKernelCh && descr->kernelCh.channelId >= 32 && mistake("channel"))
        raise(SIGSEGV);
    __atomic_store_n(event, descr->type, __ATOMIC_RELAXED);
    __atomic_fetch_add(&open_events, 1, __ATOMIC_RELAXED);
    *handle = event;
    return ncclSuccess;
}

static ncclResult_t fragile_stop(void *handle)
{
    const uint64_t *event = handle;
    if (__atomic_load_n(event, __ATOMIC_RELAXED) == ncclProfileProxyStep && mistake("hang"))
        pause();
    __atomic_fetch_sub(&open_events, 1, __ATOMIC_RELAXED);
    return ncclSuccess;
}

static ncclResult_t fragile_state(void *handle, ncclProfilerEventState_v5_t state,
                                  ncclProfilerEventStateArgs_v5_t *args)
{
    (void)handle, (void)state, (void)args;
    return ncclSuccess;
}

static ncclResult_t fragile_finalize(void *context)
{
    (void)context;
    if (__atomic_load_n(&open_events, __ATOMIC_RELAXED) > 0 && mistake("open")) abort();
    return ncclSuccess;
}

__attribute__((visibility("default"))) const ncclProfiler_v5_t ncclProfiler_v5 = {
    .name = "Fragile",
    .init = fragile_init,
    .startEvent = fragile_start,
    .stopEvent = fragile_stop,
    .recordEventState = fragile_state,
    .finalize = fragile_finalize,
};
