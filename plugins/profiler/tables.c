/* What the library exports: one table for each version of NCCL's profiler interface. Versions 5 and
 * 6 are the beginning of 7, and 4 is that of 5 but for the width of the type; older.c has the rest.
 * The newest descriptor is what the recorder reads. */
#include "older.h"
#include "trace.h"

#include <string.h>

#define SAME_OFFSET(descr, member)                                                                 \
    _Static_assert(offsetof(descr, member) == offsetof(ncclProfilerEventDescr_v7_t, member), "")
SAME_OFFSET(ncclProfilerEventDescr_v4_t, parentObj);
SAME_OFFSET(ncclProfilerEventDescr_v4_t, coll.proto);
SAME_OFFSET(ncclProfilerEventDescr_v4_t, p2p.nChannels);
SAME_OFFSET(ncclProfilerEventDescr_v4_t, proxyOp.isSend);
SAME_OFFSET(ncclProfilerEventDescr_v4_t, kernelCh.pTimer);
SAME_OFFSET(ncclProfilerEventDescr_v5_t, coll.parentGroup);
SAME_OFFSET(ncclProfilerEventDescr_v5_t, p2p.parentGroup);
SAME_OFFSET(ncclProfilerEventDescr_v5_t, collApi.graphCaptured);
SAME_OFFSET(ncclProfilerEventDescr_v5_t, p2pApi.graphCaptured);
SAME_OFFSET(ncclProfilerEventDescr_v6_t, coll.parentGroup);
SAME_OFFSET(ncclProfilerEventDescr_v6_t, ceColl.stream);
SAME_OFFSET(ncclProfilerEventDescr_v6_t, ceCollBatch.useIntraSync);
#undef SAME_OFFSET

static const char name[] = "Tutti";

static ncclResult_t finalize(void *context)
{
    (void)context;
    trace_close();
    return ncclSuccess;
}

static ncclResult_t stop(void *handle)
{
    trace_stop(handle);
    return ncclSuccess;
}

static ncclResult_t init(void **context, int *mask, const struct trace_communicator *communicator,
                         ncclDebugLogger_t log)
{
    return trace_open(context, mask, communicator, log);
}

/* ---- versions 4 to 7 ---- */

static ncclResult_t init_v7(void **context, uint64_t comm, int *mask, const char *comm_name,
                            int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    return init(context, mask,
                &(struct trace_communicator){comm, comm_name, rank, nranks, nnodes, 7}, log);
}

static ncclResult_t init_v6(void **context, uint64_t comm, int *mask, const char *comm_name,
                            int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    return init(context, mask,
                &(struct trace_communicator){comm, comm_name, rank, nranks, nnodes, 6}, log);
}

static ncclResult_t init_v5(void **context, uint64_t comm, int *mask, const char *comm_name,
                            int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    return init(context, mask,
                &(struct trace_communicator){comm, comm_name, rank, nranks, nnodes, 5}, log);
}

static ncclResult_t init_v4(void **context, int *mask, const char *comm_name, uint64_t comm,
                            int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    return init(context, mask,
                &(struct trace_communicator){comm, comm_name, rank, nranks, nnodes, 4}, log);
}

static ncclResult_t start_v7(void *context, void **handle, ncclProfilerEventDescr_v7_t *descr)
{
    trace_start(context, handle, descr, &(struct trace_extra){.tagged = true});
    return ncclSuccess;
}

/* Versions 5 and 6 are looked at as 7, whose beginning they are (SAME_OFFSET): what lies behind a
 * member there is no member, so the tags are not recorded. */
static ncclResult_t start_v6(void *context, void **handle, ncclProfilerEventDescr_v6_t *descr)
{
    trace_start(context, handle, (const void *)descr, &(struct trace_extra){.tagged = false});
    return ncclSuccess;
}

static ncclResult_t start_v5(void *context, void **handle, ncclProfilerEventDescr_v5_t *descr)
{
    trace_start(context, handle, (const void *)descr, &(struct trace_extra){.tagged = false});
    return ncclSuccess;
}

static ncclResult_t start_v4(void *context, void **handle, ncclProfilerEventDescr_v4_t *descr)
{
    ncclProfilerEventDescr_v6_t newer;
    memset(&newer, 0, sizeof(newer));
    memcpy(&newer, descr, sizeof(*descr));
    newer.type = descr->type;
    if (descr->type == ncclProfileColl) newer.coll.parentGroup = NULL;
    if (descr->type == ncclProfileP2p) newer.p2p.parentGroup = NULL;
    return start_v6(context, handle, &newer);
}

/* The value of a state, by what its event is. */
static ncclResult_t state_v5(void *handle, ncclProfilerEventState_t state,
                             ncclProfilerEventStateArgs_v5_t *args)
{
    uint64_t value = 0;
    bool of_step =
        state >= ncclProfilerProxyStepSendGPUWait && state <= ncclProfilerProxyStepRecvGPUWait;
    if (args && (of_step || state == ncclProfilerProxyStepSendPeerWait_v4))
        value = args->proxyStep.transSize;
    if (args && state >= ncclProfilerProxyCtrlIdle && state <= ncclProfilerProxyCtrlAppendEnd)
        value = (uint64_t)args->proxyCtrl.appendedProxyOps;
    if (args && (state == ncclProfilerKernelChStop || state == ncclProfilerKernelPhaseStop))
        value = args->kernelCh.pTimer;
    trace_state(handle, (int)state, value);
    return ncclSuccess;
}

static ncclResult_t state_v4(void *handle, ncclProfilerEventState_t state,
                             ncclProfilerEventStateArgs_v4_t *args)
{
    ncclProfilerEventStateArgs_v5_t newer;
    _Static_assert(sizeof(newer) == sizeof(*args), "versions 4 and 5 have the same arguments");
    if (args) memcpy(&newer, args, sizeof(newer));
    return state_v5(handle, state, args ? &newer : NULL);
}

__attribute__((visibility("default"))) const ncclProfiler_v1_t ncclProfiler_v1 = {
    name, trace_init_v1, trace_start_v1, stop, trace_state_v1, finalize};
__attribute__((visibility("default"))) const ncclProfiler_v2_t ncclProfiler_v2 = {
    name, trace_init_v2, trace_start_v2, stop, trace_state_v2, finalize};
__attribute__((visibility("default"))) const ncclProfiler_v3_t ncclProfiler_v3 = {
    name, trace_init_v3, trace_start_v3, stop, trace_state_v3, finalize};
__attribute__((visibility("default")))
const ncclProfiler_v4_t ncclProfiler_v4 = {name, init_v4, start_v4, stop, state_v4, finalize};
__attribute__((visibility("default")))
const ncclProfiler_v5_t ncclProfiler_v5 = {name, init_v5, start_v5, stop, state_v5, finalize};
__attribute__((visibility("default")))
const ncclProfiler_v6_t ncclProfiler_v6 = {name, init_v6, start_v6, stop, state_v5, finalize};
__attribute__((visibility("default")))
const ncclProfiler_v7_t ncclProfiler_v7 = {name, init_v7, start_v7, stop, state_v5, finalize};
