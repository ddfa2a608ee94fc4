/* The profiler plugin: one library and one activation mask per process, one context per
 * communicator. What the plugin returns is ignored, as NCCL does, but for init. */
#include "plugin/profiler/profiler.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/param.h"
#include "plugin/plugin.h"
#include "plugin/process.h"
#include "plugin/profiler/profiler_abi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct tt_plugin_abi abis[] = {
    {7, "ncclProfiler_v7"}, {6, "ncclProfiler_v6"}, {5, "ncclProfiler_v5"}, {4, "ncclProfiler_v4"},
    {3, "ncclProfiler_v3"}, {2, "ncclProfiler_v2"}, {1, "ncclProfiler_v1"},
};
static const struct tt_plugin_kind kind = {
    .label = "PROFILER",
    .noun = "profiler",
    .loaded = "Loaded",
    .variable = "NCCL_PROFILER_PLUGIN",
    .prefix = "libnccl-profiler",
    .sub = TT_LOG_INIT,
    .stays = true, /* NVIDIA's inspector does not wait for its thread in finalize */
    .abis = abis,
    .nabis = TT_LEN(abis),
};

static void report_mask(void)
{
    char names[256];
    int mask = __atomic_load_n(&tt_plugins.profiler.mask, __ATOMIC_RELAXED);
    tt_profiler_mask_names((uint32_t)mask, names, sizeof(names));
    tt_info(TT_LOG_INIT, "Profiler event mask: 0x%x (%d) - Enabled: %s", (unsigned int)mask, mask,
            names);
}

/* ---- life ---- */

static const ncclProfiler_v7_t *found_table(void)
{
    if (tt_plugins.profiler.timers) return &tt_profiler_timed;
    return tt_profiler_below(7, &tt_profiler_v6);
}

/* What the plugin asked for, as far as its version has it; phases belong to kernels. */
static void clean_mask(void)
{
    int *mask = &tt_plugins.profiler.mask;
    int known = (int)tt_profiler_known();
    int wanted = __atomic_and_fetch(mask, known, __ATOMIC_RELAXED);
    if (wanted & ncclProfileKernelPhase)
        __atomic_fetch_or(mask, ncclProfileKernelCh, __ATOMIC_RELAXED);
}

void tt_profiler_set_mask(uint32_t mask)
{
    struct tt_plugin_slot *slot = &tt_plugins.profiler.slot;
    pthread_mutex_lock(&slot->lock); /* the plugin stays as long */
    bool loaded = slot->users > 0;
    if (loaded) __atomic_store_n(&tt_plugins.profiler.mask, (int)mask, __ATOMIC_RELAXED);
    if (loaded) clean_mask();
    pthread_mutex_unlock(&slot->lock);
    if (loaded) report_mask();
}

/* Nothing is asked for of the only communicator, but by its own init: a mask that one before it
 * left would say otherwise. Called with init_lock, so none is between its acquire and its init. */
static void forget_mask(void)
{
    struct tt_plugin_slot *slot = &tt_plugins.profiler.slot;
    pthread_mutex_lock(&slot->lock);
    if (slot->users == 1) __atomic_store_n(&tt_plugins.profiler.mask, 0, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&slot->lock);
}

/* One at a time: plugins have been seen to lose ranks whose threads come at once. */
static ncclResult_t init_context(const ncclProfiler_v7_t *table,
                                 const struct tt_profiler_config *config, void **context_out)
{
    const struct tt_member *member = config->member;
    const char *name = member->name && *member->name ? member->name : NULL;
    if (!config->at_once) pthread_mutex_lock(&tt_plugins.profiler.init_lock);
    forget_mask();
    ncclResult_t rc = table->init(context_out, member->comm_id, &tt_plugins.profiler.mask, name,
                                  config->nnodes, member->nranks, member->rank, tt_plugin_log);
    if (!rc) clean_mask();
    if (!config->at_once) pthread_mutex_unlock(&tt_plugins.profiler.init_lock);
    return rc;
}

/* Has the plugin begun a context? It may be NULL where the mask asks for events: PyTorch's keeps
 * nothing and gives none. False and no reason: it is switched off, as NVIDIA's inspector says it,
 * with neither. After init, which may have filled the table. */
static bool begin(const struct tt_profiler_config *config, void **context_out,
                  struct tt_plugin_refusal *refusal)
{
    static const char *const names[] = {"init", "startEvent", "stopEvent", "recordEventState",
                                        "finalize"};
    const void *object = tt_plugins.profiler.slot.found.object;
    const size_t bytes = sizeof(refusal->text);
    refusal->text[0] = 0;
    if (tt_table_lacks(object, names, 1)) {
        snprintf(refusal->text, bytes, "it has no init");
        return false;
    }
    const ncclProfiler_v7_t *table = found_table();
    ncclResult_t rc = init_context(table, config, context_out);
    const char *lacks = tt_table_lacks(object, names, TT_LEN(names));
    if (rc) {
        snprintf(refusal->text, bytes, "init returned %d (%s)", (int)rc, tt_result_name(rc));
    } else if (lacks) {
        snprintf(refusal->text, bytes, "it has no %s", lacks);
        if (*context_out && strcmp(lacks, "finalize") != 0) table->finalize(*context_out);
    }
    return !refusal->text[0] &&
           (*context_out || __atomic_load_n(&tt_plugins.profiler.mask, __ATOMIC_RELAXED));
}

/* Once per process: most communicators of a process meet the same. */
static void report_refused(const struct tt_profiler_config *config,
                           const struct tt_plugin_refusal *refusal)
{
    const char *name = *(const char *const *)tt_plugins.profiler.slot.found.object;
    pthread_mutex_lock(&tt_plugins.profiler.init_lock);
    const bool is_news = refusal->text[0] && !tt_plugins.profiler.refused;
    tt_plugins.profiler.refused |= is_news;
    pthread_mutex_unlock(&tt_plugins.profiler.init_lock);
    if (is_news) {
        tt_plugin_refused(&kind, "%s: %s; rank %d goes on without it",
                          name ? name : "without a name", refusal->text, config->member->rank);
    }
    if (config->refusal && refusal->text[0]) *config->refusal = *refusal;
    if (config->refusal && !refusal->text[0]) {
        snprintf(config->refusal->text, sizeof(config->refusal->text),
                 "init gave no context and asked for no event (is the plugin switched off?)");
    }
}

/* What only Tutti's profiler plugin reads, where none was asked for. Once per process. */
static void warn_untraced(void)
{
    size_t count = 0;
    const struct tt_param *table = tt_param_table(&count);
    pthread_mutex_lock(&tt_plugins.profiler.init_lock);
    const bool known = tt_plugins.profiler.untraced;
    tt_plugins.profiler.untraced = true;
    pthread_mutex_unlock(&tt_plugins.profiler.init_lock);
    for (size_t i = 0; i < count && !known && !tt_param_is_set(kind.variable); i++) {
        const char *name = table[i].name;
        if (strncmp(name, "TUTTI_TRACE_", 12) != 0 || !tt_param_is_set(name)) continue;
        tt_warn_setting("%s has no effect without Tutti's profiler plugin "
                        "(NCCL_PROFILER_PLUGIN=tutti)",
                        name);
        return;
    }
}

void tt_profiler_open(const struct tt_profiler_config *config, struct tt_profiler **profiler_out)
{
    *profiler_out = NULL;
    if (!tt_plugin_acquire(&kind, &tt_plugins.profiler.slot, config->net_library)) {
        warn_untraced();
        return;
    }
    if (config->unloads) tt_plugins.profiler.slot.stays = false;
    tt_profiler_timers_begin();
    struct tt_plugin_refusal refusal = {"out of memory"};
    struct tt_profiler *profiler = tt_calloc(1, sizeof(*profiler));
    void *context = NULL;
    if (!profiler || !begin(config, &context, &refusal)) {
        report_refused(config, &refusal);
        free(profiler);
        tt_profiler_timers_end();
        tt_plugin_release(&tt_plugins.profiler.slot);
        return;
    }
    *profiler =
        (struct tt_profiler){found_table(), context, config->member, &tt_plugins.profiler.mask};
    report_mask();
    *profiler_out = profiler;
}

ncclResult_t tt_profiler_close(struct tt_profiler *profiler)
{
    if (!profiler) return ncclSuccess;
    ncclResult_t rc =
        profiler->context ? profiler->table->finalize(profiler->context) : ncclSuccess;
    free(profiler);
    tt_profiler_timers_end();
    tt_plugin_release(&tt_plugins.profiler.slot);
    return rc;
}

int tt_profiler_version(const struct tt_profiler *profiler)
{
    return profiler ? tt_plugins.profiler.slot.found.version : 0;
}

const char *tt_profiler_name(const struct tt_profiler *profiler)
{
    const void *object = profiler ? tt_plugins.profiler.slot.found.object : NULL;
    const char *name = object ? *(const char *const *)object : NULL;
    return name ? name : "";
}

/* ---- events ---- */

void *tt_prof_start(struct tt_profiler *profiler, uint32_t mask, ncclProfilerEventDescr_v7_t *descr)
{
    void *handle = NULL;
    if (!profiler || !tt_prof_wants(mask, descr->type)) return NULL;
    descr->rank = profiler->member->rank;
    profiler->table->startEvent(profiler->context, &handle, descr);
    return handle;
}

void tt_prof_stop(struct tt_profiler *profiler, void *handle)
{
    if (handle) profiler->table->stopEvent(handle);
}

void tt_prof_state(struct tt_profiler *profiler, void *handle, ncclProfilerEventState_v7_t state,
                   ncclProfilerEventStateArgs_v7_t *args)
{
    ncclProfilerEventStateArgs_v7_t none;
    if (!handle) return;
    memset(&none, 0, sizeof(none));
    profiler->table->recordEventState(handle, state, args ? args : &none);
}

const char *tt_prof_type_name(ncclDataType_t type)
{
    switch (type) {
    case ncclInt8: return "ncclInt8";
    case ncclInt32: return "ncclInt32";
    case ncclUint32: return "ncclUint32";
    case ncclInt64: return "ncclInt64";
    case ncclUint64: return "ncclUint64";
    case ncclFloat16: return "ncclFloat16";
    case ncclFloat32: return "ncclFloat32";
    case ncclFloat64: return "ncclFloat64";
    case ncclBfloat16: return "ncclBfloat16";
    case ncclFloat8e4m3: return "ncclFloat8e4m3";
    case ncclFloat8e5m2: return "ncclFloat8e5m2";
    default: return "Unknown"; /* NCCL has no word for uint8 here */
    }
}

/* A network's own event. Guarded where NCCL is not: no step, no start; no handle, no stop; a stop
 * clears the handle. Networks may leave `opaque` NULL but at the start. */
ncclResult_t tt_prof_net_event(void **handle, int what, void *opaque, int64_t id, void *data)
{
    const struct tt_prof_step *step = opaque;
    if (!handle) return ncclSuccess;
    if (what == ncclProfilerNetEventStart) {
        *handle = NULL;
        if (!step) return ncclSuccess;
        ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileNetPlugin,
                                             .parentObj = step->event,
                                             .netPlugin = {.id = id, .data = data}};
        *handle = tt_prof_start(step->profiler, step->mask, &descr);
        return ncclSuccess;
    }
    if (!*handle || !tt_plugins.profiler.slot.found.object) return ncclSuccess;
    const ncclProfiler_v7_t *table = found_table(); /* it has a user: the handle's owner */
    ncclProfilerEventStateArgs_v7_t args = {.netPlugin = {.data = data}};
    if (what == ncclProfilerNetEventUpdate || what == ncclProfilerNetEventUpdateAndStop)
        table->recordEventState(*handle, ncclProfilerNetPluginUpdate, &args);
    if (what == ncclProfilerNetEventStop || what == ncclProfilerNetEventUpdateAndStop) {
        table->stopEvent(*handle);
        *handle = NULL;
    }
    return ncclSuccess;
}
