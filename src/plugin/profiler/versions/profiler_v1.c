/* Profiler plugins of version 1 as version 2: functions, types, algorithms and protocols are
 * numbers. What has none gets the number that NCCL gives it: Send, float64, PAT, SIMPLE. */
#include "base/mem.h"
#include "nccl/tuner.h"
#include "plugin/plugin.h"
#include "plugin/profiler/profiler_abi.h"

#include <string.h>

struct number {
    const char *name;
    int value;
};

static const struct number funcs[] = {
    {"Broadcast", ncclFuncBroadcast}, {"Reduce", ncclFuncReduce},
    {"AllGather", ncclFuncAllGather}, {"ReduceScatter", ncclFuncReduceScatter},
    {"AllReduce", ncclFuncAllReduce}, {"SendRecv", ncclFuncSendRecv},
    {"Send", ncclFuncSend},           {"Recv", ncclFuncRecv},
};
static const struct number types[] = {
    {"ncclInt8", ncclInt8},       {"ncclInt32", ncclInt32},     {"ncclUint32", ncclUint32},
    {"ncclInt64", ncclInt64},     {"ncclUint64", ncclUint64},   {"ncclFloat16", ncclFloat16},
    {"ncclFloat32", ncclFloat32}, {"ncclFloat64", ncclFloat64}, {"ncclBfloat16", ncclBfloat16},
};
static const struct number algos[] = {
    {"TREE", NCCL_ALGO_TREE},
    {"RING", NCCL_ALGO_RING},
    {"COLLNET_DIRECT", NCCL_ALGO_COLLNET_DIRECT},
    {"COLLNET_CHAIN", NCCL_ALGO_COLLNET_CHAIN},
    {"NVLS", NCCL_ALGO_NVLS},
    {"NVLS_TREE", NCCL_ALGO_NVLS_TREE},
    {"PAT", NCCL_ALGO_PAT},
};
static const struct number protos[] = {
    {"LL", NCCL_PROTO_LL},
    {"LL128", NCCL_PROTO_LL128},
    {"SIMPLE", NCCL_PROTO_SIMPLE},
};

static uint8_t number_of(const char *name, const struct number *numbers, size_t count, int other)
{
    for (size_t k = 0; name && k < count; k++) {
        if (!strcmp(name, numbers[k].name)) return (uint8_t)numbers[k].value;
    }
    return (uint8_t)other;
}

static uint8_t func_number(const char *name)
{
    return number_of(name, funcs, TT_LEN(funcs), ncclFuncSend);
}

static uint8_t type_number(const char *name)
{
    return number_of(name, types, TT_LEN(types), ncclFloat64);
}

static const ncclProfiler_v1_t *plugin(void)
{
    return tt_plugins.profiler.slot.found.object;
}

static ncclResult_t v1_init(void **context, int *mask)
{
    return plugin()->init(context, mask);
}

static void fill_coll(const ncclProfilerEventDescr_v2_t *from, ncclProfilerEventDescr_v1_t *to)
{
    to->coll.name = from->coll.name;
    to->coll.commHash = from->coll.commHash;
    to->coll.seqNumber = from->coll.seqNumber;
    to->coll.func = func_number(from->coll.func);
    to->coll.sendBuff = from->coll.sendBuff;
    to->coll.recvBuff = from->coll.recvBuff;
    to->coll.count = from->coll.count;
    to->coll.root = from->coll.root;
    to->coll.datatype = type_number(from->coll.datatype);
    to->coll.trafficBytes = from->coll.trafficBytes;
    to->coll.nMaxChannels = from->coll.nMaxChannels;
    to->coll.nWarps = from->coll.nWarps;
    to->coll.algo = number_of(from->coll.algo, algos, TT_LEN(algos), NCCL_ALGO_PAT);
    to->coll.proto = number_of(from->coll.proto, protos, TT_LEN(protos), NCCL_PROTO_SIMPLE);
}

static void fill_p2p(const ncclProfilerEventDescr_v2_t *from, ncclProfilerEventDescr_v1_t *to)
{
    to->p2p.name = from->p2p.name;
    to->p2p.commHash = from->p2p.commHash;
    to->p2p.func = func_number(from->p2p.func);
    to->p2p.buff = from->p2p.buff;
    to->p2p.datatype = type_number(from->p2p.datatype);
    to->p2p.count = from->p2p.count;
    to->p2p.peer = from->p2p.peer;
}

static ncclResult_t v1_start(void *context, void **handle, ncclProfilerEventDescr_v2_t *descr)
{
    ncclProfilerEventDescr_v1_t own = {
        .type = descr->type, .parentObj = descr->parentObj, .rank = descr->rank};
    if (descr->type == ncclProfileColl) fill_coll(descr, &own);
    if (descr->type == ncclProfileP2p) fill_p2p(descr, &own);
    if (descr->type == ncclProfileProxyOp) own.proxyOp = descr->proxyOp;
    if (descr->type == ncclProfileProxyStep) own.proxyStep = descr->proxyStep;
    return plugin()->startEvent(context, handle, &own);
}

static ncclResult_t v1_stop(void *handle)
{
    return plugin()->stopEvent(handle);
}

static ncclResult_t v1_state(void *handle, ncclProfilerEventState_v2_t state,
                             ncclProfilerEventStateArgs_v2_t *args)
{
    return plugin()->recordEventState(handle, state, args);
}

static ncclResult_t v1_finalize(void *context)
{
    return plugin()->finalize(context);
}

const ncclProfiler_v2_t tt_profiler_v1 = {.name = "version 1",
                                          .init = v1_init,
                                          .startEvent = v1_start,
                                          .stopEvent = v1_stop,
                                          .recordEventState = v1_state,
                                          .finalize = v1_finalize};
