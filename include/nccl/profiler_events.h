/* Profiler plugins, what all versions share: types of events, states, and what network plugins say
 * of events of their own. */
#ifndef TUTTI_NCCL_PROFILER_EVENTS_H_
#define TUTTI_NCCL_PROFILER_EVENTS_H_

#include "common.h"

#include <stddef.h>

enum {
    ncclProfileGroup = 1,
    ncclProfileColl = 2,
    ncclProfileP2p = 4,
    ncclProfileProxyOp = 8,
    ncclProfileProxyStep = 16,
    ncclProfileProxyCtrl = 32,
    ncclProfileKernelCh = 64,
    ncclProfileNetPlugin = 128,
    ncclProfileGroupApi = 256,
    ncclProfileCollApi = 512,
    ncclProfileP2pApi = 1024,
    ncclProfileKernelLaunch = 2048,
    ncclProfileCeColl = 4096,
    ncclProfileCeSync = 8192,
    ncclProfileCeBatch = 16384,
    ncclProfileKernelPhase = 32768,
};

typedef enum {
    ncclProfilerProxyOpSendPosted = 0,
    ncclProfilerProxyOpSendRemFifoWait = 1,
    ncclProfilerProxyOpSendTransmitted = 2,
    ncclProfilerProxyOpSendDone = 3,
    ncclProfilerProxyOpRecvPosted = 4,
    ncclProfilerProxyOpRecvReceived = 5,
    ncclProfilerProxyOpRecvTransmitted = 6,
    ncclProfilerProxyOpRecvDone = 7,
    ncclProfilerProxyOpInProgress_v4 = 19,
    ncclProfilerProxyStepSendGPUWait = 8,
    ncclProfilerProxyStepSendPeerWait_v4 = 20,
    ncclProfilerProxyStepSendWait = 9,
    ncclProfilerProxyStepRecvWait = 10,
    ncclProfilerProxyStepRecvFlushWait = 11,
    ncclProfilerProxyStepRecvGPUWait = 12,
    ncclProfilerProxyCtrlIdle = 13,
    ncclProfilerProxyCtrlActive = 14,
    ncclProfilerProxyCtrlSleep = 15,
    ncclProfilerProxyCtrlWakeup = 16,
    ncclProfilerProxyCtrlAppend = 17,
    ncclProfilerProxyCtrlAppendEnd = 18,
    ncclProfilerNetPluginUpdate = 21,
    ncclProfilerKernelChStop = 22,
    ncclProfilerGroupStartApiStop = 23,
    ncclProfilerGroupEndApiStart = 24,
    ncclProfilerCeCollStart = 25,
    ncclProfilerCeCollComplete = 26,
    ncclProfilerCeSyncStart = 27,
    ncclProfilerCeSyncComplete = 28,
    ncclProfilerCeBatchStart = 29,
    ncclProfilerCeBatchComplete = 30,
    ncclProfilerKernelPhaseStop = 31,
} ncclProfilerEventState_t;

/* What comes with a state, from version 5 on. */
typedef union {
    struct {
        size_t transSize;
    } proxyStep;
    struct {
        int appendedProxyOps;
    } proxyCtrl;
    struct {
        void *data;
    } netPlugin;
    struct {
        uint64_t pTimer;
    } kernelCh;
} ncclProfilerEventStateArgs_v5_t;

typedef enum {
    NCCL_PROFILER_NET_TYPE_IB = 65536,
    NCCL_PROFILER_NET_TYPE_SOCK = 131072,
} ncclProfilerNetType;

enum {
    ncclProfileQp = 1,
};

enum {
    ncclProfileSocket = 1,
};

#define NCCL_PROFILER_NET_VER_BITS 16
#define NCCL_PROFILER_NET_VER_MASK 65535
#define NCCL_PROFILER_NET_TYPE_MASK 4294901760
#define NCCL_PROFILER_NET_IB_VER 1
#define NCCL_PROFILER_NET_SOCKET_VER 1

/* What a network plugin says of one event (extData of the callback), by kind of network. */
typedef struct {
    uint8_t type;
    union {
        struct {
            int device;
            uint64_t wr_id;
            int opcode;
            int qpNum;
            size_t length;
        } qp;
    };
} ncclProfilerNetIbDescr_v1_t;

typedef struct {
    uint8_t type;
    union {
        struct {
            int fd;
            int op;
            size_t length;
        } sock;
    };
} ncclProfilerNetSockDescr_v1_t;

#endif
