/* Profiler plugins of version 5 as version 6: copy-engine events are left out, all others have the
 * same layout. */
#include "plugin/profiler/profiler_abi.h"

_Static_assert(offsetof(ncclProfilerEventDescr_v5_t, coll.parentGroup) ==
                       offsetof(ncclProfilerEventDescr_v6_t, coll.parentGroup) &&
                   offsetof(ncclProfilerEventDescr_v5_t, p2p.parentGroup) ==
                       offsetof(ncclProfilerEventDescr_v6_t, p2p.parentGroup) &&
                   offsetof(ncclProfilerEventDescr_v5_t, collApi.graphCaptured) ==
                       offsetof(ncclProfilerEventDescr_v6_t, collApi.graphCaptured) &&
                   offsetof(ncclProfilerEventDescr_v5_t, proxyOp) ==
                       offsetof(ncclProfilerEventDescr_v6_t, proxyOp),
               "a descriptor of version 6 begins as one of version 5");

static const ncclProfiler_v5_t *below(void)
{
    return tt_profiler_below(5, &tt_profiler_v4);
}

static ncclResult_t v5_init(void **context, uint64_t comm, int *mask, const char *name, int nnodes,
                            int nranks, int rank, ncclDebugLogger_t log)
{
    return below()->init(context, comm, mask, name, nnodes, nranks, rank, log);
}

static ncclResult_t v5_start(void *context, void **handle, ncclProfilerEventDescr_v6_t *descr)
{
    if (descr->type > ncclProfileKernelLaunch) return ncclSuccess;
    return below()->startEvent(context, handle, (ncclProfilerEventDescr_v5_t *)(void *)descr);
}

static ncclResult_t v5_stop(void *handle)
{
    return below()->stopEvent(handle);
}

static ncclResult_t v5_state(void *handle, ncclProfilerEventState_v6_t state,
                             ncclProfilerEventStateArgs_v6_t *args)
{
    if (state > ncclProfilerGroupEndApiStart) return ncclSuccess;
    return below()->recordEventState(handle, state, args);
}

static ncclResult_t v5_finalize(void *context)
{
    return below()->finalize(context);
}

const ncclProfiler_v6_t tt_profiler_v5 = {.name = "version 5",
                                          .init = v5_init,
                                          .startEvent = v5_start,
                                          .stopEvent = v5_stop,
                                          .recordEventState = v5_state,
                                          .finalize = v5_finalize};
