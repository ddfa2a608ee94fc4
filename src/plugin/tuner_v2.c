/* Tuner version 2 as the newest: its three answers become the cheapest entry of the table. */
#include "nccl/tuner_v2.h"

#include "plugin/tuner_old.h"

#include <stdlib.h>

struct instance {
    const ncclTuner_v2_t *table;
    void *ctx;
};

typedef float row[NCCL_NUM_PROTOCOLS];

bool tt_tuner_has_collnet(float **opaque)
{
    const row *table = (const row *)(void *)opaque;
    return table[NCCL_ALGO_COLLNET_CHAIN][NCCL_PROTO_SIMPLE] >= 0;
}

bool tt_tuner_has_nvls(float **opaque)
{
    const row *table = (const row *)(void *)opaque;
    return table[NCCL_ALGO_NVLS][NCCL_PROTO_SIMPLE] >= 0 ||
           table[NCCL_ALGO_NVLS_TREE][NCCL_PROTO_SIMPLE] >= 0;
}

void tt_tuner_prefer(float **opaque, struct tt_tuner_answer answer)
{
    row *table = (row *)(void *)opaque;
    bool known = answer.algo >= 0 && answer.algo < NCCL_NUM_ALGORITHMS && answer.proto >= 0 &&
                 answer.proto < NCCL_NUM_PROTOCOLS;
    if (known && table[answer.algo][answer.proto] >= 0) table[answer.algo][answer.proto] = 0;
}

static ncclResult_t v2_init(void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes,
                            ncclDebugLogger_t log, ncclNvlDomainInfo_v6_t *domains,
                            ncclTunerConstants_v6_t *constants)
{
    const struct tt_tuner_origin *origin = *ctx;
    struct instance *self = calloc(1, sizeof(*self));
    (void)comm_id, (void)domains, (void)constants;
    *ctx = NULL;
    if (!self) return ncclSystemError;
    self->table = origin->object;
    ncclResult_t rc = self->table->init(nranks, nnodes, log, &self->ctx);
    if (rc) {
        free(self);
        return rc;
    }
    *ctx = self;
    return ncclSuccess;
}

static ncclResult_t v2_ask(void *ctx, ncclFunc_t func, size_t bytes, int nops, float **table,
                           int nalgos, int nprotos, int registered, int *nchannels)
{
    struct instance *self = ctx;
    struct tt_tuner_answer answer = {NCCL_ALGO_UNDEF, NCCL_PROTO_UNDEF};
    (void)nalgos, (void)nprotos, (void)registered;
    ncclResult_t rc = self->table->getCollInfo(self->ctx, func, bytes, tt_tuner_has_collnet(table),
                                               tt_tuner_has_nvls(table), nops, &answer.algo,
                                               &answer.proto, nchannels);
    if (!rc) tt_tuner_prefer(table, answer);
    return rc;
}

static ncclResult_t v2_finalize(void *ctx)
{
    struct instance *self = ctx;
    ncclResult_t rc = self->table->destroy ? self->table->destroy(self->ctx) : ncclSuccess;
    free(self);
    return rc;
}

const ncclTuner_v6_t tt_tuner_from_v2 = {
    .init = v2_init, .getCollInfo = v2_ask, .finalize = v2_finalize};
