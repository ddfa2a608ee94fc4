/* Tuner version 5 as the newest: it has no wish for chunks. */
#include "plugin/tuner_old.h"

#include <stdlib.h>

struct instance {
    const ncclTuner_v5_t *table;
    void *ctx;
};

static ncclResult_t v5_init(void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes,
                            ncclDebugLogger_t log, ncclNvlDomainInfo_v6_t *domains,
                            ncclTunerConstants_v6_t *constants)
{
    const struct tt_tuner_origin *origin = *ctx;
    struct instance *self = calloc(1, sizeof(*self));
    *ctx = NULL;
    if (!self) return ncclSystemError;
    self->table = origin->object;
    ncclResult_t rc =
        self->table->init(&self->ctx, comm_id, nranks, nnodes, log, domains, constants);
    if (rc) {
        free(self);
        return rc;
    }
    *ctx = self;
    return ncclSuccess;
}

static ncclResult_t v5_ask(void *ctx, ncclFunc_t func, size_t bytes, int nops, float **table,
                           int nalgos, int nprotos, int registered, int *nchannels)
{
    struct instance *self = ctx;
    return self->table->getCollInfo(self->ctx, func, bytes, nops, table, nalgos, nprotos,
                                    registered, nchannels);
}

static ncclResult_t v5_finalize(void *ctx)
{
    struct instance *self = ctx;
    ncclResult_t rc = self->table->finalize ? self->table->finalize(self->ctx) : ncclSuccess;
    free(self);
    return rc;
}

const ncclTuner_v6_t tt_tuner_from_v5 = {
    .init = v5_init, .getCollInfo = v5_ask, .finalize = v5_finalize};
