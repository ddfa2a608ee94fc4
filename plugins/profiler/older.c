/* Versions 1 to 3: each is made into the one after it, and the last one into the newest. Their
 * Colls and P2ps carry the communicator's number, which goes to the recorder beside the event. */
#include "older.h"

#include "trace.h"

#include <string.h>

static ncclResult_t init(void **context, int *mask, int version)
{
    return trace_open(context, mask, &(struct trace_communicator){0, NULL, -1, -1, -1, version},
                      NULL);
}

ncclResult_t trace_init_v1(void **context, int *mask)
{
    return init(context, mask, 1);
}

ncclResult_t trace_init_v2(void **context, int *mask)
{
    return init(context, mask, 2);
}

ncclResult_t trace_init_v3(void **context, int *mask)
{
    return init(context, mask, 3);
}

/* ---- version 3, in the newest words ---- */

ncclResult_t trace_start_v3(void *context, void **handle, ncclProfilerEventDescr_v3_t *descr)
{
    ncclProfilerEventDescr_v7_t newest;
    uint64_t comm = 0;
    memset(&newest, 0, sizeof(newest));
    newest.type = descr->type;
    newest.parentObj = descr->parentObj;
    newest.rank = descr->rank;
    switch (descr->type) {
    case ncclProfileColl:
        comm = descr->coll.commHash;
        newest.coll.seqNumber = descr->coll.seqNumber;
        newest.coll.func = descr->coll.func;
        newest.coll.count = descr->coll.count;
        newest.coll.root = descr->coll.root;
        newest.coll.datatype = descr->coll.datatype;
        newest.coll.nChannels = descr->coll.nMaxChannels;
        newest.coll.nWarps = descr->coll.nWarps;
        newest.coll.algo = descr->coll.algo;
        newest.coll.proto = descr->coll.proto;
        break;
    case ncclProfileP2p:
        comm = descr->p2p.commHash;
        newest.p2p.func = descr->p2p.func;
        newest.p2p.count = descr->p2p.count;
        newest.p2p.datatype = descr->p2p.datatype;
        newest.p2p.peer = descr->p2p.peer;
        break;
    case ncclProfileProxyOp:
        memcpy(&newest.proxyOp, &descr->proxyOp, sizeof(newest.proxyOp));
        break;
    case ncclProfileProxyStep: newest.proxyStep.step = descr->proxyStep.step; break;
    case ncclProfileKernelCh: newest.kernelCh.channelId = descr->kernelCh.channelId; break;
    case ncclProfileNetPlugin: newest.netPlugin.id = descr->netPlugin.id; break;
    default: break;
    }
    trace_start(context, handle, &newest, &(struct trace_extra){.comm = comm});
    return ncclSuccess;
}

/* ---- versions 1 and 2, as version 3 ---- */

ncclResult_t trace_start_v2(void *context, void **handle, ncclProfilerEventDescr_v2_t *descr)
{
    ncclProfilerEventDescr_v3_t newer;
    memset(&newer, 0, sizeof(newer));
    newer.type = descr->type;
    newer.parentObj = descr->parentObj;
    newer.rank = descr->rank;
    if (descr->type == ncclProfileColl) {
        newer.coll.commHash = descr->coll.commHash;
        newer.coll.seqNumber = descr->coll.seqNumber;
        newer.coll.func = descr->coll.func;
        newer.coll.count = descr->coll.count;
        newer.coll.root = descr->coll.root;
        newer.coll.datatype = descr->coll.datatype;
        newer.coll.nMaxChannels = descr->coll.nMaxChannels;
        newer.coll.nWarps = descr->coll.nWarps;
        newer.coll.algo = descr->coll.algo;
        newer.coll.proto = descr->coll.proto;
    } else if (descr->type == ncclProfileP2p) {
        memcpy(&newer.p2p, &descr->p2p, sizeof(newer.p2p));
    } else if (descr->type == ncclProfileProxyOp) {
        memcpy(&newer.proxyOp, &descr->proxyOp, sizeof(newer.proxyOp));
    } else if (descr->type == ncclProfileProxyStep) {
        newer.proxyStep.step = descr->proxyStep.step;
    }
    return trace_start_v3(context, handle, &newer);
}

static const char *const funcs[] = {"Broadcast", "Reduce",   "AllGather", "ReduceScatter",
                                    "AllReduce", "SendRecv", "Send",      "Recv"};
static const char *const algos[] = {"TREE",      "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
                                    "NVLS_TREE", "PAT"};
static const char *const protos[] = {"LL", "LL128", "SIMPLE"};
static const char *const datatypes[] = {"ncclInt8",    "ncclUint8",   "ncclInt32",   "ncclUint32",
                                        "ncclInt64",   "ncclUint64",  "ncclFloat16", "ncclFloat32",
                                        "ncclFloat64", "ncclBfloat16"};

static const char *named(const char *const *names, size_t count, size_t number)
{
    return number < count ? names[number] : "unknown";
}
#define NAMED(names, number) named(names, sizeof(names) / sizeof((names)[0]), number)

ncclResult_t trace_start_v1(void *context, void **handle, ncclProfilerEventDescr_v1_t *descr)
{
    ncclProfilerEventDescr_v2_t newer;
    memset(&newer, 0, sizeof(newer));
    newer.type = descr->type;
    newer.parentObj = descr->parentObj;
    newer.rank = descr->rank;
    if (descr->type == ncclProfileColl) {
        newer.coll.commHash = descr->coll.commHash;
        newer.coll.seqNumber = descr->coll.seqNumber;
        newer.coll.func = NAMED(funcs, descr->coll.func);
        newer.coll.count = descr->coll.count;
        newer.coll.root = descr->coll.root;
        newer.coll.datatype = NAMED(datatypes, descr->coll.datatype);
        newer.coll.nMaxChannels = descr->coll.nMaxChannels;
        newer.coll.nWarps = descr->coll.nWarps;
        newer.coll.algo = NAMED(algos, descr->coll.algo);
        newer.coll.proto = NAMED(protos, descr->coll.proto);
    } else if (descr->type == ncclProfileP2p) {
        newer.p2p.commHash = descr->p2p.commHash;
        newer.p2p.func = NAMED(funcs, descr->p2p.func);
        newer.p2p.count = descr->p2p.count;
        newer.p2p.datatype = NAMED(datatypes, descr->p2p.datatype);
        newer.p2p.peer = descr->p2p.peer;
    } else if (descr->type == ncclProfileProxyOp) {
        memcpy(&newer.proxyOp, &descr->proxyOp, sizeof(newer.proxyOp));
    } else if (descr->type == ncclProfileProxyStep) {
        newer.proxyStep.step = descr->proxyStep.step;
    }
    return trace_start_v2(context, handle, &newer);
}

/* ---- states: the same three times, as the headers have three types ---- */

static ncclResult_t state(void *handle, int number, const ncclProfilerEventStateArgs_v3_t *args)
{
    bool of_op = number <= ncclProfilerProxyOpRecvDone;
    bool of_ctrl = number >= ncclProfilerProxyCtrlIdle && number <= ncclProfilerProxyCtrlAppendEnd;
    uint64_t value = 0;
    if (args && of_op) value = args->proxyOp.transSize;
    if (args && of_ctrl) value = (uint64_t)args->proxyCtrl.appendedProxyOps;
    trace_state(handle, number, value);
    return ncclSuccess;
}

ncclResult_t trace_state_v3(void *handle, ncclProfilerEventState_t number,
                            ncclProfilerEventStateArgs_v3_t *args)
{
    return state(handle, (int)number, args);
}

ncclResult_t trace_state_v2(void *handle, ncclProfilerEventState_t number,
                            ncclProfilerEventStateArgs_v2_t *args)
{
    ncclProfilerEventStateArgs_v3_t same;
    _Static_assert(sizeof(same) == sizeof(*args), "versions 1 to 3 have the same arguments");
    if (args) memcpy(&same, args, sizeof(same));
    return state(handle, (int)number, args ? &same : NULL);
}

ncclResult_t trace_state_v1(void *handle, ncclProfilerEventState_t number,
                            ncclProfilerEventStateArgs_v1_t *args)
{
    ncclProfilerEventStateArgs_v3_t same;
    _Static_assert(sizeof(same) == sizeof(*args), "versions 1 to 3 have the same arguments");
    if (args) memcpy(&same, args, sizeof(same));
    return state(handle, (int)number, args ? &same : NULL);
}
