/* Tuner plugins, version 3 (NCCL 2.22): a library exports ncclTunerPlugin_v3. It edits a table of
 * predicted times: float[numAlgo][numProto], whatever the pointer's type says. */
#ifndef TUTTI_NCCL_TUNER_V3_H_
#define TUTTI_NCCL_TUNER_V3_H_

#include "common.h"

#include <stddef.h>

typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction,
                         void **context);
    ncclResult_t (*getCollInfo)(void *context, ncclFunc_t collType, size_t nBytes, int numPipeOps,
                                float **collCostTable, int numAlgo, int numProto, int *nChannels);
    ncclResult_t (*destroy)(void *context);
} ncclTuner_v3_t;

#endif
