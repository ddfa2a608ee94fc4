/* Names and values in the environment without effect: each is reported once, with what was probably
 * meant.
 * A variable that silently does nothing costs its user an afternoon. */
#include "base/log.h"
#include "base/mem.h"
#include "base/param/param_files.h"
#include "base/process.h"
#include "base/text/spelling.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Spellings that circulate in guides and are no variables of NCCL. */
struct spelling {
    const char *name;
    const char *advice;
    const char *acts_as; /* its value is taken for this variable; NULL: it has no effect */
};

static const struct spelling spellings[] = {
    {"NCCL_NET_DISABLE", "NCCL_NET=<name> chooses the network", NULL},
    {"NCCL_SOCKET_TIMEOUT", "TUTTI_INIT_TIMEOUT", "TUTTI_INIT_TIMEOUT"},
    {"NCCL_BOOTSTRAP_TIMEOUT", "TUTTI_INIT_TIMEOUT", "TUTTI_INIT_TIMEOUT"},
    {"NCCL_ASYNC_ERROR_HANDLING", "it belongs to a framework, not to this library", NULL},
    {"NCCL_CUMEM_HANDLE_TYPE", "NCCL_CUMEM_ENABLE", NULL},
    {"NCCL_IMPLICIT_LAUNCH_ORDER", "NCCL_LAUNCH_ORDER_IMPLICIT", "NCCL_LAUNCH_ORDER_IMPLICIT"},
    {"MSCCL_XML_FILES", "TUTTI_PROGRAM_DIR", NULL},
    {"MSCCL_ALGO_DIR", "TUTTI_PROGRAM_DIR", NULL},
};

/* Known name that is nearest by edit distance; NULL when none is near. */
static const char *nearest_name(const char *name)
{
    size_t count = 0;
    const struct tt_param *table = tt_param_table(&count);
    const char *nearest = NULL;
    size_t best = strlen(name) / 3 + 1; /* further than a third of it is no typing mistake */
    for (size_t i = 0; i < count; i++) {
        const size_t distance = tt_edit_distance(name, table[i].name);
        if (distance >= best) continue;
        best = distance;
        nearest = table[i].name;
    }
    return nearest;
}

/* What builds and containers call NCCL's place and version: not addressed to the library. */
static bool is_builds(const char *name)
{
    static const char *const names[] = {"NCCL_HOME",    "NCCL_ROOT",   "NCCL_ROOT_DIR",
                                        "NCCL_DIR",     "NCCL_PATH",   "NCCL_INCLUDE_DIR",
                                        "NCCL_LIB_DIR", "NCCL_VERSION"};
    for (size_t i = 0; i < TT_LEN(names); i++) {
        if (!strcmp(names[i], name)) return true;
    }
    return false;
}

static const struct spelling *find_spelling(const char *name)
{
    for (size_t i = 0; i < TT_LEN(spellings); i++) {
        if (!strcmp(spellings[i].name, name)) return &spellings[i];
    }
    return NULL;
}

/* Addressed to the library, though perhaps to another one. */
static bool is_ours(const char *name)
{
    return !strncmp(name, "NCCL_", 5) || !strncmp(name, "TUTTI_", 6) || find_spelling(name);
}

/* A plugin has variables of its own, often with this prefix. */
static bool has_plugin(void)
{
    static const char *const names[] = {"NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN",
                                        "NCCL_PROFILER_PLUGIN", "NCCL_ENV_PLUGIN"};
    for (size_t i = 0; i < TT_LEN(names); i++) {
        const char *named = tt_param_text(names[i]);
        if (named && *named && strcmp(named, "none") != 0) return true;
    }
    return false;
}

bool tt_param_name_wrong(const char *name, char *text, size_t text_bytes)
{
    const struct spelling *spelling = find_spelling(name);
    if (!is_ours(name) || tt_param_find(name) || is_builds(name)) return false;
    const char *nearest = nearest_name(name);
    if (!spelling && !nearest && has_plugin()) return false;
    if (spelling && spelling->acts_as) {
        snprintf(text, text_bytes, "is not a variable of NCCL; taken as %s", spelling->acts_as);
    } else if (spelling) {
        snprintf(text, text_bytes, "is not a variable of NCCL and has no effect; see: %s",
                 spelling->advice);
    } else if (nearest) {
        snprintf(text, text_bytes, "is not a known variable and has no effect; did you mean %s?",
                 nearest);
    } else {
        snprintf(text, text_bytes,
                 "is not a known variable and has no effect; `tutti env` lists all");
    }
    return true;
}

/* The host device reads these by itself, and says what is wrong with them. */
static bool is_devices(const char *name)
{
    return !strcmp(name, "TUTTI_DEVICES") || !strcmp(name, "TUTTI_DEVICE_MEMORY") ||
           !strcmp(name, "TUTTI_CHECK");
}

/* Still obeyed, and to be replaced. */
static const char *replacement(const char *name)
{
    static const struct {
        const char *old, *now;
    } rows[] = {
        {"NCCL_CHECK_POINTERS", "NCCL_CHECK_MODE"}, {"NCCL_CHECKS_DISABLE", "NCCL_CHECK_MODE"},
        {"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS"},    {"NCCL_MAX_NRINGS", "NCCL_MAX_CTAS"},
        {"NCCL_MIN_NCHANNELS", "NCCL_MIN_CTAS"},    {"NCCL_MIN_NRINGS", "NCCL_MIN_CTAS"},
    };
    for (size_t i = 0; i < TT_LEN(rows); i++) {
        if (!strcmp(rows[i].old, name)) return rows[i].now;
    }
    return NULL;
}

/* Files that are read: without them everything goes on as if the variable were not set. */
static void check_file(const char *name)
{
    static const char *const names[] = {"NCCL_CONF_FILE", "NCCL_GRAPH_FILE", "NCCL_TOPO_FILE",
                                        "NCCL_TUNER_CONFIG_FILE"};
    const char *path = tt_param_text(name);
    struct stat status;
    for (size_t i = 0; path && *path && i < TT_LEN(names); i++) {
        if (strcmp(names[i], name) != 0) continue;
        if (access(path, R_OK)) {
            tt_warn_setting("%s: %s cannot be read (%m) and has no effect", name, path);
        } else if (!stat(path, &status) && S_ISDIR(status.st_mode)) {
            tt_warn_setting("%s: %s is a folder and has no effect", name, path);
        } else if (!stat(path, &status) && !S_ISREG(status.st_mode)) {
            tt_warn_setting("%s: %s is not a regular file and is not read", name, path);
        }
    }
}

static void check_environment(void)
{
    const bool strict = tt_param_bool("TUTTI_STRICT");
    for (char **entry = environ; entry && *entry; entry++) {
        char name[TT_SPELLING_BYTES + 1];
        char wrong[256];
        const size_t len = strcspn(*entry, "=");
        snprintf(name, sizeof(name), "%.*s", (int)tt_min_size(len, TT_SPELLING_BYTES), *entry);
        if (!is_ours(name)) continue;
        const struct tt_param *param = tt_param_find(name);
        const char *now = replacement(name);
        if (tt_param_name_wrong(name, wrong, sizeof(wrong))) tt_warn_setting("%s %s", name, wrong);
        if (now) tt_warn_setting("%s is deprecated and still obeyed; use %s", name, now);
        check_file(name);
        if (!param || param->type == TT_PARAM_STR || (is_devices(name) && !strict)) continue;
        tt_param_is_set(name); /* judges the value */
    }
}

static void load_once(void)
{
    tt_base.params.names_loading = true;
    tt_param_files_read();
    for (size_t i = 0; i < TT_LEN(spellings); i++) {
        const char *value = tt_param_text(spellings[i].name);
        if (value && spellings[i].acts_as) setenv(spellings[i].acts_as, value, 0);
    }
    check_environment();
    tt_base.params.names_loading = false;
}

void tt_param_load(void)
{
    pthread_once(&tt_base.environment, load_once);
}
