/* The tuner tables, version by version: what each is asked and how its answer is read. Versions 3
 * and later edit the table of times; 1 and 2 answer with one choice, which becomes the cheapest
 * entry. */
#include "plugin/tuner/tuner_abi.h"

#include "nccl/tuner_v1.h"
#include "nccl/tuner_v2.h"
#include "nccl/tuner_v3.h"
#include "nccl/tuner_v4.h"
#include "nccl/tuner_v5.h"
#include "plugin/plugin.h"

_Static_assert((int)TT_TUNER_ALGOS == NCCL_NUM_ALGORITHMS &&
                   (int)TT_TUNER_PROTOS == NCCL_NUM_PROTOCOLS,
               "the table is the one that plugins know");

/* The ABI says float **, and means the table itself. */
static float **as_abi(tt_tuner_row *table)
{
    return (float **)(void *)table;
}

/* ---- versions 1 and 2: one choice ---- */

static bool has_collnet(const tt_tuner_row *table)
{
    return table[NCCL_ALGO_COLLNET_CHAIN][NCCL_PROTO_SIMPLE] >= 0;
}

static bool has_nvls(const tt_tuner_row *table)
{
    return table[NCCL_ALGO_NVLS][NCCL_PROTO_SIMPLE] >= 0 ||
           table[NCCL_ALGO_NVLS_TREE][NCCL_PROTO_SIMPLE] >= 0;
}

static struct tt_tuner_choice no_choice(const tt_tuner_row *table)
{
    return (struct tt_tuner_choice){NCCL_ALGO_UNDEF, NCCL_PROTO_UNDEF, has_collnet(table),
                                    has_nvls(table)};
}

/* Make the answer the cheapest entry, when it is a possible one. */
static void prefer(const struct tt_tuner_instance *self, tt_tuner_row *table,
                   const struct tt_tuner_choice *answer)
{
    if (self->choice) *self->choice = *answer;
    bool known = answer->algo >= 0 && answer->algo < TT_TUNER_ALGOS && answer->proto >= 0 &&
                 answer->proto < TT_TUNER_PROTOS;
    if (known && table[answer->algo][answer->proto] >= 0) table[answer->algo][answer->proto] = 0;
}

/* ---- version 1: one state for all communicators of the process ---- */

static ncclResult_t v1_stop(const struct tt_tuner_instance *self)
{
    const ncclTuner_v1_t *plugin = self->object;
    const bool ends = self->single->alive && plugin->destroy;
    self->single->alive = false;
    return ends ? plugin->destroy() : ncclSuccess;
}

/* The plugin's state is that of this communicator's size from here on; the lock is held. */
static ncclResult_t v1_follow(const struct tt_tuner_instance *self)
{
    const ncclTuner_v1_t *plugin = self->object;
    struct tt_tuner_single *single = self->single;
    if (single->alive && single->nranks == self->nranks && single->nnodes == self->nnodes)
        return ncclSuccess;
    v1_stop(self);
    ncclResult_t rc = plugin->init(self->nranks, self->nnodes, tt_plugin_log);
    single->alive = rc == ncclSuccess;
    single->nranks = self->nranks;
    single->nnodes = self->nnodes;
    return rc;
}

static ncclResult_t v1_init(struct tt_tuner_instance *self, ncclNvlDomainInfo_v6_t *domains,
                            ncclTunerConstants_v6_t *constants)
{
    (void)domains, (void)constants;
    pthread_mutex_lock(&self->single->lock);
    ncclResult_t rc = v1_follow(self);
    if (!rc) self->single->users++;
    pthread_mutex_unlock(&self->single->lock);
    return rc;
}

static ncclResult_t v1_ask(const struct tt_tuner_instance *self, const struct tt_tuner_query *query,
                           tt_tuner_row *table, int *nchannels)
{
    const ncclTuner_v1_t *plugin = self->object;
    struct tt_tuner_choice answer = no_choice(table);
    pthread_mutex_lock(&self->single->lock);
    ncclResult_t rc = v1_follow(self);
    if (!rc) {
        rc = plugin->getCollInfo((ncclFunc_t)query->func, query->bytes, answer.collnet, answer.nvls,
                                 query->nops, &answer.algo, &answer.proto, nchannels);
    }
    pthread_mutex_unlock(&self->single->lock);
    if (!rc) prefer(self, table, &answer);
    return rc;
}

static ncclResult_t v1_finalize(const struct tt_tuner_instance *self)
{
    pthread_mutex_lock(&self->single->lock);
    ncclResult_t rc = --self->single->users == 0 ? v1_stop(self) : ncclSuccess;
    pthread_mutex_unlock(&self->single->lock);
    return rc;
}

/* ---- what versions share ---- */

/* A plugin's table is read through the type of a version that has the same field at the same place:
 * init as of 4 for 2 to 4, as of 6 for 5 and 6; getCollInfo as of 6 from 4 on, finalize as of 6
 * from 2 on (destroy, until 4). */
_Static_assert(offsetof(ncclTuner_v2_t, init) == offsetof(ncclTuner_v4_t, init) &&
                   offsetof(ncclTuner_v3_t, init) == offsetof(ncclTuner_v4_t, init) &&
                   offsetof(ncclTuner_v5_t, init) == offsetof(ncclTuner_v6_t, init),
               "as published");
_Static_assert(offsetof(ncclTuner_v4_t, getCollInfo) == offsetof(ncclTuner_v6_t, getCollInfo) &&
                   offsetof(ncclTuner_v5_t, getCollInfo) == offsetof(ncclTuner_v6_t, getCollInfo),
               "as published");
_Static_assert(offsetof(ncclTuner_v2_t, destroy) == offsetof(ncclTuner_v6_t, finalize) &&
                   offsetof(ncclTuner_v3_t, destroy) == offsetof(ncclTuner_v6_t, finalize) &&
                   offsetof(ncclTuner_v4_t, destroy) == offsetof(ncclTuner_v6_t, finalize) &&
                   offsetof(ncclTuner_v5_t, finalize) == offsetof(ncclTuner_v6_t, finalize),
               "as published");

static ncclResult_t v2_init(struct tt_tuner_instance *self, ncclNvlDomainInfo_v6_t *domains,
                            ncclTunerConstants_v6_t *constants)
{
    const ncclTuner_v4_t *plugin = self->object;
    (void)domains, (void)constants;
    return plugin->init(self->nranks, self->nnodes, tt_plugin_log, &self->ctx);
}

static ncclResult_t v5_init(struct tt_tuner_instance *self, ncclNvlDomainInfo_v6_t *domains,
                            ncclTunerConstants_v6_t *constants)
{
    const ncclTuner_v6_t *plugin = self->object;
    return plugin->init(&self->ctx, self->comm_id, self->nranks, self->nnodes, tt_plugin_log,
                        domains, constants);
}

static ncclResult_t v2_finalize(const struct tt_tuner_instance *self)
{
    const ncclTuner_v6_t *plugin = self->object;
    return plugin->finalize ? plugin->finalize(self->ctx) : ncclSuccess;
}

/* ---- versions 2 to 6: the question ---- */

static ncclResult_t v2_ask(const struct tt_tuner_instance *self, const struct tt_tuner_query *query,
                           tt_tuner_row *table, int *nchannels)
{
    const ncclTuner_v2_t *plugin = self->object;
    struct tt_tuner_choice answer = no_choice(table);
    ncclResult_t rc =
        plugin->getCollInfo(self->ctx, (ncclFunc_t)query->func, query->bytes, answer.collnet,
                            answer.nvls, query->nops, &answer.algo, &answer.proto, nchannels);
    if (!rc) prefer(self, table, &answer);
    return rc;
}

static ncclResult_t v3_ask(const struct tt_tuner_instance *self, const struct tt_tuner_query *query,
                           tt_tuner_row *table, int *nchannels)
{
    const ncclTuner_v3_t *plugin = self->object;
    return plugin->getCollInfo(self->ctx, (ncclFunc_t)query->func, query->bytes, query->nops,
                               as_abi(table), TT_TUNER_ALGOS, TT_TUNER_PROTOS, nchannels);
}

/* From here on it gets registered buffers. */
static ncclResult_t v4_ask(const struct tt_tuner_instance *self, const struct tt_tuner_query *query,
                           tt_tuner_row *table, int *nchannels)
{
    const ncclTuner_v6_t *plugin = self->object;
    return plugin->getCollInfo(self->ctx, (ncclFunc_t)query->func, query->bytes, query->nops,
                               as_abi(table), TT_TUNER_ALGOS, TT_TUNER_PROTOS, query->registered,
                               nchannels);
}

/* ---- chunks: from version 6 on ---- */

bool tt_tuner_has_chunk(const struct tt_tuner_instance *self)
{
    const ncclTuner_v6_t *plugin = self->object;
    return self->version >= 6 && plugin->getChunkSize;
}

ncclResult_t tt_tuner_ask_chunk(const struct tt_tuner_instance *self,
                                const struct tt_tuner_query *query,
                                const struct tt_tuner_layout *layout, size_t *chunk_bytes)
{
    const ncclTuner_v6_t *plugin = self->object;
    return plugin->getChunkSize(self->ctx, (ncclFunc_t)query->func, query->bytes, layout->algo,
                                layout->proto, layout->nchannels, chunk_bytes);
}

const struct tt_plugin_abi tt_tuner_symbols[TT_TUNER_VERSIONS] = {
    {6, "ncclTunerPlugin_v6"}, {5, "ncclTunerPlugin_v5"}, {4, "ncclTunerPlugin_v4"},
    {3, "ncclTunerPlugin_v3"}, {2, "ncclTunerPlugin_v2"}, {1, "ncclTunerPlugin_v1"},
};

static const struct tt_tuner_abi abis[] = {
    [1] = {v1_init, v1_ask, v1_finalize}, [2] = {v2_init, v2_ask, v2_finalize},
    [3] = {v2_init, v3_ask, v2_finalize}, [4] = {v2_init, v4_ask, v2_finalize},
    [5] = {v5_init, v4_ask, v2_finalize}, [6] = {v5_init, v4_ask, v2_finalize},
};

const struct tt_tuner_abi *tt_tuner_abi(int version)
{
    return &abis[version];
}
