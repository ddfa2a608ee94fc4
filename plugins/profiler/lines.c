/* What one record looks like in the file: docs/tracing.md has the members. The writer has to keep
 * up with all threads, so lines are put together without printf. */
#include "trace.h"

#include <endian.h>
#include <string.h>

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

enum { TYPES = sizeof(type_names) / sizeof(type_names[0]) };
enum { STATES = sizeof(state_names) / sizeof(state_names[0]) };

/* ---- text ---- */

static inline char *text(char *at, const char *more)
{
    return stpcpy(at, more); /* of constants a copy of known length */
}

enum { EIGHT = 100000000 };

/* Eight digits of a number below EIGHT at once, the first one in the lowest byte. */
static inline uint64_t digits_of(uint32_t value)
{
    uint64_t halves = value / 10000 | (uint64_t)(value % 10000) << 32;
    uint64_t hundreds = (halves * 10486 >> 20) & 0x0000007f0000007fu;
    uint64_t pairs = hundreds + ((halves - 100 * hundreds) << 16);
    uint64_t tens = (pairs * 103 >> 10) & 0x000f000f000f000fu;
    return tens + ((pairs - 10 * tens) << 8);
}

static inline char *put_digits(char *at, uint64_t digits, size_t count)
{
    digits = htole64(digits + 0x3030303030303030u);
    memcpy(at, &digits, sizeof(digits)); /* what is too much is overwritten by what follows */
    return at + count;
}

char *trace_number(char *at, uint64_t value)
{
    if (value < 10) {
        *at = (char)('0' + (int)value);
        return at + 1;
    }
    if (value >= EIGHT) {
        at = trace_number(at, value / EIGHT);
        return put_digits(at, digits_of((uint32_t)(value % EIGHT)), 8);
    }
    uint64_t digits = digits_of((uint32_t)value);
    int zeros = __builtin_ctzll(digits) / 8;
    return put_digits(at, digits >> 8 * zeros, 8 - (size_t)zeros);
}

static char *whole(char *at, int64_t value)
{
    if (value < 0) *at++ = '-';
    return trace_number(at, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

static char *hex(char *at, uint64_t value, int least)
{
    int digits = 16;
    while (digits > least && value >> 4 * (digits - 1) == 0)
        digits--;
    while (digits-- > 0)
        *at++ = "0123456789abcdef"[value >> 4 * digits & 15];
    return at;
}

static char *word(char *at, const char *name, uint8_t known)
{
    at = text(text(at, name), known ? trace_process.words[known - 1] : "");
    *at++ = '"';
    return at;
}

/* ---- lines ---- */

/* The members that all calls and operations have. */
static char *call_members(char *at, const struct trace_record *r)
{
    at = word(at, ",\"func\":\"", r->func);
    at = word(at, ",\"datatype\":\"", r->datatype);
    return trace_number(text(at, ",\"count\":"), r->count);
}

static char *operation_members(char *at, const struct trace_record *r)
{
    at = call_members(at, r);
    if (1u << r->type == ncclProfileP2p) {
        at = whole(text(at, ",\"peer\":"), r->peer);
        at = trace_number(text(at, ",\"channels\":"), r->channel);
        return trace_number(text(at, ",\"group\":"), r->group);
    }
    at = trace_number(text(at, ",\"seq\":"), r->seq);
    at = whole(text(at, ",\"root\":"), r->peer);
    if (1u << r->type == ncclProfileCeColl) {
        at = word(at, ",\"sync\":\"", r->algo);
        return whole(text(at, ",\"batches\":"), r->steps);
    }
    at = word(at, ",\"algo\":\"", r->algo);
    at = word(at, ",\"proto\":\"", r->proto);
    at = trace_number(text(at, ",\"channels\":"), r->channel);
    at = trace_number(text(at, ",\"warps\":"), r->warps);
    return trace_number(text(at, ",\"group\":"), r->group);
}

/* What belongs to the type, as further members. */
static char *members(char *at, const struct trace_record *r)
{
    switch (1u << r->type) {
    case ncclProfileGroupApi:
        at = whole(text(at, ",\"depth\":"), r->steps);
        return trace_number(text(at, ",\"captured\":"), r->flag);
    case ncclProfileCollApi:
        at = whole(text(call_members(at, r), ",\"root\":"), r->peer);
        return trace_number(text(at, ",\"captured\":"), r->flag);
    case ncclProfileP2pApi:
        return trace_number(text(call_members(at, r), ",\"captured\":"), r->flag);
    case ncclProfileColl:
    case ncclProfileP2p:
    case ncclProfileCeColl: return operation_members(at, r);
    case ncclProfileProxyOp:
        at = whole(text(at, ",\"pid\":"), r->pid);
        at = trace_number(text(at, ",\"channel\":"), r->channel);
        at = whole(text(at, ",\"peer\":"), r->peer);
        at = whole(text(at, ",\"steps\":"), r->steps);
        at = whole(text(at, ",\"chunk\":"), r->chunk_bytes);
        return trace_number(text(at, ",\"send\":"), r->flag);
    case ncclProfileProxyStep: return whole(text(at, ",\"step\":"), r->steps);
    case ncclProfileKernelPhase:
    case ncclProfileKernelCh:
        at = trace_number(text(at, ",\"channel\":"), r->channel);
        at = trace_number(text(at, ",\"timer\":"), r->seq);
        return 1u << r->type == ncclProfileKernelCh ? at : word(at, ",\"phase\":\"", r->func);
    case ncclProfileNetPlugin: return whole(text(at, ",\"net\":"), (int64_t)r->seq);
    case ncclProfileCeSync:
        at = trace_number(text(at, ",\"complete\":"), r->flag);
        return whole(text(at, ",\"nranks\":"), r->steps);
    case ncclProfileCeBatch:
        at = whole(text(at, ",\"ops\":"), r->steps);
        return trace_number(text(at, ",\"bytes\":"), r->count);
    default: return at;
    }
}

const char *trace_type_name(uint32_t type)
{
    return type < TYPES ? type_names[type] : "unknown";
}

static char *start_line(char *at, const struct trace_record *r, int tid)
{
    int creator = (int)(r->context >> 24);
    at = trace_number(text(at, "{\"t\":\"start\",\"id\":"), r->id);
    at = trace_number(text(at, ",\"parent\":"), r->parent);
    at = trace_number(text(at, ",\"c\":"), r->context & 0xffffff);
    at = whole(text(at, ",\"tid\":"), tid);
    at = trace_number(text(at, ",\"ts\":"), r->ts_nsec);
    at = text(text(at, ",\"type\":\""), trace_type_name(r->type));
    *at++ = '"';
    if (r->type < TYPES) at = members(at, r);
    if (creator != trace_process.pid) at = whole(text(at, ",\"c_pid\":"), creator);
    if (r->tag) at = text(hex(text(at, ",\"tag\":\""), r->tag, 1), "\"");
    if (r->comm) at = text(hex(text(at, ",\"comm\":\""), r->comm, 16), "\"");
    return text(at, "}\n");
}

const char *trace_state_name(uint32_t state)
{
    return state < STATES ? state_names[state] : NULL;
}

size_t trace_line(const struct trace_record *record, int tid, char *line)
{
    char *at = line;
    if (record->kind == TRACE_START) {
        at = start_line(at, record, tid);
    } else if (record->kind == TRACE_STOP) {
        at = trace_number(text(at, "{\"t\":\"stop\",\"id\":"), record->id);
        at = text(trace_number(text(at, ",\"ts\":"), record->ts_nsec), "}\n");
    } else {
        at = trace_number(text(at, "{\"t\":\"state\",\"id\":"), record->id);
        at = trace_number(text(at, ",\"ts\":"), record->ts_nsec);
        const char *name = trace_state_name(record->type);
        at = text(text(at, ",\"state\":\""), name ? name : "unknown");
        at = text(trace_number(text(at, "\",\"value\":"), record->count), "}\n");
    }
    return (size_t)(at - line);
}

/* ---- records ---- */

static uint64_t bits(uint64_t word, int low, int count)
{
    return word >> low & (((uint64_t)1 << count) - 1);
}

static void set_field(struct trace_record *r, enum trace_field field, uint64_t value)
{
    switch (field) {
    case TRACE_SEQ: r->seq = value; break;
    case TRACE_COUNT: r->count = value; break;
    case TRACE_PEER:
        r->peer = (int32_t)(uint32_t)value;
        r->steps = (int32_t)(uint32_t)(value >> 32);
        break;
    case TRACE_WORDS:
        r->func = (uint8_t)value;
        r->datatype = (uint8_t)(value >> 8);
        r->algo = (uint8_t)(value >> 16);
        r->proto = (uint8_t)(value >> 24);
        r->channel = (uint8_t)(value >> 32);
        r->warps = (uint8_t)(value >> 40);
        break;
    case TRACE_SIZES:
        r->chunk_bytes = (int32_t)(uint32_t)value;
        r->pid = (int32_t)(uint32_t)(value >> 32);
        break;
    case TRACE_GROUP: r->group = value; break;
    case TRACE_TAG: r->tag = value; break;
    default: r->comm = value; break;
    }
}

size_t trace_decode(const uint64_t *words, uint64_t at, uint64_t mask, struct trace_record *record)
{
    uint64_t first = words[at & mask], second = words[(at + 1) & mask];
    *record = (struct trace_record){.kind = (uint8_t)(first & (TRACE_VALUED - 1)), .peer = -1};
    if (record->kind != TRACE_START) {
        record->id = bits(second, 0, TRACE_ID_BITS);
        record->type = (uint32_t)(second >> TRACE_ID_BITS);
        if (first & TRACE_VALUED) record->count = words[(at + 2) & mask];
        return first & TRACE_VALUED ? 3 : 2;
    }
    uint64_t what = words[(at + 2) & mask], used = 3;
    record->parent = second;
    record->context = bits(what, 0, TRACE_TYPE_SHIFT);
    record->type = (uint32_t)bits(what, TRACE_TYPE_SHIFT, TRACE_FLAG_SHIFT - TRACE_TYPE_SHIFT);
    record->flag = bits(what, TRACE_FLAG_SHIFT, 1);
    const uint64_t type = 1ull << (record->type & 63);
    if (type & (ncclProfileCollApi | ncclProfileColl | ncclProfileCeColl)) record->peer = 0;
    if (type == ncclProfileGroupApi) record->steps = 1;
    for (int field = 0; field < TRACE_FIELD_COUNT_; field++) {
        if (bits(what, TRACE_FIELD_SHIFT + field, 1))
            set_field(record, (enum trace_field)field, words[(at + used++) & mask]);
    }
    return used;
}
