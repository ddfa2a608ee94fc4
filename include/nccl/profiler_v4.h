/* Profiler plugins, version 4 (NCCL 2.27): a library exports ncclProfiler_v4. init is told the
 * communicator, events are not; kernels have times. */
#ifndef TUTTI_NCCL_PROFILER_V4_H_
#define TUTTI_NCCL_PROFILER_V4_H_

#include "profiler_events.h"

#include <stdbool.h>
#include <stddef.h>

typedef ncclProfilerEventState_t ncclProfilerEventState_v4_t;

typedef struct {
    uint8_t type;
    void *parentObj;
    int rank;
    union {
        struct {
            uint64_t seqNumber;
            const char *func;
            const void *sendBuff;
            void *recvBuff;
            size_t count;
            int root;
            const char *datatype;
            uint8_t nChannels;
            uint8_t nWarps;
            const char *algo;
            const char *proto;
        } coll;
        struct {
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t nChannels;
        } p2p;
        ncclProfilerProxyOp_v1_t proxyOp;
        ncclProfilerProxyStep_v1_t proxyStep;
        ncclProfilerKernelCh_v4_t kernelCh;
        ncclProfilerNetPluginEvent_v3_t netPlugin;
    };
} ncclProfilerEventDescr_v4_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, int *eActivationMask, const char *commName,
                         uint64_t commHash, int nNodes, int nranks, int rank,
                         ncclDebugLogger_t logfn);
    ncclResult_t (*startEvent)(void *context, void **eHandle, ncclProfilerEventDescr_v4_t *eDescr);
    ncclResult_t (*stopEvent)(void *eHandle);
    ncclResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_v4_t eState,
                                     ncclProfilerEventStateArgs_v4_t *eStateArgs);
    ncclResult_t (*finalize)(void *context);
} ncclProfiler_v4_t;

#endif
