/* Plays a communicator for a profiler plugin. Every call is noted first, so that a report can name
 * the one that did not return. */
#include "profiler_drive.h"

#include "plugin/plugin.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { GONE = 0xa5 }; /* what bytes become that may not be looked at any more */

/* ---- calls ---- */

static void note(struct drive *drive, int call, uint64_t detail)
{
    drive->state->call = call;
    drive->state->detail = detail;
}

/* The library ignores these results, so it is the plugin's author alone who can be told. */
static void judge(struct drive *drive, int call, uint64_t detail, ncclResult_t rc)
{
    if (rc == ncclSuccess || drive->nwrong == DRIVE_WRONG) return;
    for (int k = 0; k < drive->nwrong; k++) {
        if (drive->wrong[k].call == call && drive->wrong[k].detail == detail) return;
    }
    drive->wrong[drive->nwrong].call = call;
    drive->wrong[drive->nwrong].detail = detail;
    drive->wrong[drive->nwrong++].rc = (int)rc;
}

/* A handle that is not what the call stored: the plugin kept the address. */
static void look_at_handle(struct drive *drive, uint64_t number)
{
    const uint64_t at = number % DRIVE_HANDLES;
    if (drive->handles[at].stored != drive->handles[at].event)
        judge(drive, DRIVE_HANDLE, drive->handles[at].type, ncclInvalidUsage);
}

void *drive_start(struct drive *drive, ncclProfilerEventDescr_v7_t *descr)
{
    if (!tt_prof_wants(drive->mask, descr->type)) return NULL;
    note(drive, DRIVE_START, descr->type);
    drive->calls++;
    const uint64_t type = descr->type, at = drive->nhandles % DRIVE_HANDLES;
    if (drive->nhandles >= DRIVE_HANDLES) look_at_handle(drive, drive->nhandles);
    drive->nhandles++;
    drive->handles[at].stored = NULL;
    descr->rank = drive->member.rank;
    ncclResult_t rc = drive->profiler->table->startEvent(drive->profiler->context,
                                                         &drive->handles[at].stored, descr);
    drive->handles[at].event = drive->handles[at].stored;
    drive->handles[at].type = type;
    judge(drive, DRIVE_START, type, rc);
    memset(descr, GONE, sizeof(*descr)); /* it was the plugin's during the call alone */
    descr->type = type;
    return drive->handles[at].event;
}

static void stop(struct drive *drive, void *event, uint64_t type)
{
    if (!event) return;
    note(drive, DRIVE_STOP, type);
    drive->calls++;
    judge(drive, DRIVE_STOP, type, drive->profiler->table->stopEvent(event));
    if (drive->freed) drive_freed_take(drive->freed, event);
}

static void set_state(struct drive *drive, void *event, ncclProfilerEventState_t state,
                      size_t value)
{
    ncclProfilerEventStateArgs_v7_t args = {.proxyStep = {value}};
    if (!event) return;
    note(drive, DRIVE_STATE, state);
    drive->calls++;
    judge(drive, DRIVE_STATE, state, drive->profiler->table->recordEventState(event, state, &args));
}

/* ---- words ---- */

static const char *call_name(int call)
{
    switch (call) {
    case DRIVE_INIT: return "init";
    case DRIVE_START:
    case DRIVE_HANDLE: return "startEvent of type";
    case DRIVE_STOP: return "stopEvent of type";
    case DRIVE_FINALIZE: return "finalize";
    default: return "no call";
    }
}

/* Of an event by its bit; "" for none that is known. */
static const char *event_name(unsigned long long type)
{
    static const char *const names[] = {"Group",     "Coll",      "P2p",      "ProxyOp",
                                        "ProxyStep", "ProxyCtrl", "KernelCh", "NetPlugin",
                                        "GroupApi",  "CollApi",   "P2pApi",   "KernelLaunch",
                                        "CeColl",    "CeSync",    "CeBatch",  "KernelPhase"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (type == 1ull << i) return names[i];
    }
    return "";
}

void drive_say(int call, uint64_t detail, char *text, size_t text_bytes)
{
    const char *name = event_name(detail);
    if (call == DRIVE_START || call == DRIVE_STOP || call == DRIVE_HANDLE) {
        snprintf(text, text_bytes, "%s %llu%s%s%s", call_name(call), (unsigned long long)detail,
                 *name ? " (" : "", name, *name ? ")" : "");
    } else if (call == DRIVE_STATE) {
        snprintf(text, text_bytes, "recordEventState %llu", (unsigned long long)detail);
    } else {
        snprintf(text, text_bytes, "%s", call_name(call));
    }
}

/* ---- life ---- */

static bool start(struct drive *drive, int rank, int nranks, uint64_t comm_id)
{
    struct check_case_state *state = drive->state;
    drive->member.rank = rank;
    drive->member.nranks = nranks;
    drive->member.comm_id = comm_id;
    drive->member.name = rank > 0 ? "check" : ""; /* most programs give none */
    drive->pid = getpid();
    note(drive, DRIVE_INIT, 0);
    struct tt_plugin_refusal refusal = {"it could not be loaded again"};
    const struct tt_profiler_config config = {.member = &drive->member,
                                              .nnodes = nranks,
                                              .refusal = &refusal,
                                              .unloads = true,
                                              .at_once = drive->at_once};
    tt_profiler_open(&config, &drive->profiler);
    if (!drive->profiler) {
        snprintf(state->note, sizeof(state->note), "not taken: %s", refusal.text);
        return false;
    }
    state->version = tt_profiler_version(drive->profiler);
    snprintf(state->name, sizeof(state->name), "%s", tt_profiler_name(drive->profiler));
    drive->mask = state->mask = tt_prof_mask(drive->profiler);
    return true;
}

bool drive_open(struct drive *drive, int rank, int nranks, uint64_t comm_id,
                struct check_case_state *state)
{
    *drive = (struct drive){.state = state};
    return start(drive, rank, nranks, comm_id);
}

bool drive_open_at_once(struct drive *drive, int rank, int nranks, uint64_t comm_id,
                        struct check_case_state *state)
{
    *drive = (struct drive){.state = state, .at_once = true};
    return start(drive, rank, nranks, comm_id);
}

static void say_wrong(struct drive *drive)
{
    char text[96];
    for (int k = 0; k < drive->nwrong; k++) {
        drive_say(drive->wrong[k].call, drive->wrong[k].detail, text, sizeof(text));
        if (drive->wrong[k].call == DRIVE_HANDLE) {
            check_breach(drive->state, "%s: the handle was changed after the call", text);
        } else {
            check_result(drive->state, text, drive->wrong[k].rc);
        }
    }
}

void drive_close(struct drive *drive)
{
    for (uint64_t k = 0; k < DRIVE_HANDLES; k++)
        look_at_handle(drive, k);
    note(drive, DRIVE_FINALIZE, 0);
    judge(drive, DRIVE_FINALIZE, 0, tt_profiler_close(drive->profiler));
    say_wrong(drive);
    drive->profiler = NULL;
    drive->state->calls += drive->calls;
    note(drive, 0, 0);
}

/* ---- the caller ---- */

static bool is_message(const char *func)
{
    return !strcmp(func, "Send") || !strcmp(func, "Recv");
}

static void api_call(struct drive *drive, struct drive_call *call, const char *func)
{
    ncclProfilerEventDescr_v7_t descr = {.parentObj = call->group_api};
    if (is_message(func)) {
        descr.type = ncclProfileP2pApi;
        descr.p2pApi.func = func;
        descr.p2pApi.count = 1000;
        descr.p2pApi.datatype = "ncclFloat32";
        descr.p2pApi.stream = call;
    } else {
        descr.type = ncclProfileCollApi;
        descr.collApi.func = func;
        descr.collApi.count = 1000;
        descr.collApi.datatype = "ncclFloat32";
        descr.collApi.stream = call;
    }
    call->api = drive_start(drive, &descr);
    stop(drive, call->api, descr.type);
}

static void operation(struct drive *drive, struct drive_call *call, const char *func)
{
    static const char buffers[2];
    ncclProfilerEventDescr_v7_t descr = {.parentObj = call->api, .rank = drive->member.rank};
    if (is_message(func)) {
        descr.type = ncclProfileP2p;
        descr.p2p.func = func;
        descr.p2p.buff = (void *)(uintptr_t)buffers;
        descr.p2p.datatype = "ncclFloat32";
        descr.p2p.count = 1000;
        descr.p2p.peer = (drive->member.rank + 1) % drive->member.nranks;
        descr.p2p.nChannels = 1;
        descr.p2p.parentGroup = call->group;
    } else {
        descr.type = ncclProfileColl;
        descr.coll.seqNumber = drive->number++;
        descr.coll.func = func;
        descr.coll.sendBuff = &buffers[0];
        descr.coll.recvBuff = (void *)(uintptr_t)&buffers[1];
        descr.coll.count = 1000;
        descr.coll.datatype = "ncclFloat32";
        descr.coll.nChannels = 2;
        descr.coll.nWarps = 16;
        descr.coll.algo = "RING";
        descr.coll.proto = "SIMPLE";
        descr.coll.parentGroup = call->group;
    }
    call->op_event = drive_start(drive, &descr);
    stop(drive, call->op_event, descr.type);
}

void drive_replay(struct drive *drive, struct drive_call *call)
{
    ncclProfilerEventDescr_v7_t group = {.type = ncclProfileGroup};
    call->group = drive_start(drive, &group);
    operation(drive, call, "AllReduce");
    stop(drive, call->group, ncclProfileGroup);
}

void drive_call_begin(struct drive *drive, struct drive_call *call, const char *func)
{
    ncclProfilerEventDescr_v7_t api = {.type = ncclProfileGroupApi};
    api.groupApi.groupDepth = 1;
    call->group_api = drive_start(drive, &api);
    set_state(drive, call->group_api, ncclProfilerGroupStartApiStop, 0);
    api_call(drive, call, func);
    set_state(drive, call->group_api, ncclProfilerGroupEndApiStart, 0);
    ncclProfilerEventDescr_v7_t launch = {.type = ncclProfileKernelLaunch,
                                          .parentObj = call->group_api};
    void *launched = drive_start(drive, &launch);
    stop(drive, launched, ncclProfileKernelLaunch);
    ncclProfilerEventDescr_v7_t group = {.type = ncclProfileGroup};
    call->group = drive_start(drive, &group);
    operation(drive, call, func);
    stop(drive, call->group, ncclProfileGroup);
}

void drive_call_end(struct drive *drive, struct drive_call *call)
{
    stop(drive, call->group_api, ncclProfileGroupApi);
}

/* ---- network and kernel ---- */

static void control(struct drive *drive, const ncclProfilerEventState_t *states, int nstates)
{
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileProxyCtrl};
    void *event = drive_start(drive, &descr);
    for (int k = 0; k < nstates; k++)
        set_state(drive, event, states[k], states[k] == ncclProfilerProxyCtrlAppendEnd);
    stop(drive, event, ncclProfileProxyCtrl);
}

void drive_control(struct drive *drive)
{
    static const ncclProfilerEventState_t idle[] = {ncclProfilerProxyCtrlIdle},
                                          active[] = {ncclProfilerProxyCtrlActive},
                                          sleeps[] = {ncclProfilerProxyCtrlSleep,
                                                      ncclProfilerProxyCtrlWakeup};
    control(drive, idle, 1);
    control(drive, sleeps, 2);
    control(drive, active, 1);
}

static void append(struct drive *drive)
{
    static const ncclProfilerEventState_t states[] = {ncclProfilerProxyCtrlAppend,
                                                      ncclProfilerProxyCtrlAppendEnd};
    control(drive, states, 2);
}

static void *start_op(struct drive *drive, void *parent, int channel, int nsteps, bool sending)
{
    ncclProfilerEventDescr_v7_t descr = {
        .type = ncclProfileProxyOp, .parentObj = parent, .rank = drive->member.rank};
    descr.proxyOp.pid = drive->pid;
    descr.proxyOp.channelId = (uint8_t)channel;
    descr.proxyOp.peer = (drive->member.rank + 1) % drive->member.nranks;
    descr.proxyOp.nSteps = nsteps;
    descr.proxyOp.chunkSize = 1 << 17;
    descr.proxyOp.isSend = sending;
    void *op = drive_start(drive, &descr);
    set_state(drive, op, ncclProfilerProxyOpInProgress_v4, 0);
    return op;
}

static void network_event(struct drive *drive, void *step)
{
    ncclProfilerNetSockDescr_v1_t data = {.type = ncclProfileSocket};
    data.sock.length = 1 << 17;
    ncclProfilerEventDescr_v7_t descr = {
        .type = ncclProfileNetPlugin, .parentObj = step, .rank = drive->member.rank};
    descr.netPlugin.id = NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER;
    descr.netPlugin.data = &data;
    void *event = step ? drive_start(drive, &descr) : NULL;
    stop(drive, event, ncclProfileNetPlugin);
}

static void play_step(struct drive *drive, void *op, int number, bool sending)
{
    ncclProfilerEventDescr_v7_t descr = {
        .type = ncclProfileProxyStep, .parentObj = op, .rank = drive->member.rank};
    descr.proxyStep.step = number;
    void *step = op ? drive_start(drive, &descr) : NULL;
    if (sending) {
        set_state(drive, step, ncclProfilerProxyStepSendGPUWait, 0);
        set_state(drive, step, ncclProfilerProxyStepSendPeerWait_v4, 0);
        set_state(drive, step, ncclProfilerProxyStepSendPeerWait_v4, 0); /* once more: no credit */
        network_event(drive, step);
        set_state(drive, step, ncclProfilerProxyStepSendWait, 1 << 17);
    } else {
        set_state(drive, step, ncclProfilerProxyStepRecvWait, 0);
        network_event(drive, step);
        set_state(drive, step, ncclProfilerProxyStepRecvFlushWait, 1 << 17);
        set_state(drive, step, ncclProfilerProxyStepRecvGPUWait, 1 << 17);
    }
    stop(drive, step, ncclProfileProxyStep);
}

static void play_channel(struct drive *drive, void *parent, int channel, int nsteps)
{
    append(drive);
    void *send = start_op(drive, parent, channel, nsteps, true);
    append(drive);
    void *recv = start_op(drive, parent, channel, nsteps, false);
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileKernelCh, .parentObj = parent};
    descr.kernelCh.channelId = (uint8_t)channel;
    descr.kernelCh.pTimer = 1000 + drive->calls;
    void *kernel = drive_start(drive, &descr);
    for (int k = 0; k < nsteps; k++) {
        play_step(drive, send, k, true);
        play_step(drive, recv, k, false);
    }
    stop(drive, send, ncclProfileProxyOp);
    stop(drive, recv, ncclProfileProxyOp);
    set_state(drive, kernel, ncclProfilerKernelChStop, 1000 + drive->calls);
    stop(drive, kernel, ncclProfileKernelCh);
}

void drive_network(struct drive *drive, const struct drive_call *call, int nsteps)
{
    void *send = start_op(drive, call->op_event, 0, nsteps, true);
    for (int k = 0; k < nsteps; k++)
        play_step(drive, send, k, true);
    stop(drive, send, ncclProfileProxyOp);
}

void drive_work(struct drive *drive, const struct drive_call *call, int first_channel,
                int nchannels, int nsteps)
{
    for (int k = 0; k < nchannels; k++)
        play_channel(drive, call->op_event, first_channel + k, nsteps);
}

void drive_allreduce(struct drive *drive)
{
    struct drive_call call = {.api = NULL};
    drive_call_begin(drive, &call, "AllReduce");
    drive_call_end(drive, &call);
    drive_work(drive, &call, 0, 2, 2);
}

void drive_copies(struct drive *drive, const struct drive_call *call)
{
    ncclProfilerEventDescr_v7_t descr = {
        .type = ncclProfileCeColl, .parentObj = call->api, .rank = drive->member.rank};
    descr.ceColl.seqNumber = descr.ceColl.ceSeqNum = 1;
    descr.ceColl.func = "AllGather";
    descr.ceColl.count = 1000;
    descr.ceColl.datatype = "ncclInt8";
    descr.ceColl.syncStrategy = "UC";
    void *copies = drive_start(drive, &descr);
    for (int k = 0; k < 3 && copies; k++) { /* ready, the copies, complete */
        descr =
            (ncclProfilerEventDescr_v7_t){.type = k == 1 ? ncclProfileCeBatch : ncclProfileCeSync,
                                          .parentObj = copies,
                                          .rank = drive->member.rank};
        if (k == 1) {
            descr.ceCollBatch.numOps = drive->member.nranks;
            descr.ceCollBatch.totalBytes = 1000;
        } else {
            descr.ceCollSync.isComplete = k == 2;
            descr.ceCollSync.nRanks = drive->member.nranks;
        }
        stop(drive, drive_start(drive, &descr), descr.type);
    }
    stop(drive, copies, ncclProfileCeColl);
}

void drive_phases(struct drive *drive, const struct drive_call *call)
{
    static const char *const names[] = {"initial_sync", "compute", "final_sync"};
    ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileKernelCh, .parentObj = call->op_event};
    descr.kernelCh.pTimer = 1000 + drive->calls;
    void *kernel = drive_start(drive, &descr);
    for (uint8_t k = 0; k < sizeof(names) / sizeof(names[0]) && kernel; k++) {
        descr = (ncclProfilerEventDescr_v7_t){.type = ncclProfileKernelPhase, .parentObj = kernel};
        descr.kernelPhase.phaseId = k;
        descr.kernelPhase.phaseName = names[k];
        descr.kernelPhase.pTimer = 1000 + drive->calls;
        void *phase = drive_start(drive, &descr);
        set_state(drive, phase, ncclProfilerKernelPhaseStop, 1000 + drive->calls);
        stop(drive, phase, ncclProfileKernelPhase);
    }
    set_state(drive, kernel, ncclProfilerKernelChStop, 1000 + drive->calls);
    stop(drive, kernel, ncclProfileKernelCh);
}
