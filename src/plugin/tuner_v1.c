/* Tuner version 1 as the newest: without a context, so there is one state for all communicators and
 * its calls are serial. */
#include "nccl/tuner_v1.h"

#include "plugin/tuner_old.h"

#include <stdlib.h>

struct instance {
    const ncclTuner_v1_t *table;
    struct tt_tuner_lone *lone;
    size_t nranks, nnodes;
    ncclDebugLogger_t log;
};

static void stop(const struct instance *self)
{
    if (self->lone->alive && self->table->destroy) self->table->destroy();
    self->lone->alive = false;
}

/* The plugin's state is that of this communicator's size from here on; the lock is held. */
static ncclResult_t follow(const struct instance *self)
{
    struct tt_tuner_lone *lone = self->lone;
    if (lone->alive && lone->nranks == self->nranks && lone->nnodes == self->nnodes)
        return ncclSuccess;
    stop(self);
    ncclResult_t rc = self->table->init(self->nranks, self->nnodes, self->log);
    lone->alive = rc == ncclSuccess;
    lone->nranks = self->nranks;
    lone->nnodes = self->nnodes;
    return rc;
}

static ncclResult_t v1_init(void **ctx, uint64_t comm_id, size_t nranks, size_t nnodes,
                            ncclDebugLogger_t log, ncclNvlDomainInfo_v6_t *domains,
                            ncclTunerConstants_v6_t *constants)
{
    const struct tt_tuner_origin *origin = *ctx;
    struct instance *self = calloc(1, sizeof(*self));
    (void)comm_id, (void)domains, (void)constants;
    *ctx = NULL;
    if (!self) return ncclSystemError;
    *self = (struct instance){origin->object, origin->lone, nranks, nnodes, log};
    pthread_mutex_lock(&self->lone->lock);
    ncclResult_t rc = follow(self);
    if (!rc) self->lone->users++;
    pthread_mutex_unlock(&self->lone->lock);
    if (rc) {
        free(self);
        return rc;
    }
    *ctx = self;
    return ncclSuccess;
}

static ncclResult_t v1_ask(void *ctx, ncclFunc_t func, size_t bytes, int nops, float **table,
                           int nalgos, int nprotos, int registered, int *nchannels)
{
    struct instance *self = ctx;
    struct tt_tuner_answer answer = {NCCL_ALGO_UNDEF, NCCL_PROTO_UNDEF};
    (void)nalgos, (void)nprotos, (void)registered;
    pthread_mutex_lock(&self->lone->lock);
    ncclResult_t rc = follow(self);
    if (!rc) {
        rc = self->table->getCollInfo(func, bytes, tt_tuner_has_collnet(table),
                                      tt_tuner_has_nvls(table), nops, &answer.algo, &answer.proto,
                                      nchannels);
    }
    pthread_mutex_unlock(&self->lone->lock);
    if (!rc) tt_tuner_prefer(table, answer);
    return rc;
}

static ncclResult_t v1_finalize(void *ctx)
{
    struct instance *self = ctx;
    pthread_mutex_lock(&self->lone->lock);
    if (--self->lone->users == 0) stop(self);
    pthread_mutex_unlock(&self->lone->lock);
    free(self);
    return ncclSuccess;
}

const ncclTuner_v6_t tt_tuner_from_v1 = {
    .init = v1_init, .getCollInfo = v1_ask, .finalize = v1_finalize};
