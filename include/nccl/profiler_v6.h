/* Profiler plugins, version 6 (NCCL 2.29): a library exports ncclProfiler_v6. As version 5, with
 * events of copy-engine collectives. */
#ifndef TUTTI_NCCL_PROFILER_V6_H_
#define TUTTI_NCCL_PROFILER_V6_H_

#include "profiler_events.h"

#include <stdbool.h>
#include <stddef.h>

typedef ncclProfilerEventState_t ncclProfilerEventState_v6_t;

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
        struct {
            uint64_t seqNumber;
            const char *func;
            const void *sendBuff;
            void *recvBuff;
            size_t count;
            int root;
            const char *datatype;
            const char *syncStrategy;
            bool intraBatchSync;
            uint32_t batchSize;
            uint32_t numBatches;
            uint32_t ceSeqNum;
            void *stream;
        } ceColl;
        ncclProfilerCeCollSync_v6_t ceCollSync;
        ncclProfilerCeCollBatch_v6_t ceCollBatch;
    };
} ncclProfilerEventDescr_v6_t;

typedef ncclProfilerEventStateArgs_v5_t ncclProfilerEventStateArgs_v6_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, uint64_t commId, int *eActivationMask,
                         const char *commName, int nNodes, int nranks, int rank,
                         ncclDebugLogger_t logfn);
    ncclResult_t (*startEvent)(void *context, void **eHandle, ncclProfilerEventDescr_v6_t *eDescr);
    ncclResult_t (*stopEvent)(void *eHandle);
    ncclResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_v6_t eState,
                                     ncclProfilerEventStateArgs_v6_t *eStateArgs);
    ncclResult_t (*finalize)(void *context);
} ncclProfiler_v6_t;

#endif
