/* Profiler plugins, what several versions share: types of events, their records, states, and what
 * network plugins say of events of their own. */
#ifndef TUTTI_NCCL_PROFILER_EVENTS_H_
#define TUTTI_NCCL_PROFILER_EVENTS_H_

#include "common.h"

#include <stdbool.h>
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

/* Records of events that several versions have, named after the first one. */
typedef struct {
    pid_t pid;
    uint8_t channelId;
    int peer;
    int nSteps;
    int chunkSize;
    int isSend;
} ncclProfilerProxyOp_v1_t;

typedef struct {
    int step;
} ncclProfilerProxyStep_v1_t;

typedef struct {
    const char *name;
    uint64_t commHash;
    const char *func;
    void *buff;
    const char *datatype;
    size_t count;
    int peer;
} ncclProfilerP2p_v2_t;

typedef struct {
    int64_t id;
    void *data;
} ncclProfilerNetPluginEvent_v3_t;

typedef struct {
    uint8_t channelId;
    uint64_t pTimer;
} ncclProfilerKernelCh_v4_t;

typedef struct {
    bool graphCaptured;
    int groupDepth;
} ncclProfilerGroupApi_v5_t;

typedef struct {
    const char *func;
    size_t count;
    const char *datatype;
    int root;
    void *stream;
    bool graphCaptured;
} ncclProfilerCollApi_v5_t;

typedef struct {
    const char *func;
    size_t count;
    const char *datatype;
    void *stream;
    bool graphCaptured;
} ncclProfilerP2pApi_v5_t;

typedef struct {
    void *stream;
} ncclProfilerKernelLaunch_v5_t;

typedef struct {
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
} ncclProfilerColl_v5_t;

typedef struct {
    const char *func;
    void *buff;
    const char *datatype;
    size_t count;
    int peer;
    uint8_t nChannels;
    void *parentGroup;
} ncclProfilerP2p_v5_t;

typedef struct {
    bool isComplete;
    int nRanks;
} ncclProfilerCeCollSync_v6_t;

typedef struct {
    int numOps;
    size_t totalBytes;
    bool useIntraSync;
} ncclProfilerCeCollBatch_v6_t;

/* What comes with a state: up to version 3, and from version 4 on. */
typedef union {
    struct {
        size_t transSize;
        int steps;
    } proxyOp;
    struct {
        int appendedProxyOps;
    } proxyCtrl;
} ncclProfilerEventStateArgs_v1_t;

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
} ncclProfilerEventStateArgs_v4_t;
typedef ncclProfilerEventStateArgs_v4_t ncclProfilerEventStateArgs_v5_t;

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
