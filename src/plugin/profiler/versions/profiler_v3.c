/* Profiler plugins of version 3 as version 4: init says nothing of the communicator, each Coll and
 * P2p does. NCCL 2.27 and later leave its name and hash empty; here they are those of init, as with
 * the NCCL that version 3 was made for. Kernels have no times, and states of version 4 are left
 * out. */
#include "base/mem.h"
#include "plugin/profiler/profiler_abi.h"

#include <stdlib.h>

struct context {
    void *own; /* the plugin's */
    const char *name;
    uint64_t hash;
};

static const ncclProfiler_v3_t *below(void)
{
    return tt_profiler_below(3, &tt_profiler_v2);
}

static ncclResult_t v3_init(void **context_out, int *mask, const char *name, uint64_t hash,
                            int nnodes, int nranks, int rank, ncclDebugLogger_t log)
{
    (void)nnodes, (void)nranks, (void)rank, (void)log;
    struct context *context = tt_calloc(1, sizeof(*context));
    if (!context) return ncclSystemError;
    *context = (struct context){.name = name, .hash = hash};
    ncclResult_t rc = below()->init(&context->own, mask);
    if (rc || (!context->own && !__atomic_load_n(mask, __ATOMIC_RELAXED))) { /* switched off */
        free(context);
        return rc;
    }
    *context_out = context;
    return ncclSuccess;
}

static void fill_coll(const struct context *context, const ncclProfilerEventDescr_v4_t *from,
                      ncclProfilerEventDescr_v3_t *to)
{
    to->coll.name = context->name;
    to->coll.commHash = context->hash;
    to->coll.seqNumber = from->coll.seqNumber;
    to->coll.func = from->coll.func;
    to->coll.sendBuff = from->coll.sendBuff;
    to->coll.recvBuff = from->coll.recvBuff;
    to->coll.count = from->coll.count;
    to->coll.root = from->coll.root;
    to->coll.datatype = from->coll.datatype;
    to->coll.nMaxChannels = from->coll.nChannels;
    to->coll.nWarps = from->coll.nWarps;
    to->coll.algo = from->coll.algo;
    to->coll.proto = from->coll.proto;
}

static void fill_p2p(const struct context *context, const ncclProfilerEventDescr_v4_t *from,
                     ncclProfilerEventDescr_v3_t *to)
{
    to->p2p.name = context->name;
    to->p2p.commHash = context->hash;
    to->p2p.func = from->p2p.func;
    to->p2p.buff = from->p2p.buff;
    to->p2p.datatype = from->p2p.datatype;
    to->p2p.count = from->p2p.count;
    to->p2p.peer = from->p2p.peer;
}

static ncclResult_t v3_start(void *opaque, void **handle, ncclProfilerEventDescr_v4_t *descr)
{
    const struct context *context = opaque;
    ncclProfilerEventDescr_v3_t own = {
        .type = descr->type, .parentObj = descr->parentObj, .rank = descr->rank};
    switch (descr->type) {
    case ncclProfileColl: fill_coll(context, descr, &own); break;
    case ncclProfileP2p: fill_p2p(context, descr, &own); break;
    case ncclProfileProxyOp: own.proxyOp = descr->proxyOp; break;
    case ncclProfileProxyStep: own.proxyStep = descr->proxyStep; break;
    case ncclProfileKernelCh: own.kernelCh.channelId = descr->kernelCh.channelId; break;
    case ncclProfileNetPlugin: own.netPlugin = descr->netPlugin; break;
    default: break; /* Group and ProxyCtrl have nothing of their own */
    }
    return below()->startEvent(context->own, handle, &own);
}

static ncclResult_t v3_stop(void *handle)
{
    return below()->stopEvent(handle);
}

/* Steps have no sizes in version 3. */
static ncclResult_t v3_state(void *handle, ncclProfilerEventState_v4_t state,
                             ncclProfilerEventStateArgs_v4_t *args)
{
    ncclProfilerEventStateArgs_v3_t own = {.proxyOp = {0}};
    switch (state) {
    case ncclProfilerProxyOpInProgress_v4:
    case ncclProfilerProxyStepSendPeerWait_v4:
    case ncclProfilerNetPluginUpdate:
    case ncclProfilerKernelChStop: return ncclSuccess;
    case ncclProfilerProxyCtrlAppendEnd:
        own.proxyCtrl.appendedProxyOps = args->proxyCtrl.appendedProxyOps;
        break;
    default: break;
    }
    return below()->recordEventState(handle, state, &own);
}

static ncclResult_t v3_finalize(void *opaque)
{
    struct context *context = opaque;
    ncclResult_t rc = context->own ? below()->finalize(context->own) : ncclSuccess;
    free(context);
    return rc;
}

const ncclProfiler_v4_t tt_profiler_v3 = {.name = "version 3",
                                          .init = v3_init,
                                          .startEvent = v3_start,
                                          .stopEvent = v3_stop,
                                          .recordEventState = v3_state,
                                          .finalize = v3_finalize};
