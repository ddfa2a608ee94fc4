/* Profiler plugins of version 6 behind the newest table. Descriptors of version 7 hold those of
 * version 6 as they were and more behind, so the same bytes are passed on. One library per process,
 * hence one table to adapt. */
#include "plugin/process.h"
#include "plugin/profiler.h"

#include <stddef.h>

_Static_assert(offsetof(ncclProfilerEventDescr_v6_t, coll.parentGroup) ==
                       offsetof(ncclProfilerEventDescr_v7_t, coll.parentGroup) &&
                   offsetof(ncclProfilerEventDescr_v6_t, proxyOp) ==
                       offsetof(ncclProfilerEventDescr_v7_t, proxyOp),
               "a descriptor of version 7 begins as one of version 6");

static const ncclProfiler_v6_t *plugin(void)
{
    return tt_plugins.profiler.slot.found.object;
}

static ncclResult_t v6_init(void **context, uint64_t comm, int *mask, const char *name, int nnodes,
                            int nranks, int rank, ncclDebugLogger_t log)
{
    return plugin()->init(context, comm, mask, name, nnodes, nranks, rank, log);
}

static ncclResult_t v6_start(void *context, void **handle, ncclProfilerEventDescr_v7_t *descr)
{
    return plugin()->startEvent(context, handle, (ncclProfilerEventDescr_v6_t *)(void *)descr);
}

static ncclResult_t v6_stop(void *handle)
{
    return plugin()->stopEvent(handle);
}

static ncclResult_t v6_state(void *handle, ncclProfilerEventState_v7_t state,
                             ncclProfilerEventStateArgs_v7_t *args)
{
    return plugin()->recordEventState(handle, state, args);
}

static ncclResult_t v6_finalize(void *context)
{
    return plugin()->finalize(context);
}

const ncclProfiler_v7_t tt_profiler_v6 = {.name = "version 6",
                                          .init = v6_init,
                                          .startEvent = v6_start,
                                          .stopEvent = v6_stop,
                                          .recordEventState = v6_state,
                                          .finalize = v6_finalize};
