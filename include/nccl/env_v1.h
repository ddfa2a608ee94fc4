/* Environment plugins, version 1 (NCCL 2.28): a library exports ncclEnvPlugin_v1. */
#ifndef TUTTI_NCCL_ENV_V1_H_
#define TUTTI_NCCL_ENV_V1_H_

#include "common.h"

#include <stdint.h>

typedef struct {
    const char *name;
    ncclResult_t (*init)(uint8_t ncclMajor, uint8_t ncclMinor, uint8_t ncclPatch,
                         const char *suffix);
    ncclResult_t (*finalize)(void);
    const char *(*getEnv)(const char *name);
} ncclEnv_v1_t;

#endif
