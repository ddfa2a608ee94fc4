/* Tuner plugins, version 1 (NCCL 2.19 and 2.20): a library exports ncclTunerPlugin_v1. It has no
 * context: one state per process. */
#ifndef TUTTI_NCCL_TUNER_V1_H_
#define TUTTI_NCCL_TUNER_V1_H_

#include "common.h"

#include <stddef.h>

typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction);
    ncclResult_t (*getCollInfo)(ncclFunc_t collType, size_t nBytes, int collNetSupport,
                                int nvlsSupport, int numPipeOps, int *algorithm, int *protocol,
                                int *nChannels);
    ncclResult_t (*destroy)(void);
} ncclTuner_v1_t;

#endif
