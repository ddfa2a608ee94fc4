/* A tuner plugin to begin from, version 6: one rule, from which on a ring with the Simple protocol
 * is preferred, as EXAMPLE_TUNER_RING_FROM (bytes, 1 MiB) says.
 *   make libnccl-tuner-example.so NCCL_HOME="$(tutti env --home)" CUDA_HOME="$(tutti env --home)"
 *   tutti plugin check ./libnccl-tuner-example.so
 *   NCCL_TUNER_PLUGIN=./libnccl-tuner-example.so tutti perf --ranks 2 allreduce */
#include "nccl/tuner.h"

#include <stdlib.h>

struct rule { /* one communicator's: instances are asked by several threads at the same time */
    size_t ring_from_bytes;
};

/* All ranks must come to the same answers: read nothing here that may differ between them. */
static ncclResult_t rule_init(void **context, uint64_t comm_id, size_t nranks, size_t nnodes,
                              ncclDebugLogger_t log, ncclNvlDomainInfo_v6_t *domains,
                              ncclTunerConstants_v6_t *constants)
{
    const char *text = getenv("EXAMPLE_TUNER_RING_FROM");
    struct rule *rule = malloc(sizeof(*rule));
    (void)comm_id, (void)domains, (void)constants; /* they may be edited */
    if (!rule) return ncclSystemError;
    rule->ring_from_bytes = text ? strtoull(text, NULL, 10) : 1 << 20;
    log(NCCL_LOG_INFO, NCCL_TUNING, __FILE__, __LINE__,
        "Example: rings from %zu bytes on, %zu ranks on %zu nodes", rule->ring_from_bytes, nranks,
        nnodes);
    *context = rule;
    return ncclSuccess;
}

/* The type says float **, and means the table itself: numAlgo rows of numProto predicted
 * microseconds. -1: impossible, leave it; 0: take this one. */
static ncclResult_t rule_ask(void *context, ncclFunc_t function, size_t bytes, int operations,
                             float **table, int algorithms, int protocols, int registered,
                             int *channels)
{
    const struct rule *rule = context;
    float *ring = (float *)(void *)table + NCCL_ALGO_RING * protocols + NCCL_PROTO_SIMPLE;
    (void)function, (void)operations, (void)registered, (void)algorithms;
    (void)channels; /* 0, which means that the library decides */
    if (bytes >= rule->ring_from_bytes && *ring >= 0) *ring = 0;
    return ncclSuccess;
}

static ncclResult_t rule_end(void *context)
{
    free(context);
    return ncclSuccess;
}

/* getChunkSize comes last and may be missing. */
__attribute__((visibility("default"))) const ncclTuner_v6_t ncclTunerPlugin_v6 = {
    .name = "Example", .init = rule_init, .getCollInfo = rule_ask, .finalize = rule_end};
