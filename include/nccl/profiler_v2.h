/* Profiler plugins, version 2 (NCCL 2.24): a library exports ncclProfiler_v2. As version 1, with
 * names as text. */
#ifndef TUTTI_NCCL_PROFILER_V2_H_
#define TUTTI_NCCL_PROFILER_V2_H_

#include "profiler_events.h"

#include <stdbool.h>
#include <stddef.h>

typedef ncclProfilerEventState_t ncclProfilerEventState_v2_t;

typedef struct {
    uint8_t type;
    void *parentObj;
    int rank;
    union {
        struct {
            const char *name;
            uint64_t commHash;
            uint64_t seqNumber;
            const char *func;
            const void *sendBuff;
            void *recvBuff;
            size_t count;
            int root;
            const char *datatype;
            size_t trafficBytes;
            uint8_t nMaxChannels;
            uint8_t nWarps;
            const char *algo;
            const char *proto;
        } coll;
        ncclProfilerP2p_v2_t p2p;
        ncclProfilerProxyOp_v1_t proxyOp;
        ncclProfilerProxyStep_v1_t proxyStep;
    };
} ncclProfilerEventDescr_v2_t;

typedef ncclProfilerEventStateArgs_v1_t ncclProfilerEventStateArgs_v2_t;

typedef struct {
    const char *name;
    ncclResult_t (*init)(void **context, int *eActivationMask);
    ncclResult_t (*startEvent)(void *context, void **eHandle, ncclProfilerEventDescr_v2_t *eDescr);
    ncclResult_t (*stopEvent)(void *eHandle);
    ncclResult_t (*recordEventState)(void *eHandle, ncclProfilerEventState_v2_t eState,
                                     ncclProfilerEventStateArgs_v2_t *eStateArgs);
    ncclResult_t (*finalize)(void *context);
} ncclProfiler_v2_t;

#endif
