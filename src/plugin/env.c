/* The environment plugin: one library per process, asked for variables from its init to the end of
 * the process. What it says is final, so a variable of NCCL's that it does not know is unset.
 *
 * It is asked by one thread at a time, as NCCL mostly does. Its texts may change when it is asked
 * again, ours must not: they are kept, each once. */

#include "plugin/env.h"

#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "plugin/plugin.h"
#include "plugin/process.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct tt_env_text {
    struct tt_env_text *next;
    char text[];
};

const struct tt_plugin_abi tt_env_symbols[TT_ENV_VERSIONS] = {{2, "ncclEnvPlugin_v2"},
                                                              {1, "ncclEnvPlugin_v1"}};
static const struct tt_plugin_kind kind = {
    .label = "ENV",
    .noun = "env",
    .loaded = "Using",
    .variable = "NCCL_ENV_PLUGIN",
    .prefix = "libnccl-env",
    .sub = TT_LOG_INIT | TT_LOG_ENV,
    .abis = tt_env_symbols,
    .nabis = TT_ENV_VERSIONS,
};

_Static_assert(offsetof(ncclEnv_v2_t, getEnv) == offsetof(ncclEnv_v1_t, getEnv) &&
                   offsetof(ncclEnv_v2_t, finalize) == offsetof(ncclEnv_v1_t, finalize),
               "the versions differ in what init is given");

static const char *keep(const char *text)
{
    struct tt_env_text *kept = tt_plugins.env.texts;
    while (kept && strcmp(kept->text, text) != 0)
        kept = kept->next;
    if (kept) return kept->text;
    const size_t bytes = strlen(text) + 1;
    kept = tt_calloc(1, sizeof(*kept) + bytes);
    if (!kept) return NULL;
    memcpy(kept->text, text, bytes);
    kept->next = tt_plugins.env.texts;
    tt_plugins.env.texts = kept;
    return kept->text;
}

/* Variables of ours, which a plugin for NCCL cannot know, and the address that `tutti run` hands to
 * its ranks: without an answer the environment has one. */
static bool is_from_us(const char *name)
{
    return strncmp(name, "NCCL_", 5) != 0 || !strcmp(name, "NCCL_COMM_ID");
}

/* A plugin that calls back while it is asked, to log say, is not asked again. */
static const char *lookup(const char *name)
{
    const char *text;
    pthread_mutex_lock(&tt_plugins.env.lock);
    if (tt_plugins.env.asking || !tt_plugins.env.get) {
        text = getenv(name);
    } else {
        tt_plugins.env.asking = true;
        text = tt_plugins.env.get(name);
        if (text) text = keep(text);
        if (!text && is_from_us(name)) text = getenv(name);
        tt_plugins.env.asking = false;
    }
    pthread_mutex_unlock(&tt_plugins.env.lock);
    return text;
}

/* At the exit of the process; a child of fork has not made what would end here. */
static void end(void)
{
    if (tt_plugins.env.process != getpid()) return;
    tt_param_set_source(NULL);
    pthread_mutex_lock(&tt_plugins.env.lock);
    tt_plugins.env.get = NULL;
    ncclResult_t rc = tt_plugins.env.finalize ? tt_plugins.env.finalize() : ncclSuccess;
    pthread_mutex_unlock(&tt_plugins.env.lock);
    if (rc) tt_info(kind.sub, "ENV/Plugin: finalize returned %d", (int)rc);
    tt_plugin_release(&tt_plugins.env.slot);
}

ncclResult_t tt_env_init(const struct tt_plugin_found *found)
{
    const ncclEnv_v2_t *plugin = found->object;
    if (found->version == 1) {
        return ((const ncclEnv_v1_t *)found->object)
            ->init(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX);
    }
    return plugin->init(NCCL_MAJOR, NCCL_MINOR, NCCL_PATCH, NCCL_SUFFIX, tt_plugin_log);
}

static void load(void)
{
    if (!tt_plugin_acquire(&kind, &tt_plugins.env.slot, NULL)) return;
    const struct tt_plugin_found found = tt_plugins.env.slot.found;
    const ncclEnv_v2_t *plugin = found.object; /* but for init, see above */
    const char *name = plugin->name ? plugin->name : "without a name";
    ncclResult_t rc = ncclInvalidUsage;
    if (!plugin->init || !plugin->getEnv) {
        tt_warn_setting("ENV/Plugin: %s has no init or getEnv; the environment is asked instead",
                        name);
    } else {
        rc = tt_env_init(&found);
        if (rc) {
            tt_warn_setting("ENV/Plugin: %s: init returned %d; the environment is asked instead",
                            name, (int)rc);
        }
    }
    if (rc || atexit(end)) {
        tt_plugin_release(&tt_plugins.env.slot);
        return;
    }
    snprintf(tt_plugins.env.origin, sizeof(tt_plugins.env.origin), "plugin %s", name);
    tt_plugins.env.get = plugin->getEnv; /* as init has left it */
    tt_plugins.env.finalize = plugin->finalize;
    tt_plugins.env.process = getpid();
    tt_plugins.env.source =
        (struct tt_param_source){.origin = tt_plugins.env.origin, .lookup = lookup};
    tt_param_set_source(&tt_plugins.env.source);
}

static void load_once(void)
{
    atomic_store_explicit(&tt_plugins.env.loader, pthread_self(), memory_order_relaxed);
    load();
    atomic_store_explicit(&tt_plugins.env.loader, 0, memory_order_relaxed);
}

/* The plugin's init may call what reads variables: it gets the environment's. Only the loading
 * thread can find itself there. */
void tt_env_open(void)
{
    pthread_t loader = atomic_load_explicit(&tt_plugins.env.loader, memory_order_relaxed);
    if (loader && pthread_equal(loader, pthread_self())) return;
    pthread_once(&tt_plugins.env.once, load_once);
}
