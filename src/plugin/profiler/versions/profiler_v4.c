/* Profiler plugins of version 4 as version 5: no events of calls and launches, so Coll and P2p hang
 * under their Group. init has another order. */
#include "plugin/profiler/profiler_abi.h"

static const ncclProfiler_v4_t *below(void)
{
    return tt_profiler_below(4, &tt_profiler_v3);
}

static ncclResult_t v4_init(void **context, uint64_t comm, int *mask, const char *name, int nnodes,
                            int nranks, int rank, ncclDebugLogger_t log)
{
    return below()->init(context, mask, name, comm, nnodes, nranks, rank, log);
}

static void fill_coll(const ncclProfilerEventDescr_v5_t *from, ncclProfilerEventDescr_v4_t *to)
{
    to->parentObj = from->coll.parentGroup;
    to->coll.seqNumber = from->coll.seqNumber;
    to->coll.func = from->coll.func;
    to->coll.sendBuff = from->coll.sendBuff;
    to->coll.recvBuff = from->coll.recvBuff;
    to->coll.count = from->coll.count;
    to->coll.root = from->coll.root;
    to->coll.datatype = from->coll.datatype;
    to->coll.nChannels = from->coll.nChannels;
    to->coll.nWarps = from->coll.nWarps;
    to->coll.algo = from->coll.algo;
    to->coll.proto = from->coll.proto;
}

static void fill_p2p(const ncclProfilerEventDescr_v5_t *from, ncclProfilerEventDescr_v4_t *to)
{
    to->parentObj = from->p2p.parentGroup;
    to->p2p.func = from->p2p.func;
    to->p2p.buff = from->p2p.buff;
    to->p2p.datatype = from->p2p.datatype;
    to->p2p.count = from->p2p.count;
    to->p2p.peer = from->p2p.peer;
    to->p2p.nChannels = from->p2p.nChannels;
}

static ncclResult_t v4_start(void *context, void **handle, ncclProfilerEventDescr_v5_t *descr)
{
    ncclProfilerEventDescr_v4_t own = {
        .type = (uint8_t)descr->type, .parentObj = descr->parentObj, .rank = descr->rank};
    switch (descr->type) {
    case ncclProfileGroup:
    case ncclProfileProxyCtrl: break;
    case ncclProfileColl: fill_coll(descr, &own); break;
    case ncclProfileP2p: fill_p2p(descr, &own); break;
    case ncclProfileProxyOp: own.proxyOp = descr->proxyOp; break;
    case ncclProfileProxyStep: own.proxyStep = descr->proxyStep; break;
    case ncclProfileKernelCh: own.kernelCh = descr->kernelCh; break;
    case ncclProfileNetPlugin: own.netPlugin = descr->netPlugin; break;
    default: return ncclSuccess;
    }
    return below()->startEvent(context, handle, &own);
}

static ncclResult_t v4_stop(void *handle)
{
    return below()->stopEvent(handle);
}

static ncclResult_t v4_state(void *handle, ncclProfilerEventState_v5_t state,
                             ncclProfilerEventStateArgs_v5_t *args)
{
    if (state > ncclProfilerKernelChStop) return ncclSuccess;
    return below()->recordEventState(handle, state, args);
}

static ncclResult_t v4_finalize(void *context)
{
    return below()->finalize(context);
}

const ncclProfiler_v5_t tt_profiler_v4 = {.name = "version 4",
                                          .init = v4_init,
                                          .startEvent = v4_start,
                                          .stopEvent = v4_stop,
                                          .recordEventState = v4_state,
                                          .finalize = v4_finalize};
