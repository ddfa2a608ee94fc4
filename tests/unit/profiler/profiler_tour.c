/* A host that tells our plugin of one event of each type, with every member, from two threads in
 * turn, through versions 7 and 1, ROUNDS times: the same in each run but for times and numbers of
 * processes and threads. usage: profiler-tour LIBRARY ROUNDS */
#include "nccl/profiler.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const ncclProfiler_v7_t *v7;
static const ncclProfiler_v1_t *v1;
static void *context7, *context1;
static long rounds;

static void *start(ncclProfilerEventDescr_v7_t *descr)
{
    void *handle = NULL;
    (void)v7->startEvent(context7, &handle, descr);
    return handle;
}

static void state(void *handle, ncclProfilerEventState_v7_t which, uint64_t value)
{
    ncclProfilerEventStateArgs_v7_t args;
    memset(&args, 0, sizeof(args));
    if (which == ncclProfilerProxyCtrlAppendEnd) {
        args.proxyCtrl.appendedProxyOps = (int)value;
    } else if (which == ncclProfilerKernelChStop) {
        args.kernelCh.pTimer = value;
    } else {
        args.proxyStep.transSize = value;
    }
    (void)v7->recordEventState(handle, which, &args);
}

static void calls(uint64_t round, void **coll, void **p2p)
{
    void *api = start(&(ncclProfilerEventDescr_v7_t){
        .type = ncclProfileGroupApi, .groupApi = {.graphCaptured = round & 1, .groupDepth = 2}});
    state(api, ncclProfilerGroupStartApiStop, 0);
    void *call = start(&(ncclProfilerEventDescr_v7_t){
        .type = ncclProfileCollApi,
        .parentObj = api,
        .collApi = {"AllReduce", 1000 + round, "ncclFloat32", 3, NULL, true, 77}});
    (void)v7->stopEvent(call);
    void *message =
        start(&(ncclProfilerEventDescr_v7_t){.type = ncclProfileP2pApi,
                                             .parentObj = api,
                                             .p2pApi = {"Send", 5, "ncclInt8", NULL, false, 0}});
    (void)v7->stopEvent(message);
    void *launch =
        start(&(ncclProfilerEventDescr_v7_t){.type = ncclProfileKernelLaunch, .parentObj = api});
    (void)v7->stopEvent(launch);
    void *group = start(&(ncclProfilerEventDescr_v7_t){.type = ncclProfileGroup});
    ncclProfilerEventDescr_v7_t about = {.type = ncclProfileColl, .parentObj = call};
    about.coll.seqNumber = round;
    about.coll.func = "AllReduce";
    about.coll.count = 1000 + round;
    about.coll.root = -1;
    about.coll.datatype = "ncclFloat32";
    about.coll.nChannels = 2;
    about.coll.nWarps = 16;
    about.coll.algo = "RING";
    about.coll.proto = round % 3 ? "SIMPLE" : "LL";
    about.coll.parentGroup = group;
    about.coll.userTag = round;
    *coll = start(&about);
    *p2p = start(&(ncclProfilerEventDescr_v7_t){
        .type = ncclProfileP2p,
        .parentObj = message,
        .p2p = {"Send", NULL, "ncclInt8", 5, 0, 4, group, 0xffffffffffffffffu}});
    (void)v7->stopEvent(*coll);
    (void)v7->stopEvent(*p2p);
    (void)v7->stopEvent(group);
    (void)v7->stopEvent(api);
}

static void work(uint64_t round, void *coll)
{
    void *kernel = start(&(ncclProfilerEventDescr_v7_t){
        .type = ncclProfileKernelCh, .parentObj = coll, .kernelCh = {63, UINT64_MAX - round}});
    void *phase = start(&(ncclProfilerEventDescr_v7_t){
        .type = ncclProfileKernelPhase, .parentObj = kernel, .kernelPhase = {63, 1, "compute", 9}});
    (void)v7->stopEvent(phase);
    state(kernel, ncclProfilerKernelChStop, 123456789012345u + round);
    (void)v7->stopEvent(kernel);
    void *copies = start(&(ncclProfilerEventDescr_v7_t){.type = ncclProfileCeColl,
                                                        .parentObj = coll,
                                                        .ceColl = {.seqNumber = round,
                                                                   .func = "AllGather",
                                                                   .count = 7,
                                                                   .root = 2,
                                                                   .datatype = "ncclInt64",
                                                                   .syncStrategy = "MC",
                                                                   .intraBatchSync = true,
                                                                   .numBatches = 3}});
    void *sync = start(&(ncclProfilerEventDescr_v7_t){
        .type = ncclProfileCeSync, .parentObj = copies, .ceCollSync = {true, 8}});
    (void)v7->stopEvent(sync);
    void *batch = start(&(ncclProfilerEventDescr_v7_t){
        .type = ncclProfileCeBatch, .parentObj = copies, .ceCollBatch = {6, 1 << 20, true}});
    (void)v7->stopEvent(batch);
    (void)v7->stopEvent(copies);
}

static void network(uint64_t round, void *coll, void *p2p)
{
    void *control = start(&(ncclProfilerEventDescr_v7_t){.type = ncclProfileProxyCtrl});
    state(control, ncclProfilerProxyCtrlAppendEnd, 2);
    (void)v7->stopEvent(control);
    for (int k = 0; k < 2; k++) {
        void *op = start(&(ncclProfilerEventDescr_v7_t){
            .type = ncclProfileProxyOp,
            .parentObj = k ? p2p : coll,
            .proxyOp = {getpid(), (uint8_t)(40 + k), 1, 4, 1 << 19, !k}});
        void *step = start(&(ncclProfilerEventDescr_v7_t){
            .type = ncclProfileProxyStep, .parentObj = op, .proxyStep = {(int)round}});
        state(step, ncclProfilerProxyStepSendGPUWait, 0);
        void *net = start(&(ncclProfilerEventDescr_v7_t){
            .type = ncclProfileNetPlugin, .parentObj = step, .netPlugin = {0x10001, NULL}});
        (void)v7->stopEvent(net);
        state(step, ncclProfilerProxyStepSendWait, 4096 + round);
        (void)v7->stopEvent(step);
        (void)v7->stopEvent(op);
    }
    ncclProfilerEventDescr_v1_t old = {.type = ncclProfileColl};
    void *handle = NULL;
    old.coll.commHash = 0xfeed;
    old.coll.seqNumber = round;
    old.coll.count = 3;
    (void)v1->startEvent(context1, &handle, &old);
    (void)v1->stopEvent(handle);
}

/* Two threads take turns, as a caller and a proxy do. */
static pthread_barrier_t turn;
static void *coll, *p2p;

static void *proxy(void *unused)
{
    for (long k = 0; k < rounds; k++) {
        pthread_barrier_wait(&turn);
        network((uint64_t)k, coll, p2p);
        pthread_barrier_wait(&turn);
    }
    return unused;
}

int main(int argc, char **argv)
{
    void *library = argc == 3 ? dlopen(argv[1], RTLD_NOW) : NULL;
    pthread_t thread;
    int mask = 0;
    if (!library) return 2;
    rounds = strtol(argv[2], NULL, 10);
    v7 = dlsym(library, "ncclProfiler_v7");
    v1 = dlsym(library, "ncclProfiler_v1");
    if (!v7 || v7->init(&context7, 0xc0ffee, &mask, "tour", 1, 1, 0, NULL)) return 1;
    if (!v1 || v1->init(&context1, &mask)) return 1;
    pthread_barrier_init(&turn, NULL, 2);
    if (pthread_create(&thread, NULL, proxy, NULL)) return 1;
    for (long k = 0; k < rounds; k++) {
        calls((uint64_t)k, &coll, &p2p);
        work((uint64_t)k, coll);
        pthread_barrier_wait(&turn);
        pthread_barrier_wait(&turn);
    }
    pthread_join(thread, NULL);
    (void)v1->finalize(context1);
    (void)v7->finalize(context7);
    return 0;
}
