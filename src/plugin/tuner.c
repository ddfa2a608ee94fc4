/* A tuner plugin's instance. What it does wrong is said once; the caller then uses its own numbers.
 */
#include "plugin/tuner.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "nccl/tuner.h"
#include "plugin/plugin.h"

#include <stdlib.h>

struct tt_tuner {
    const ncclTuner_v6_t *table; /* borrowed from the library */
    void *ctx;
    ncclTunerConstants_v6_t constants; /* the plugin may keep the pointer */
    ncclNvlDomainInfo_v6_t domains;
    uint64_t asked, spent_nsec, most_nsec;
    bool told;
};

static const struct tt_plugin_abi abis[] = {
    {6, "ncclTunerPlugin_v6", tt_plugin_newest},
};
static const struct tt_plugin_kind kind = {
    .label = "TUNER",
    .noun = "tuner",
    .loaded = "Using",
    .variable = "NCCL_TUNER_PLUGIN",
    .prefix = "libnccl-tuner",
    .sub = TT_LOG_INIT | TT_LOG_TUNING,
    .abis = abis,
    .nabis = TT_LEN(abis),
};
static struct tt_plugin_slot tuner_slot = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool start(struct tt_tuner *tuner, const struct tt_tuner_config *config)
{
    tuner->domains = (ncclNvlDomainInfo_v6_t){config->nnodes, config->ppn, config->ppn};
    ncclResult_t rc = tuner->table->init(&tuner->ctx, config->comm_id, (size_t)config->nranks,
                                         (size_t)config->nnodes, tt_plugin_log, &tuner->domains,
                                         &tuner->constants);
    if (rc) {
        tt_info(kind.sub, "TUNER/Plugin: %s: init returned %d; going on without it",
                tuner->table->name, (int)rc);
    }
    return rc == ncclSuccess;
}

void tt_tuner_open(const struct tt_tuner_config *config, struct tt_tuner **tuner_out)
{
    *tuner_out = NULL;
    const ncclTuner_v6_t *table = tt_plugin_acquire(&kind, &tuner_slot, config->net_library);
    if (!table) return;
    struct tt_tuner *tuner = tt_calloc(1, sizeof(*tuner));
    if (tuner) {
        tuner->table = table;
        if (start(tuner, config)) {
            *tuner_out = tuner;
            return;
        }
    }
    free(tuner);
    tt_plugin_release(&tuner_slot);
}

/* Count a call into the plugin and tell its first failure. */
static void account(struct tt_tuner *tuner, const char *function, uint64_t start_nsec,
                    ncclResult_t rc)
{
    uint64_t took = tt_now_nsec() - start_nsec;
    tuner->asked++;
    tuner->spent_nsec += took;
    if (took > tuner->most_nsec) tuner->most_nsec = took;
    if (!rc || tuner->told) return;
    tuner->told = true;
    tt_info(TT_LOG_TUNING, "TUNER/Plugin: %s: %s returned %d; the built-in choice is used",
            tuner->table->name, function, (int)rc);
}

ncclResult_t tt_tuner_ask(struct tt_tuner *tuner, const struct tt_tuner_query *query,
                          float table[TT_TUNER_ALGOS][TT_TUNER_PROTOS], int *nchannels_out)
{
    uint64_t start_nsec = tt_now_nsec();
    *nchannels_out = 0;
    if (!tuner->table->getCollInfo) return ncclInternalError;
    ncclResult_t rc = tuner->table->getCollInfo(
        tuner->ctx, (ncclFunc_t)query->func, query->bytes, query->nops, (float **)(void *)table,
        TT_TUNER_ALGOS, TT_TUNER_PROTOS, query->registered, nchannels_out);
    account(tuner, "getCollInfo", start_nsec, rc);
    return rc;
}

size_t tt_tuner_chunk(struct tt_tuner *tuner, const struct tt_tuner_query *query,
                      const struct tt_tuner_layout *layout, size_t chunk_bytes)
{
    size_t wish = chunk_bytes;
    if (!tuner->table->getChunkSize) return chunk_bytes;
    uint64_t start_nsec = tt_now_nsec();
    ncclResult_t rc =
        tuner->table->getChunkSize(tuner->ctx, (ncclFunc_t)query->func, query->bytes, layout->algo,
                                   layout->proto, layout->nchannels, &wish);
    account(tuner, "getChunkSize", start_nsec, rc);
    return rc || wish == 0 ? chunk_bytes : wish;
}

void tt_tuner_close(struct tt_tuner *tuner)
{
    if (!tuner) return;
    tt_info(TT_LOG_TUNING, "TUNER/Plugin: %s was asked %llu times, %.1f us in all, %.1f us at most",
            tuner->table->name, (unsigned long long)tuner->asked, (double)tuner->spent_nsec * 1e-3,
            (double)tuner->most_nsec * 1e-3);
    if (tuner->table->finalize) tuner->table->finalize(tuner->ctx);
    free(tuner);
    tt_plugin_release(&tuner_slot);
}
