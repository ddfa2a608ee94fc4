/* Tuner plugins, version 4 (NCCL 2.23 and 2.24): a library exports ncclTunerPlugin_v4. As version
 * 3, and told whether buffers are registered. */
#ifndef TUTTI_NCCL_TUNER_V4_H_
#define TUTTI_NCCL_TUNER_V4_H_

#include "common.h"

#include <stddef.h>

typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction,
                         void **context);
    ncclResult_t (*getCollInfo)(void *context, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                                float **collCostTable, int numAlgo, int numProto, int regBuff,
                                int *nChannels);
    ncclResult_t (*destroy)(void *context);
} ncclTuner_v4_t;

#endif
