/* Profiler plugins of version 2 as version 3: KernelCh and NetPlugin are left out, and a Coll has
 * trafficBytes, which is no longer filled. */
#include "plugin/profiler/profiler_abi.h"

static const ncclProfiler_v2_t *below(void)
{
    return tt_profiler_below(2, &tt_profiler_v1);
}

static ncclResult_t v2_init(void **context, int *mask)
{
    return below()->init(context, mask);
}

static void fill_coll(const ncclProfilerEventDescr_v3_t *from, ncclProfilerEventDescr_v2_t *to)
{
    to->coll.name = from->coll.name;
    to->coll.commHash = from->coll.commHash;
    to->coll.seqNumber = from->coll.seqNumber;
    to->coll.func = from->coll.func;
    to->coll.sendBuff = from->coll.sendBuff;
    to->coll.recvBuff = from->coll.recvBuff;
    to->coll.count = from->coll.count;
    to->coll.root = from->coll.root;
    to->coll.datatype = from->coll.datatype;
    to->coll.nMaxChannels = from->coll.nMaxChannels;
    to->coll.nWarps = from->coll.nWarps;
    to->coll.algo = from->coll.algo;
    to->coll.proto = from->coll.proto;
}

static ncclResult_t v2_start(void *context, void **handle, ncclProfilerEventDescr_v3_t *descr)
{
    ncclProfilerEventDescr_v2_t own = {
        .type = descr->type, .parentObj = descr->parentObj, .rank = descr->rank};
    if (descr->type > ncclProfileProxyCtrl) return ncclSuccess;
    if (descr->type == ncclProfileColl) fill_coll(descr, &own);
    if (descr->type == ncclProfileP2p) own.p2p = descr->p2p;
    if (descr->type == ncclProfileProxyOp) own.proxyOp = descr->proxyOp;
    if (descr->type == ncclProfileProxyStep) own.proxyStep = descr->proxyStep;
    return below()->startEvent(context, handle, &own);
}

static ncclResult_t v2_stop(void *handle)
{
    return below()->stopEvent(handle);
}

static ncclResult_t v2_state(void *handle, ncclProfilerEventState_v3_t state,
                             ncclProfilerEventStateArgs_v3_t *args)
{
    if (state > ncclProfilerProxyCtrlAppendEnd) return ncclSuccess;
    return below()->recordEventState(handle, state, args);
}

static ncclResult_t v2_finalize(void *context)
{
    return below()->finalize(context);
}

const ncclProfiler_v3_t tt_profiler_v2 = {.name = "version 2",
                                          .init = v2_init,
                                          .startEvent = v2_start,
                                          .stopEvent = v2_stop,
                                          .recordEventState = v2_state,
                                          .finalize = v2_finalize};
