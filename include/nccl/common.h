/* What all plugin kinds share: log levels, subsystems, functions, the two callbacks. */
#ifndef TUTTI_NCCL_COMMON_H_
#define TUTTI_NCCL_COMMON_H_

#include "err.h"
#include "types.h"

#include <stdint.h>
#include <sys/types.h>

typedef enum {
    NCCL_LOG_NONE = 0,
    NCCL_LOG_VERSION = 1,
    NCCL_LOG_WARN = 2,
    NCCL_LOG_INFO = 3,
    NCCL_LOG_ABORT = 4,
    NCCL_LOG_TRACE = 5,
    NCCL_LOG_ATTN = 6, /* between WARN and INFO */
} ncclDebugLogLevel;

typedef enum {
    NCCL_INIT = 1,
    NCCL_COLL = 2,
    NCCL_P2P = 4,
    NCCL_SHM = 8,
    NCCL_NET = 16,
    NCCL_GRAPH = 32,
    NCCL_TUNING = 64,
    NCCL_ENV = 128,
    NCCL_ALLOC = 256,
    NCCL_CALL = 512,
    NCCL_PROXY = 1024,
    NCCL_NVLS = 2048,
    NCCL_BOOTSTRAP = 4096,
    NCCL_REG = 8192,
    NCCL_PROFILE = 16384,
    NCCL_RAS = 32768,
    NCCL_DESTROY = 65536,
    NCCL_ALLOC_HOST = 131072,
    NCCL_ALL = -1,
} ncclDebugLogSubSys;

typedef enum {
    ncclFuncBroadcast = 0,
    ncclFuncReduce = 1,
    ncclFuncAllGather = 2,
    ncclFuncReduceScatter = 3,
    ncclFuncAllReduce = 4,
    ncclFuncSendRecv = 5,
    ncclFuncSend = 6,
    ncclFuncRecv = 7,
    ncclFuncAlltoAll = 8,
    ncclFuncScatter = 9,
    ncclFuncGather = 10,
    ncclFuncAllGatherV = 11,
    ncclFuncPutSignal = 12,
    ncclFuncSignal = 13,
    ncclFuncWaitSignal = 14,
    ncclNumFuncs = 15,
} ncclFunc_t;

enum {
    ncclProfilerNetEventStart = 0,
    ncclProfilerNetEventStop = 1,
    ncclProfilerNetEventUpdate = 2,
    ncclProfilerNetEventUpdateAndStop = 3,
};

#define NCCL_NUM_FUNCTIONS 5

/* Print one line; file is a function name when level is TRACE. */
typedef void (*ncclDebugLogger_t)(ncclDebugLogLevel level, unsigned long flags, const char *file,
                                  int line, const char *fmt, ...);
/* A net plugin reports events of its own under the step that pHandle names. */
typedef ncclResult_t (*ncclProfilerCallback_t)(void **eHandle, int type, void *pHandle,
                                               int64_t pluginId, void *extData);

#endif
