/* Environment plugins, newest version: a library exports ncclEnvPlugin_v2. It answers for the
 * variables in place of the process's environment. */
#ifndef TUTTI_NCCL_ENV_H_
#define TUTTI_NCCL_ENV_H_

#include "env_v1.h"

#include "common.h"

#include <stdint.h>

#define NCCL_ENV_PLUGIN_SYMBOL ncclEnvPlugin_v2

typedef struct {
    const char *name;
    ncclResult_t (*init)(uint8_t ncclMajor, uint8_t ncclMinor, uint8_t ncclPatch,
                         const char *suffix, ncclDebugLogger_t logFunction);
    ncclResult_t (*finalize)(void);
    const char *(*getEnv)(const char *name); /* NULL: unset */
} ncclEnv_v2_t;
typedef ncclEnv_v2_t ncclEnv_t;

#endif
