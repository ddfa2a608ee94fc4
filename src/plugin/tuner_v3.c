/* Tuner version 3 as the newest: it is not told whether buffers are registered. */
#include "nccl/tuner_v3.h"

#include "plugin/tuner_old.h"

#include <stdlib.h>

struct instance {
    const ncclTuner_v3_t *table;
    void *ctx;
};

static ncclResult_t v3_init(void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes,
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

static ncclResult_t v3_ask(void *ctx, ncclFunc_t func, size_t bytes, int nops, float **table,
                           int nalgos, int nprotos, int registered, int *nchannels)
{
    struct instance *self = ctx;
    (void)registered;
    return self->table->getCollInfo(self->ctx, func, bytes, nops, table, nalgos, nprotos,
                                    nchannels);
}

static ncclResult_t v3_finalize(void *ctx)
{
    struct instance *self = ctx;
    ncclResult_t rc = self->table->destroy ? self->table->destroy(self->ctx) : ncclSuccess;
    free(self);
    return rc;
}

const ncclTuner_v6_t tt_tuner_from_v3 = {
    .init = v3_init, .getCollInfo = v3_ask, .finalize = v3_finalize};
