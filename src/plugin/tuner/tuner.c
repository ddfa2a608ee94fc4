/* A tuner plugin's instance. What it does wrong is said once; the caller then uses its own numbers.
 * Versions of the table differ in tuner_abi.c alone. */
#include "plugin/tuner/tuner.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "nccl/tuner.h"
#include "plugin/plugin.h"
#include "plugin/process.h"
#include "plugin/tuner/tuner_abi.h"

#include <stdlib.h>
#include <string.h>

#define CONSTANT_MOST 1e12 /* microseconds, GB/s: fits a float, and so do its sums */

/* Durations by size: exact below 8 ns, then eight buckets for each power of two. */
enum { SPAN_BUCKETS = 320, SPAN_SUB_BITS = 3 };

struct tt_tuner {
    struct tt_tuner_instance plugin;
    const struct tt_tuner_abi *abi;    /* static */
    const char *name;                  /* borrowed from the library */
    ncclTunerConstants_v6_t constants; /* the plugin may keep the pointer */
    ncclTunerConstants_v6_t edited;    /* as init left them */
    bool has_edited;
    ncclNvlDomainInfo_v6_t domains;
    uint64_t asked, spent_nsec, most_nsec;
    uint32_t spans[SPAN_BUCKETS];
};

/* Each is reported once per process, for the first communicator that meets it. */
enum fault { FAULT_TABLE, FAULT_INIT, FAULT_ASK, FAULT_CHUNK, FAULT_REVIVED, FAULT_NOTHING_LEFT };

static bool is_news(enum fault fault)
{
    const uint32_t bit = UINT32_C(1) << fault;
    return !(atomic_fetch_or_explicit(&tt_plugins.tuner.warned, bit, memory_order_relaxed) & bit);
}

static const struct tt_plugin_kind kind = {
    .label = "TUNER",
    .noun = "tuner",
    .loaded = "Using",
    .variable = "NCCL_TUNER_PLUGIN",
    .prefix = "libnccl-tuner",
    .other_prefix = "librccl-tuner",
    .sub = TT_LOG_INIT | TT_LOG_TUNING,
    .abis = tt_tuner_symbols,
    .nabis = TT_TUNER_VERSIONS,
};

/* How the tables of all versions begin. */
struct beginning {
    const char *name;
    void (*init)(void);
    void (*ask)(void);
};
_Static_assert(offsetof(ncclTuner_v6_t, init) == offsetof(struct beginning, init) &&
                   offsetof(ncclTuner_v6_t, getCollInfo) == offsetof(struct beginning, ask),
               "as in the published tables");

/* The struct is nothing but doubles. What is no time or bandwidth is put back: a model with a
 * not-a-number in it could predict nothing. */
static void take_constants(struct tt_tuner *tuner, const ncclTunerConstants_v6_t *given)
{
    enum { FIGURES = sizeof(*given) / sizeof(double) };
    double before[FIGURES], after[FIGURES];
    size_t nbad = 0;
    memcpy(before, given, sizeof(before));
    memcpy(after, &tuner->constants, sizeof(after));
    for (size_t i = 0; i < FIGURES; i++) {
        bool bad = !(after[i] >= 0 && after[i] <= CONSTANT_MOST);
        if (bad) after[i] = before[i];
        nbad += bad;
        if (after[i] < before[i] || after[i] > before[i]) tuner->has_edited = true;
    }
    memcpy(&tuner->edited, after, sizeof(after));
    if (nbad == 0) return;
    tt_info(kind.sub,
            "TUNER/Plugin: %s: init left %zu constants that are no times or bandwidths; they stay "
            "as they were",
            tuner->name, nbad);
}

const ncclTunerConstants_v6_t *tt_tuner_constants(const struct tt_tuner *tuner)
{
    return tuner && tuner->has_edited ? &tuner->edited : NULL;
}

static bool start(struct tt_tuner *tuner, const struct tt_tuner_config *config)
{
    struct tt_plugin_found found = tt_plugins.tuner.slot.found; /* its user is this instance */
    const struct beginning *beginning = found.object;
    tuner->plugin = (struct tt_tuner_instance){
        .object = found.object,
        .version = found.version,
        .single = &tt_plugins.tuner.single,
        .comm_id = config->comm_id,
        .nranks = (size_t)config->nranks,
        .nnodes = (size_t)config->nnodes,
    };
    tuner->abi = tt_tuner_abi(found.version);
    tuner->name = beginning->name ? beginning->name : "without a name";
    tuner->domains =
        (ncclNvlDomainInfo_v6_t){config->nnodes, config->least_local, config->most_local};
    if (config->constants) tuner->constants = *config->constants;
    if (!beginning->init || !beginning->ask) {
        if (is_news(FAULT_TABLE)) {
            tt_plugin_refused(&kind, "%s has no init or getCollInfo; going on without it",
                              tuner->name);
        }
        return false;
    }
    ncclResult_t rc = tuner->abi->init(&tuner->plugin, &tuner->domains, &tuner->constants);
    if (rc && is_news(FAULT_INIT)) {
        tt_plugin_refused(&kind, "%s: init returned %d; going on without it", tuner->name, (int)rc);
    }
    if (!rc && config->constants) take_constants(tuner, config->constants);
    return rc == ncclSuccess;
}

void tt_tuner_open(const struct tt_tuner_config *config, struct tt_tuner **tuner_out)
{
    *tuner_out = NULL;
    if (!tt_plugin_acquire(&kind, &tt_plugins.tuner.slot, config->net_library)) return;
    struct tt_tuner *tuner = tt_calloc(1, sizeof(*tuner));
    if (tuner && start(tuner, config)) {
        *tuner_out = tuner;
        return;
    }
    free(tuner);
    tt_plugin_release(&tt_plugins.tuner.slot);
}

static size_t bucket_of(uint64_t nsec)
{
    if (nsec < 1U << SPAN_SUB_BITS) return (size_t)nsec;
    unsigned power = 63U - (unsigned)__builtin_clzll(nsec);
    size_t sub = (size_t)(nsec >> (power - SPAN_SUB_BITS)) & ((1U << SPAN_SUB_BITS) - 1);
    size_t bucket = ((size_t)(power - SPAN_SUB_BITS + 1) << SPAN_SUB_BITS) + sub;
    return tt_min_size(bucket, SPAN_BUCKETS - 1);
}

/* The least duration of a bucket. */
static uint64_t bucket_nsec(size_t bucket)
{
    size_t octave = bucket >> SPAN_SUB_BITS;
    uint64_t sub = bucket & ((1U << SPAN_SUB_BITS) - 1);
    if (octave == 0) return sub;
    return ((1U << SPAN_SUB_BITS) + sub) << (octave - 1);
}

static uint64_t median_nsec(const struct tt_tuner *tuner)
{
    uint64_t seen = 0;
    for (size_t b = 0; b < SPAN_BUCKETS; b++) {
        seen += tuner->spans[b];
        if (seen * 2 >= tuner->asked && seen) return bucket_nsec(b);
    }
    return 0;
}

void tt_tuner_stats(const struct tt_tuner *tuner, struct tt_tuner_stats *stats_out)
{
    *stats_out = (struct tt_tuner_stats){.name = ""};
    if (!tuner) return;
    *stats_out = (struct tt_tuner_stats){
        .name = tuner->name,
        .asked = tuner->asked,
        .p50_usec = (double)median_nsec(tuner) * 1e-3,
        .max_usec = (double)tuner->most_nsec * 1e-3,
        .sum_usec = (double)tuner->spent_nsec * 1e-3,
    };
}

/* Count a call into the plugin and report its first failure. */
static void account(struct tt_tuner *tuner, enum fault fault, uint64_t start_nsec, ncclResult_t rc)
{
    uint64_t took = tt_now_nsec() - start_nsec;
    tuner->asked++;
    tuner->spans[bucket_of(took)]++;
    tuner->spent_nsec += took;
    if (took > tuner->most_nsec) tuner->most_nsec = took;
    if (!rc || !is_news(fault)) return;
    tt_warn("TUNER/Plugin: %s: %s returned %d; the built-in choice is used", tuner->name,
            fault == FAULT_ASK ? "getCollInfo" : "getChunkSize", (int)rc);
}

/* As NCCL_ALGO and NCCL_PROTO spell them. */
static const char *const algo_names[TT_TUNER_ALGOS] = {
    "Tree", "Ring", "CollnetDirect", "CollnetChain", "NVLS", "NVLSTree", "PAT"};
static const char *const proto_names[TT_TUNER_PROTOS] = {"LL", "LL128", "Simple"};

/* Put back what was impossible. False: nothing is left of what was possible. */
static bool keep_possible(const struct tt_tuner *tuner, const tt_tuner_row *before,
                          tt_tuner_row *table)
{
    bool any = false, left = false;
    for (int i = 0; i < TT_TUNER_ALGOS * TT_TUNER_PROTOS; i++) {
        const int a = i / TT_TUNER_PROTOS, p = i % TT_TUNER_PROTOS;
        const bool was = before[a][p] >= 0, is = table[a][p] >= 0;
        any = any || was;
        left = left || (was && is);
        if (!was) table[a][p] = before[a][p];
        if (was || !is || !is_news(FAULT_REVIVED)) continue;
        tt_warn("TUNER/Plugin: %s: getCollInfo made %s with %s ([%d][%d] of collCostTable) "
                "possible, which was not (-1); it stays impossible",
                tuner->name, algo_names[a], proto_names[p], a, p);
    }
    return left || !any;
}

ncclResult_t tt_tuner_ask(struct tt_tuner *tuner, const struct tt_tuner_query *query,
                          float table[TT_TUNER_ALGOS][TT_TUNER_PROTOS], int *nchannels_out)
{
    tt_tuner_row before[TT_TUNER_ALGOS];
    memcpy(before, table, sizeof(before));
    uint64_t start_nsec = tt_now_nsec();
    *nchannels_out = 0;
    ncclResult_t rc = tuner->abi->ask(&tuner->plugin, query, table, nchannels_out);
    account(tuner, FAULT_ASK, start_nsec, rc);
    if (!rc && keep_possible(tuner, before, table)) return rc;
    memcpy(table, before, sizeof(before));
    *nchannels_out = 0;
    if (!rc && is_news(FAULT_NOTHING_LEFT)) {
        tt_warn("TUNER/Plugin: %s: getCollInfo left nothing of collCostTable to choose; the "
                "built-in choice is used",
                tuner->name);
    }
    return rc;
}

size_t tt_tuner_chunk(struct tt_tuner *tuner, const struct tt_tuner_query *query,
                      const struct tt_tuner_layout *layout, size_t chunk_bytes)
{
    size_t requested = chunk_bytes;
    if (!tt_tuner_has_chunk(&tuner->plugin)) return chunk_bytes;
    uint64_t start_nsec = tt_now_nsec();
    ncclResult_t rc = tt_tuner_ask_chunk(&tuner->plugin, query, layout, &requested);
    account(tuner, FAULT_CHUNK, start_nsec, rc);
    return rc || requested == 0 ? chunk_bytes : requested;
}

void tt_tuner_close(struct tt_tuner *tuner)
{
    struct tt_tuner_stats stats;
    if (!tuner) return;
    tt_tuner_stats(tuner, &stats);
    tt_info(TT_LOG_TUNING,
            "TUNER/Plugin: %s was asked %llu times, p50 %.2f us, max %.2f us, %.1f us in all",
            stats.name, (unsigned long long)stats.asked, stats.p50_usec, stats.max_usec,
            stats.sum_usec);
    tuner->abi->finalize(&tuner->plugin);
    free(tuner);
    tt_plugin_release(&tt_plugins.tuner.slot);
}
