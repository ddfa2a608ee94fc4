/* An environment plugin to begin from, version 2: variables come from the lines NAME=VALUE of the
 * file EXAMPLE_ENV_FILE; what is not in there comes from the environment.
 *   make libnccl-env-example.so NCCL_HOME="$(tutti env --home)" CUDA_HOME="$(tutti env --home)"
 *   tutti plugin check ./libnccl-env-example.so
 *   NCCL_ENV_PLUGIN=./libnccl-env-example.so EXAMPLE_ENV_FILE=settings tutti env --set */
#include "nccl/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINES = 256, BYTES = 1024 };

static char lines[LINES][BYTES]; /* "NAME\0VALUE": written by init alone, so no lock is needed */
static int nlines;

static ncclResult_t file_init(uint8_t major, uint8_t minor, uint8_t patch, const char *suffix,
                              ncclDebugLogger_t log)
{
    const char *path = getenv("EXAMPLE_ENV_FILE");
    FILE *file = path ? fopen(path, "r") : NULL;
    nlines = 0;
    while (file && nlines < LINES && fgets(lines[nlines], BYTES, file)) {
        char *equals = strchr(lines[nlines], '=');
        if (!equals || lines[nlines][0] == '#') continue;
        *equals = '\0';
        equals[1 + strcspn(equals + 1, "\r\n")] = '\0';
        nlines++;
    }
    if (file) fclose(file);
    log(NCCL_LOG_INFO, NCCL_ENV, __FILE__, __LINE__, "Example: %d variables for NCCL %d.%d.%d%s",
        nlines, major, minor, patch, suffix);
    return ncclSuccess; /* anything else: the environment is asked instead */
}

/* Final: NULL means unset. The text stays as it is until finalize. */
static const char *file_get(const char *name)
{
    for (int k = 0; k < nlines; k++) {
        if (!strcmp(lines[k], name)) return lines[k] + strlen(lines[k]) + 1;
    }
    return getenv(name);
}

static ncclResult_t file_end(void)
{
    nlines = 0;
    return ncclSuccess;
}

__attribute__((visibility("default"))) const ncclEnv_v2_t ncclEnvPlugin_v2 = {
    .name = "Example", .init = file_init, .finalize = file_end, .getEnv = file_get};
