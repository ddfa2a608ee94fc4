/* Profiler plugins, version 7 (NCCL 2.31): a library exports ncclProfiler_v7. As version 6 with
 * more at the end of some events, and KernelPhase: what version 6 has lies where it lay. */
#ifndef TUTTI_NCCL_PROFILER_V7_H_
#define TUTTI_NCCL_PROFILER_V7_H_

#include "profiler_events.h"

#include <stdbool.h>
#include <stddef.h>

typedef ncclProfilerEventState_t ncclProfilerEventState_v7_t;

typedef struct {
    uint64_t type;
    void *parentObj;
    int rank;
    union {
        ncclProfilerGroupApi_v5_t groupApi;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            int root;
            void *stream;
            bool graphCaptured;
            uint64_t userTag;
        } collApi;
        struct {
            const char *func;
            size_t count;
            const char *datatype;
            void *stream;
            bool graphCaptured;
            uint64_t userTag;
        } p2pApi;
        ncclProfilerKernelLaunch_v5_t kernelLaunch;
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
            void *parentGroup;
            const char *kernelVariant;
            bool isSymColl;
            uint64_t userTag;
        } coll;
        struct {
            const char *func;
            void *buff;
            const char *datatype;
            size_t count;
            int peer;
            uint8_t nChannels;
            void *parentGroup;
            uint64_t userTag;
        } p2p;
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
            uint64_t userTag;
        } ceColl;
        ncclProfilerCeCollSync_v6_t ceCollSync;
        ncclProfilerCeCollBatch_v6_t ceCollBatch;
        struct {
            uint8_t channelId;
            uint8_t phaseId;
            const char *phaseName;
            uint64_t pTimer;
        } kernelPhase;
    };
} ncclProfilerEventDescr_v7_t;

typedef ncclProfilerEventStateArgs_v5_t ncclProfilerEventStateArgs_v7_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, uint64_t commId, int *eActivationMask,
                         const char *commName, int nNodes, int nranks, int rank,
                         ncclDebugLogger_t logfn);
    ncclResult_t (*startEvent)(void *context, void **eHandle, ncclProfilerEventDescr_v7_t *eDescr);
    ncclResult_t (*stopEvent)(void *eHandle);
    ncclResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_v7_t eState,
                                     ncclProfilerEventStateArgs_v7_t *eStateArgs);
    ncclResult_t (*finalize)(void *context);
} ncclProfiler_v7_t;

#endif
