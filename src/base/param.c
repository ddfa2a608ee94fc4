/* Values of the variables: read once, parsed by type, kept for the life of the process.
 * Whatever is wrong with a value, the reader gets the fallback and the user one sentence. */
#include "base/param.h"

#include "base/beside.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param/param_files.h"
#include "base/process.h"
#include "base/text/spelling.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static int compare_name(const void *name, const void *param)
{
    return strcmp(name, ((const struct tt_param *)param)->name);
}

const struct tt_param *tt_param_find(const char *name)
{
    size_t count = 0;
    const struct tt_param *table = tt_param_table(&count);
    return bsearch(name, table, count, sizeof(*table), compare_name);
}

/* Lock held. */
static const char **make_names(void)
{
    size_t count = 0;
    const struct tt_param *table = tt_param_table(&count);
    const char **names = tt_calloc(count, sizeof(*names));
    for (size_t i = 0; names && i < count; i++) {
        names[i] = table[i].name;
    }
    return names;
}

const char **tt_param_names(void)
{
    pthread_mutex_lock(&tt_base.params.lock);
    if (!tt_base.params.names) tt_base.params.names = make_names();
    const char **names = tt_base.params.names;
    pthread_mutex_unlock(&tt_base.params.lock);
    return names;
}

static bool parse_integer(const char *text, int64_t *number_out)
{
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(text, &end, 0);
    if (errno || end == text || end[strspn(end, " \t")] != '\0') return false;
    *number_out = number;
    return true;
}

static bool parse_bool(const char *text, int64_t *number_out)
{
    const bool yes = !strcasecmp(text, "T") || !strcasecmp(text, "TRUE");
    const bool no = !strcasecmp(text, "F") || !strcasecmp(text, "FALSE");
    if (!yes && !no) return parse_integer(text, number_out);
    *number_out = yes;
    return true;
}

static bool parse_bytes(const char *text, int64_t *number_out)
{
    static const char units[] = "KMGT";
    char *end = NULL;
    errno = 0;
    const long long number = strtoll(text, &end, 0);
    if (errno || end == text || number < 0) return false;
    int64_t scale = 1;
    for (size_t i = 0; *end && i < sizeof(units) - 1; i++) {
        scale *= 1024;
        if (strncasecmp(end, &units[i], 1) != 0) continue;
        end++;
        if (!strcasecmp(end, "B") || !strcasecmp(end, "iB")) end += strlen(end);
        return *end == '\0' && !__builtin_mul_overflow(number, scale, number_out);
    }
    *number_out = number;
    return *end == '\0';
}

/* Find `text` among the words of `values` ("ONE,TWO, THREE" or "ONE; TWO,MORE"); the table's
 * spelling, owned by the caller, or NULL. */
static char *find_word(const char *values, const char *text)
{
    const char *between = tt_param_between(values);
    while (*values) {
        values += strspn(values, between);
        const size_t len = strcspn(values, between);
        if (len && len == strlen(text) && !strncasecmp(values, text, len))
            return strndup(values, len);
        values += len;
    }
    return NULL;
}

/* Parse `text` into *value; false when it is not of the variable's type. */
static bool parse_value(const struct tt_param *param, const char *text, struct param_value *value)
{
    bool good = true;
    char *kept = NULL;
    switch (param->type) {
    case TT_PARAM_INT: good = parse_integer(text, &value->number); break;
    case TT_PARAM_BOOL: good = parse_bool(text, &value->number); break;
    case TT_PARAM_BYTES: good = parse_bytes(text, &value->number); break;
    case TT_PARAM_WORD:
        kept = find_word(param->values, text);
        good = kept != NULL;
        break;
    case TT_PARAM_STR: break;
    }
    if (!good) value->number = 0;
    if (!good) return false;
    value->text = kept ? kept : strdup(text);
    return value->text != NULL;
}

static void log_value(const struct tt_param *param, const struct param_value *value)
{
    if (tt_param_is_text(param)) {
        tt_info(TT_LOG_ENV, "%s set by environment to %s", param->name, value->text);
    } else {
        tt_info(TT_LOG_ENV, "%s set by environment to %lld.", param->name,
                (long long)value->number);
    }
}

static void warn_bad_value(const struct tt_param *param, const char *text)
{
    char meant[96] = "";
    if (param->type == TT_PARAM_WORD)
        tt_param_suggest(param->values, text, strlen(text), meant, sizeof(meant));
    tt_warn_setting(
        "%s: value '%s' is not understood; accepted: %s; going on with the default (%s)%s",
        param->name, text, param->values, param->unset, meant);
}

bool tt_param_are_reported(void)
{
    int known = tt_base.params.are_reported;
    if (known) return known == 2;
    bool reported = tt_settings_are_reported();
    tt_base.params.are_reported = reported ? 2 : 1;
    return reported;
}

void tt_warn_setting_at(const struct tt_log_location *location, const char *fmt, ...)
{
    char text[sizeof(tt_base.params.refused)];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    const bool repeats = tt_base.params.names_loading && tt_param_are_reported();
    tt_log_at(repeats ? TT_LOG_INFO : TT_LOG_WARN, TT_LOG_ALL, location, "%s", text);
    pthread_mutex_lock(&tt_base.params.lock);
    if (!tt_base.params.refused[0])
        memcpy(tt_base.params.refused, text, sizeof(tt_base.params.refused));
    pthread_mutex_unlock(&tt_base.params.lock);
}

ncclResult_t tt_param_check(void)
{
    char text[sizeof(tt_base.params.refused)];
    if (!tt_param_bool("TUTTI_STRICT")) return ncclSuccess;
    pthread_mutex_lock(&tt_base.params.lock);
    memcpy(text, tt_base.params.refused, sizeof(text));
    pthread_mutex_unlock(&tt_base.params.lock);
    return text[0] ? tt_fail(ncclInvalidUsage, "TUTTI_STRICT: %s", text) : ncclSuccess;
}

void tt_param_set_source(const struct tt_param_source *source)
{
    /* pairs with the acquire load in source_of() */
    atomic_store_explicit(&tt_base.params.source, source, memory_order_release);
}

/* NULL: the environment answers for this variable. */
static const struct tt_param_source *source_of(const char *name)
{
    static const char *const kept[] = {"NCCL_CONF_FILE", "NCCL_ENV_PLUGIN",
                                       "NCCL_WARN_ENABLE_DEBUG_INFO"};
    for (size_t i = 0; i < TT_LEN(kept); i++) {
        if (!strcmp(kept[i], name)) return NULL;
    }
    if (!strncmp(name, "NCCL_DEBUG", 10)) return NULL;
    return atomic_load_explicit(&tt_base.params.source, memory_order_acquire);
}

const char *tt_param_text(const char *name)
{
    const struct tt_param_source *source = source_of(name);
    return source ? source->lookup(name) : getenv(name);
}

/* First read of a variable; true when its text is not understood. An empty one is a value for STR
 * only. */
static bool fill_value(const struct tt_param *param, const char *text, struct param_value *value)
{
    const bool given = text && (*text || param->type == TT_PARAM_STR);
    value->known = true;
    if (given) value->is_set = parse_value(param, text, value);
    if (!value->is_set && param->fallback) parse_value(param, param->fallback, value);
    const int64_t number = param->type == TT_PARAM_BOOL ? value->number != 0 : value->number;
    snprintf(value->decimal, sizeof(value->decimal), "%lld", (long long)number);
    return given && !value->is_set;
}

static const struct param_value *value_of(const char *name)
{
    const struct tt_param *param = tt_param_find(name);
    assert(param && "variable is missing in variables.tsv");
    if (!param) abort();
    size_t count = 0;
    struct param_value *value = &tt_base.params.values[param - tt_param_table(&count)];
    assert(count <= TT_PARAM_MAX);

    tt_param_files_read();
    bool bad = false;
    bool fresh = false;
    pthread_mutex_lock(&tt_base.params.lock);
    const bool known = value->known;
    pthread_mutex_unlock(&tt_base.params.lock);
    if (known) return value;
    const char *text = tt_param_text(name); /* outside the lock: a plugin may log */
    pthread_mutex_lock(&tt_base.params.lock);
    if (!value->known) {
        fresh = true;
        bad = fill_value(param, text, value);
    }
    pthread_mutex_unlock(&tt_base.params.lock);

    if (bad) warn_bad_value(param, text); /* outside the lock: logging may take a while */
    if (fresh && value->is_set) log_value(param, value);
    return value;
}

int64_t tt_param_int(const char *name)
{
    return value_of(name)->number;
}

bool tt_param_bool(const char *name)
{
    return value_of(name)->number != 0;
}

const char *tt_param_str(const char *name)
{
    return value_of(name)->text;
}

const char *tt_param_shown(const char *name)
{
    const struct param_value *value = value_of(name);
    if (!tt_param_is_text(tt_param_find(name))) return value->decimal;
    return value->text ? value->text : "";
}

bool tt_param_is_set(const char *name)
{
    return value_of(name)->is_set;
}

bool tt_param_machine_file(char path[TT_MACHINE_FILE_BYTES])
{
    const char *named = tt_param_str("NCCL_TOPO_FILE");
    const char *root = getenv("HWLOC_FSROOT");
    if (named && strlen(named) >= TT_MACHINE_FILE_BYTES) named = "";
    if (named) {
        snprintf(path, TT_MACHINE_FILE_BYTES, "%s", named);
        return path[0] != 0;
    }
    int length = snprintf(path, TT_MACHINE_FILE_BYTES, "%s%s", root ? root : "",
                          "/var/run/nvidia-topologyd/virtualTopology.xml");
    return length < TT_MACHINE_FILE_BYTES && access(path, R_OK) == 0;
}

const char *tt_param_origin(const char *name)
{
    const struct tt_param_source *source = source_of(name);
    if (source) return source->lookup(name) ? source->origin : "default";
    const char *file = tt_param_file_of(name);
    if (file) return file;
    return getenv(name) ? "environment" : "default";
}

void tt_param_forget(void)
{
    pthread_mutex_lock(&tt_base.params.lock);
    for (size_t i = 0; i < TT_LEN(tt_base.params.values); i++) {
        free(tt_base.params.values[i].text);
        tt_base.params.values[i] = (struct param_value){0};
    }
    pthread_mutex_unlock(&tt_base.params.lock);
    tt_base.params.refused[0] = 0;
    tt_param_files_forget();
}
