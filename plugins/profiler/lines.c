/* What one record looks like in the file: docs/tracing.md has the members. */
#include "trace.h"

#include <stdio.h>

static const char *const type_names[] = {"Group",     "Coll",      "P2p",      "ProxyOp",
                                         "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
                                         "GroupApi",  "CollApi",   "P2pApi",   "KernelLaunch",
                                         "CeColl",    "CeSync",    "CeBatch",  "KernelPhase"};
static const char *const state_names[] = {
    [ncclProfilerProxyOpSendPosted] = "ProxyOpSendPosted",
    [ncclProfilerProxyOpSendRemFifoWait] = "ProxyOpSendRemFifoWait",
    [ncclProfilerProxyOpSendTransmitted] = "ProxyOpSendTransmitted",
    [ncclProfilerProxyOpSendDone] = "ProxyOpSendDone",
    [ncclProfilerProxyOpRecvPosted] = "ProxyOpRecvPosted",
    [ncclProfilerProxyOpRecvReceived] = "ProxyOpRecvReceived",
    [ncclProfilerProxyOpRecvTransmitted] = "ProxyOpRecvTransmitted",
    [ncclProfilerProxyOpRecvDone] = "ProxyOpRecvDone",
    [ncclProfilerProxyOpInProgress_v4] = "ProxyOpInProgress",
    [ncclProfilerProxyStepSendGPUWait] = "ProxyStepSendGPUWait",
    [ncclProfilerProxyStepSendPeerWait_v4] = "ProxyStepSendPeerWait",
    [ncclProfilerProxyStepSendWait] = "ProxyStepSendWait",
    [ncclProfilerProxyStepRecvWait] = "ProxyStepRecvWait",
    [ncclProfilerProxyStepRecvFlushWait] = "ProxyStepRecvFlushWait",
    [ncclProfilerProxyStepRecvGPUWait] = "ProxyStepRecvGPUWait",
    [ncclProfilerProxyCtrlIdle] = "ProxyCtrlIdle",
    [ncclProfilerProxyCtrlActive] = "ProxyCtrlActive",
    [ncclProfilerProxyCtrlSleep] = "ProxyCtrlSleep",
    [ncclProfilerProxyCtrlWakeup] = "ProxyCtrlWakeup",
    [ncclProfilerProxyCtrlAppend] = "ProxyCtrlAppend",
    [ncclProfilerProxyCtrlAppendEnd] = "ProxyCtrlAppendEnd",
    [ncclProfilerNetPluginUpdate] = "NetPluginUpdate",
    [ncclProfilerKernelChStop] = "KernelChStop",
    [ncclProfilerGroupStartApiStop] = "GroupStartApiStop",
    [ncclProfilerGroupEndApiStart] = "GroupEndApiStart",
    [ncclProfilerCeCollStart] = "CeCollStart",
    [ncclProfilerCeCollComplete] = "CeCollComplete",
    [ncclProfilerCeSyncStart] = "CeSyncStart",
    [ncclProfilerCeSyncComplete] = "CeSyncComplete",
    [ncclProfilerCeBatchStart] = "CeBatchStart",
    [ncclProfilerCeBatchComplete] = "CeBatchComplete",
    [ncclProfilerKernelPhaseStop] = "KernelPhaseStop",
};

static const char *type_name(uint32_t type)
{
    for (size_t i = 0; i < sizeof(type_names) / sizeof(type_names[0]); i++) {
        if (type == 1u << i) return type_names[i];
    }
    return "unknown";
}

static const char *state_name(uint32_t state)
{
    bool known = state < sizeof(state_names) / sizeof(state_names[0]) && state_names[state];
    return known ? state_names[state] : "unknown";
}

static const char *word(uint8_t number)
{
    return number ? trace_process.words[number - 1] : "";
}

/* The members that all calls and operations have. */
static int call_members(const struct trace_record *r, char *text, size_t bytes)
{
    return snprintf(text, bytes, ",\"func\":\"%s\",\"datatype\":\"%s\",\"count\":%llu",
                    word(r->func), word(r->datatype), (unsigned long long)r->count);
}

/* What belongs to the type, as further members. */
static int members(const struct trace_record *r, char *text, size_t bytes)
{
    unsigned long long seq = r->seq, group = r->group;
    int used = 0;
    switch (r->type) {
    case ncclProfileGroupApi:
        return snprintf(text, bytes, ",\"depth\":%d,\"captured\":%d", r->steps, r->flag);
    case ncclProfileCollApi:
        used = call_members(r, text, bytes);
        return used + snprintf(text + used, bytes - (size_t)used, ",\"root\":%d,\"captured\":%d",
                               r->peer, r->flag);
    case ncclProfileP2pApi:
        used = call_members(r, text, bytes);
        return used + snprintf(text + used, bytes - (size_t)used, ",\"captured\":%d", r->flag);
    case ncclProfileColl:
        used = call_members(r, text, bytes);
        return used + snprintf(text + used, bytes - (size_t)used,
                               ",\"seq\":%llu,\"root\":%d,\"algo\":\"%s\",\"proto\":\"%s\","
                               "\"channels\":%d,\"warps\":%d,\"group\":%llu",
                               seq, r->peer, word(r->algo), word(r->proto), r->channel, r->warps,
                               group);
    case ncclProfileP2p:
        used = call_members(r, text, bytes);
        return used + snprintf(text + used, bytes - (size_t)used,
                               ",\"peer\":%d,\"channels\":%d,\"group\":%llu", r->peer, r->channel,
                               group);
    case ncclProfileProxyOp:
        return snprintf(text, bytes,
                        ",\"pid\":%d,\"channel\":%d,\"peer\":%d,\"steps\":%d,\"chunk\":%d,"
                        "\"send\":%d",
                        r->pid, r->channel, r->peer, r->steps, r->chunk_bytes, r->flag);
    case ncclProfileProxyStep: return snprintf(text, bytes, ",\"step\":%d", r->steps);
    case ncclProfileKernelCh:
        return snprintf(text, bytes, ",\"channel\":%d,\"timer\":%llu", r->channel, seq);
    case ncclProfileKernelPhase:
        return snprintf(text, bytes, ",\"channel\":%d,\"timer\":%llu,\"phase\":\"%s\"", r->channel,
                        seq, word(r->func));
    case ncclProfileNetPlugin: return snprintf(text, bytes, ",\"net\":%lld", (long long)seq);
    case ncclProfileCeColl:
        used = call_members(r, text, bytes);
        return used + snprintf(text + used, bytes - (size_t)used,
                               ",\"seq\":%llu,\"root\":%d,\"sync\":\"%s\",\"batches\":%d", seq,
                               r->peer, word(r->algo), r->steps);
    case ncclProfileCeSync:
        return snprintf(text, bytes, ",\"complete\":%d,\"nranks\":%d", r->flag, r->steps);
    case ncclProfileCeBatch:
        return snprintf(text, bytes, ",\"ops\":%d,\"bytes\":%llu", r->steps,
                        (unsigned long long)r->count);
    default: return 0;
    }
}

static size_t start_line(const struct trace_record *r, int tid, char *line, size_t bytes)
{
    int creator = (int)(r->context >> 24);
    int used = snprintf(line, bytes,
                        "{\"t\":\"start\",\"id\":%llu,\"parent\":%llu,\"c\":%d,\"tid\":%d,"
                        "\"ts\":%llu,\"type\":\"%s\"",
                        (unsigned long long)r->id, (unsigned long long)r->parent,
                        (int)(r->context & 0xffffff), tid, (unsigned long long)r->ts_nsec,
                        type_name(r->type));
    used += members(r, line + used, bytes - (size_t)used);
    if (creator != trace_process.pid)
        used += snprintf(line + used, bytes - (size_t)used, ",\"c_pid\":%d", creator);
    unsigned long long tag = r->tag, comm = r->comm;
    if (tag) used += snprintf(line + used, bytes - (size_t)used, ",\"tag\":\"%llx\"", tag);
    if (comm) used += snprintf(line + used, bytes - (size_t)used, ",\"comm\":\"%016llx\"", comm);
    used += snprintf(line + used, bytes - (size_t)used, "}\n");
    return (size_t)used;
}

size_t trace_line(const struct trace_record *record, int tid, char *line, size_t bytes)
{
    unsigned long long id = record->id, ts = record->ts_nsec;
    if (record->kind == TRACE_START) return start_line(record, tid, line, bytes);
    if (record->kind == TRACE_STOP)
        return (size_t)snprintf(line, bytes, "{\"t\":\"stop\",\"id\":%llu,\"ts\":%llu}\n", id, ts);
    return (size_t)snprintf(line, bytes,
                            "{\"t\":\"state\",\"id\":%llu,\"ts\":%llu,\"state\":\"%s\","
                            "\"value\":%llu}\n",
                            id, ts, state_name(record->type), (unsigned long long)record->count);
}
