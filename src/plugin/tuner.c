/* A tuner plugin's instance. What it does wrong is said once; the caller then uses its own numbers.
 */
#include "plugin/tuner.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "nccl/tuner.h"
#include "plugin/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tt_tuner {
    struct tt_library library;
    const ncclTuner_v6_t *table; /* borrowed from the library */
    void *ctx;
    ncclTunerConstants_v6_t constants; /* the plugin may keep the pointer */
    ncclNvlDomainInfo_v6_t domains;
    uint64_t asked, spent_nsec, most_nsec;
    bool told;
};

static const uint32_t tuner_sub = TT_LOG_INIT | TT_LOG_TUNING;

static bool start(struct tt_tuner *tuner, const struct tt_tuner_config *config)
{
    tuner->domains = (ncclNvlDomainInfo_v6_t){config->nnodes, config->ppn, config->ppn};
    ncclResult_t rc = tuner->table->init(&tuner->ctx, config->comm_id, (size_t)config->nranks,
                                         (size_t)config->nnodes, tt_plugin_log, &tuner->domains,
                                         &tuner->constants);
    if (rc)
        tt_info(tuner_sub, "TUNER/Plugin: %s: init returned %d; going on without it",
                tuner->table->name, (int)rc);
    return rc == ncclSuccess;
}

void tt_tuner_open(const struct tt_tuner_config *config, struct tt_tuner **tuner_out)
{
    struct tt_tuner *tuner = tt_calloc(1, sizeof(*tuner));
    *tuner_out = NULL;
    if (!tuner) return;
    const char *name = tt_param_str("NCCL_TUNER_PLUGIN");
    bool good = tt_library_open("TUNER", tuner_sub, "libnccl-tuner", name, &tuner->library);
    if (good) tuner->table = dlsym(tuner->library.handle, "ncclTunerPlugin_v6");
    if (good && !tuner->table)
        tt_info(tuner_sub, "TUNER/Plugin: %s has no ncclTunerPlugin_v6", tuner->library.path);
    if (tuner->table) {
        tt_info(tuner_sub, "TUNER/Plugin: Using %s (v6)", tuner->table->name);
        tt_info(tuner_sub, "Successfully loaded external tuner plugin %s", tuner->library.path);
    }
    if (tuner->table && start(tuner, config)) {
        *tuner_out = tuner;
        return;
    }
    tt_library_close(&tuner->library);
    free(tuner);
}

ncclResult_t tt_tuner_ask(struct tt_tuner *tuner, const struct tt_tuner_query *query,
                          float table[TT_TUNER_ALGOS][TT_TUNER_PROTOS], int *nchannels_out)
{
    uint64_t start_nsec = tt_now_nsec();
    *nchannels_out = 0;
    ncclResult_t rc = tuner->table->getCollInfo(
        tuner->ctx, (ncclFunc_t)query->func, query->bytes, query->nops, (float **)(void *)table,
        TT_TUNER_ALGOS, TT_TUNER_PROTOS, query->registered, nchannels_out);
    uint64_t took = tt_now_nsec() - start_nsec;
    tuner->asked++;
    tuner->spent_nsec += took;
    if (took > tuner->most_nsec) tuner->most_nsec = took;
    if (rc && !tuner->told) {
        tuner->told = true;
        tt_info(TT_LOG_TUNING,
                "TUNER/Plugin: %s: getCollInfo returned %d; the built-in choice is used",
                tuner->table->name, (int)rc);
    }
    return rc;
}

void tt_tuner_close(struct tt_tuner *tuner)
{
    if (!tuner) return;
    tt_info(TT_LOG_TUNING, "TUNER/Plugin: %s was asked %llu times, %.1f us in all, %.1f us at most",
            tuner->table->name, (unsigned long long)tuner->asked, (double)tuner->spent_nsec * 1e-3,
            (double)tuner->most_nsec * 1e-3);
    if (tuner->table->finalize) tuner->table->finalize(tuner->ctx);
    tt_library_close(&tuner->library);
    free(tuner);
}
