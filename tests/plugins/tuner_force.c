/* A tuner plugin for tests. TUNER_FORCE "algorithm,protocol[,channels[,chunk]]" (numbers) makes
 * that entry the cheapest; TUNER_FAIL=init, ask or chunk makes that function fail; every question
 * is one line in the file TUNER_LOG. */
#include "nccl/tuner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int fails(const char *what)
{
    const char *text = getenv("TUNER_FAIL");
    return text && !strcmp(text, what);
}

static void note(const char *line)
{
    const char *path = getenv("TUNER_LOG");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file) return;
    fputs(line, file);
    fclose(file);
}

struct choice {
    int algo, proto, nchannels;
    unsigned long chunk;
};

static struct choice read_choice(void)
{
    struct choice choice = {-1, -1, 0, 0};
    const char *text = getenv("TUNER_FORCE");
    if (text)
        sscanf(text, "%d,%d,%d,%lu", &choice.algo, &choice.proto, &choice.nchannels, &choice.chunk);
    return choice;
}

static ncclResult_t force_init(void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes,
                               ncclDebugLogger_t log, ncclNvlDomainInfo_v6_t *domains,
                               ncclTunerConstants_v6_t *constants)
{
    char line[128];
    if (fails("init") || !domains || !constants) return ncclInternalError;
    snprintf(line, sizeof(line), "init %lx %zu %zu\n", (unsigned long)comm_id, nranks, nnodes);
    note(line);
    log(NCCL_LOG_INFO, NCCL_TUNING, __FILE__, __LINE__, "TestTuner: %zu ranks", nranks);
    *ctx = calloc(1, 1);
    return ncclSuccess;
}

static ncclResult_t force_ask(void *ctx, ncclFunc_t func, size_t bytes, int nops, float **opaque,
                              int nalgos, int nprotos, int registered, int *nchannels)
{
    float(*table)[NCCL_NUM_PROTOCOLS] = (float(*)[NCCL_NUM_PROTOCOLS])(void *)opaque;
    struct choice choice = read_choice();
    char line[128];
    if (!ctx || nalgos != NCCL_NUM_ALGORITHMS || nprotos != NCCL_NUM_PROTOCOLS)
        return ncclInternalError;
    snprintf(line, sizeof(line), "ask %d %zu %d %d\n", (int)func, bytes, nops, registered);
    note(line);
    if (fails("ask")) {
        memset(table, 0, sizeof(float) * NCCL_NUM_ALGORITHMS * NCCL_NUM_PROTOCOLS);
        return ncclSystemError;
    }
    if (choice.algo >= 0 && choice.algo < nalgos && choice.proto >= 0 && choice.proto < nprotos)
        table[choice.algo][choice.proto] = 0.0f;
    *nchannels = choice.nchannels;
    return ncclSuccess;
}

static ncclResult_t force_chunk(void *ctx, ncclFunc_t func, size_t bytes, int algo, int proto,
                                int nchannels, size_t *chunk)
{
    struct choice choice = read_choice();
    (void)ctx, (void)func, (void)bytes, (void)algo, (void)proto, (void)nchannels;
    if (fails("chunk")) return ncclSystemError;
    if (choice.chunk) *chunk = choice.chunk;
    return ncclSuccess;
}

static ncclResult_t force_finalize(void *ctx)
{
    note("finalize\n");
    free(ctx);
    return ncclSuccess;
}

__attribute__((visibility("default"))) const ncclTuner_v6_t ncclTunerPlugin_v6 = {
    .name = "TestTuner",
    .init = force_init,
    .getCollInfo = force_ask,
    .finalize = force_finalize,
    .getChunkSize = force_chunk,
};
