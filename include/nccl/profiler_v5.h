/* Profiler plugins, version 5 (NCCL 2.28): a library exports ncclProfiler_v5. Events of calls
 * (GroupApi, CollApi, P2pApi) and of launches; types have 64 bits. */
#ifndef TUTTI_NCCL_PROFILER_V5_H_
#define TUTTI_NCCL_PROFILER_V5_H_

#include "profiler_events.h"

#include <stdbool.h>
#include <stddef.h>

typedef ncclProfilerEventState_t ncclProfilerEventState_v5_t;

typedef struct {
    uint64_t type;
    void *parentObj;
    int rank;
    union {
        ncclProfilerGroupApi_v5_t groupApi;
        ncclProfilerCollApi_v5_t collApi;
        ncclProfilerP2pApi_v5_t p2pApi;
        ncclProfilerKernelLaunch_v5_t kernelLaunch;
        ncclProfilerColl_v5_t coll;
        ncclProfilerP2p_v5_t p2p;
        ncclProfilerProxyOp_v1_t proxyOp;
        ncclProfilerProxyStep_v1_t proxyStep;
        ncclProfilerKernelCh_v4_t kernelCh;
        ncclProfilerNetPluginEvent_v3_t netPlugin;
    };
} ncclProfilerEventDescr_v5_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, uint64_t commId, int *eActivationMask,
                         const char *commName, int nNodes, int nranks, int rank,
                         ncclDebugLogger_t logfn);
    ncclResult_t (*startEvent)(void *context, void **eHandle, ncclProfilerEventDescr_v5_t *eDescr);
    ncclResult_t (*stopEvent)(void *eHandle);
    ncclResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_v5_t eState,
                                     ncclProfilerEventStateArgs_v5_t *eStateArgs);
    ncclResult_t (*finalize)(void *context);
} ncclProfiler_v5_t;

#endif
