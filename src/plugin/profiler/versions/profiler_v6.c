/* Profiler plugins of version 6 as version 7: a descriptor of version 7 holds that of version 6 as
 * it was and more behind, so the same bytes are passed on. KernelPhase has no place in 6. */
#include "plugin/profiler/profiler_abi.h"

_Static_assert(offsetof(ncclProfilerEventDescr_v6_t, coll.parentGroup) ==
                       offsetof(ncclProfilerEventDescr_v7_t, coll.parentGroup) &&
                   offsetof(ncclProfilerEventDescr_v6_t, p2p.parentGroup) ==
                       offsetof(ncclProfilerEventDescr_v7_t, p2p.parentGroup) &&
                   offsetof(ncclProfilerEventDescr_v6_t, ceColl.stream) ==
                       offsetof(ncclProfilerEventDescr_v7_t, ceColl.stream) &&
                   offsetof(ncclProfilerEventDescr_v6_t, proxyOp) ==
                       offsetof(ncclProfilerEventDescr_v7_t, proxyOp),
               "a descriptor of version 7 begins as one of version 6");

static const ncclProfiler_v6_t *below(void)
{
    return tt_profiler_below(6, &tt_profiler_v5);
}

static ncclResult_t v6_init(void **context, uint64_t comm, int *mask, const char *name, int nnodes,
                            int nranks, int rank, ncclDebugLogger_t log)
{
    return below()->init(context, comm, mask, name, nnodes, nranks, rank, log);
}

static ncclResult_t v6_start(void *context, void **handle, ncclProfilerEventDescr_v7_t *descr)
{
    if (descr->type > ncclProfileCeBatch) return ncclSuccess;
    return below()->startEvent(context, handle, (ncclProfilerEventDescr_v6_t *)(void *)descr);
}

static ncclResult_t v6_stop(void *handle)
{
    return below()->stopEvent(handle);
}

static ncclResult_t v6_state(void *handle, ncclProfilerEventState_v7_t state,
                             ncclProfilerEventStateArgs_v7_t *args)
{
    if (state > ncclProfilerCeBatchComplete) return ncclSuccess;
    return below()->recordEventState(handle, state, args);
}

static ncclResult_t v6_finalize(void *context)
{
    return below()->finalize(context);
}

const ncclProfiler_v7_t tt_profiler_v6 = {.name = "version 6",
                                          .init = v6_init,
                                          .startEvent = v6_start,
                                          .stopEvent = v6_stop,
                                          .recordEventState = v6_state,
                                          .finalize = v6_finalize};
