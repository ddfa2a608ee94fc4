/* Tuner plugins, version 2 (NCCL 2.21, RCCL): a library exports ncclTunerPlugin_v2. Choices are
 * three numbers. */
#ifndef TUTTI_NCCL_TUNER_V2_H_
#define TUTTI_NCCL_TUNER_V2_H_

#include "common.h"

#include <stddef.h>

typedef struct {
    const char *name;
    ncclResult_t (*init)(size_t nRanks, size_t nNodes, ncclDebugLogger_t logFunction,
                         void **context);
    ncclResult_t (*getCollInfo)(void *context, ncclFunc_t collType, size_t nBytes,
                                int collNetSupport, int nvlsSupport, int numPipeOps, int *algorithm,
                                int *protocol, int *nChannels);
    ncclResult_t (*destroy)(void *context);
} ncclTuner_v2_t;

#endif
