/* Opens plugin libraries as NCCL does: RTLD_NOW, local scope, names in NCCL's order. A kind of
 * which there is one library per process keeps it in a slot, counted; a failure is final. */
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "plugin/load/image.h"
#include "plugin/plugin.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { NAME_MAX_BYTES = 254 };

struct search { /* one walk over file names */
    const char *kind;
    uint32_t sub;
    char missing[600];
    struct tt_library *library;
};

static bool looks_complete(const char *name)
{
    size_t len = strlen(name);
    return strchr(name, '/') ||
           (len > 6 && !strncmp(name, "lib", 3) && !strcmp(name + len - 3, ".so"));
}

/* What the loader would open for a bare name: the first that is in LD_LIBRARY_PATH. The system's
 * own folders are its package manager's, and are not looked through. */
static bool in_library_path(const char *name, char path[PATH_MAX])
{
    const char *folder = getenv("LD_LIBRARY_PATH");
    for (size_t len; folder; folder = folder[len] ? folder + len + 1 : NULL) {
        len = strcspn(folder, ":;");
        const int used =
            snprintf(path, PATH_MAX, "%.*s%s%s", (int)len, folder, len ? "/" : "./", name);
        if (used < PATH_MAX && access(path, F_OK) == 0) return true;
    }
    return false;
}

static const char *fault_of(const char *name)
{
    char path[PATH_MAX];
    if (strchr(name, '/')) return tt_image_fault(name);
    return in_library_path(name, path) ? tt_image_fault(path) : NULL;
}

/* A missing file is collected for one line; any other reason is reported at once. */
static bool try_file(struct search *search, const char *path)
{
    struct tt_library *library = search->library;
    const char *fault = fault_of(path);
    if (fault) {
        snprintf(library->why, sizeof(library->why), "%s", fault);
        tt_info(search->sub, "%s/Plugin: %s: %s", search->kind, path, fault);
        return false;
    }
    library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library->handle) {
        snprintf(library->path, sizeof(library->path), "%s", path);
        return true;
    }
    const char *why = dlerror();
    if (why && strstr(why, path) && strstr(why, "No such file or directory")) {
        size_t used = strlen(search->missing);
        snprintf(search->missing + used, sizeof(search->missing) - used, " %s", path);
    } else {
        snprintf(library->why, sizeof(library->why), "%s", why ? why : "cannot be opened");
        tt_info(search->sub, "%s/Plugin: %s: %s", search->kind, path, library->why);
    }
    return false;
}

/* NCCL compares the length of the given name only: "static" means it too. */
static bool means_static(const char *name)
{
    return *name && !strncasecmp("STATIC_PLUGIN", name, strlen(name));
}

static bool try_names(struct search *search, const char *prefix, const char *name)
{
    char path[sizeof(search->library->path)];
    if (!name || !*name) {
        snprintf(path, sizeof(path), "%s.so", prefix);
        return try_file(search, path);
    }
    if (try_file(search, name)) return true;
    if (looks_complete(name)) return false;
    int len = snprintf(path, sizeof(path), "%s-%s.so", prefix, name);
    return len > 0 && (size_t)len < sizeof(path) && try_file(search, path);
}

bool tt_library_open(const char *kind, uint32_t sub, const char *prefix, const char *name,
                     struct tt_library *library_out)
{
    struct search search = {.kind = kind, .sub = sub, .library = library_out};
    memset(library_out, 0, sizeof(*library_out));
    if (name && !strcasecmp(name, "none")) return false;
    if (name && strlen(name) > NAME_MAX_BYTES) {
        snprintf(library_out->why, sizeof(library_out->why), "a name of %zu characters is too long",
                 strlen(name));
        tt_info(sub, "%s/Plugin: %s: %.60s...", kind, library_out->why, name);
        return false;
    }
    if (name && means_static(name)) {
        library_out->handle = dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
        snprintf(library_out->path, sizeof(library_out->path), "STATIC_PLUGIN");
        return library_out->handle != NULL;
    }
    bool found = try_names(&search, prefix, name);
    if (!found && search.missing[0])
        tt_info(sub, "%s/Plugin: Could not find:%s", kind, search.missing);
    snprintf(library_out->missing, sizeof(library_out->missing), "%.299s", search.missing);
    return found;
}

/* Keep what the library has mapped, also after it is closed. */
static void pin(const struct tt_library *library)
{
    if (library->handle) dlopen(library->path, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);
}

void tt_library_close(struct tt_library *library)
{
    if (library->handle) dlclose(library->handle);
    library->handle = NULL;
}

bool tt_library_find(const struct tt_library *library, const struct tt_plugin_abi *abis,
                     size_t nabis, struct tt_plugin_found *found_out)
{
    for (size_t i = 0; i < nabis; i++) {
        const void *object = dlsym(library->handle, abis[i].symbol);
        if (!object) continue;
        *found_out = (struct tt_plugin_found){abis[i].version, object};
        return true;
    }
    return false;
}

/* ---- one library per process ---- */

static bool open_for(const struct tt_plugin_kind *kind, const char *net_library,
                     struct tt_library *library)
{
    const char *name = tt_param_str(kind->variable);
    struct tt_library first;
    if (name && !strcasecmp(name, "none")) return false;
    if (tt_library_open(kind->label, kind->sub, kind->prefix, name, library)) return true;
    first = *library;
    if (kind->other_prefix &&
        tt_library_open(kind->label, kind->sub, kind->other_prefix, name, library))
        return true;
    if (name && *name) tt_plugin_missing(kind->variable, name, &first);
    return net_library &&
           tt_library_open(kind->label, kind->sub, kind->prefix, net_library, library);
}

static bool load(const struct tt_plugin_kind *kind, struct tt_plugin_slot *slot,
                 const char *net_library)
{
    struct tt_library *library = &slot->library;
    if (!open_for(kind, net_library, library)) return false;
    bool reports = !net_library || strcmp(library->path, net_library) != 0;
    if (tt_library_find(library, kind->abis, kind->nabis, &slot->found)) {
        const char *name = *(const char *const *)slot->found.object;
        tt_info(kind->sub, "%s/Plugin: %s %s (v%d)", kind->label, kind->loaded,
                name ? name : "without a name", slot->found.version);
        tt_info(kind->sub, "Successfully loaded external %s plugin %s", kind->noun, library->path);
        slot->stays = kind->stays;
        return true;
    }
    if (reports) {
        tt_plugin_unsupported(kind->noun, library, kind->abis, kind->nabis,
                              tt_param_is_set(kind->variable));
    }
    tt_library_close(library);
    return false;
}

void tt_plugin_missing(const char *variable, const char *name, const struct tt_library *library)
{
    const bool exists = library->why[0];
    tt_warn_setting("%s: no plugin %.254s could be loaded: %s%s", variable, name,
                    exists ? library->why : "there is no file", exists ? "" : library->missing);
}

/* A plugin's symbol of any kind and version, to say what a library has that cannot be used. */
static bool has_another(const struct tt_library *library, char symbol[], size_t symbol_bytes)
{
    static const char *const kinds[] = {"ncclNetPlugin", "ncclTunerPlugin", "ncclProfiler",
                                        "ncclEnvPlugin", "ncclCollNetPlugin"};
    enum { NEWEST_THOUGHT_OF = 99 };
    for (size_t k = 0; k < TT_LEN(kinds); k++) {
        for (int version = NEWEST_THOUGHT_OF; version > 0; version--) {
            snprintf(symbol, symbol_bytes, "%s_v%d", kinds[k], version);
            if (dlsym(library->handle, symbol)) return true;
        }
    }
    return false;
}

void tt_plugin_unsupported(const char *noun, const struct tt_library *library,
                           const struct tt_plugin_abi *abis, size_t nabis, bool named)
{
    char other[64];
    const bool has = has_another(library, other, sizeof(other));
    if (named) {
        tt_warn_setting("External %s plugin %s is unsupported: it has no %s, nor an older one down "
                        "to %s; it has %s",
                        noun, library->path, abis[0].symbol, abis[nabis - 1].symbol,
                        has ? other : "no symbol of a plugin");
    } else {
        tt_info(TT_LOG_INIT, "External %s plugin %s is unsupported: it has no %s; it has %s", noun,
                library->path, abis[0].symbol, has ? other : "no symbol of a plugin");
    }
}

void tt_plugin_refused(const struct tt_plugin_kind *kind, const char *fmt, ...)
{
    char text[512];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (tt_param_is_set(kind->variable)) {
        tt_warn_setting("%s: %s", kind->variable, text);
    } else {
        tt_warn("%s: %s", kind->variable, text);
    }
}

bool tt_plugin_acquire(const struct tt_plugin_kind *kind, struct tt_plugin_slot *slot,
                       const char *net_library)
{
    pthread_mutex_lock(&slot->lock);
    if (slot->users == 0 && !slot->failed) slot->failed = !load(kind, slot, net_library);
    bool there = !slot->failed;
    if (there) slot->users++;
    pthread_mutex_unlock(&slot->lock);
    return there;
}

void tt_plugin_release(struct tt_plugin_slot *slot)
{
    pthread_mutex_lock(&slot->lock);
    if (--slot->users == 0) {
        if (slot->stays) pin(&slot->library);
        tt_library_close(&slot->library);
    }
    pthread_mutex_unlock(&slot->lock);
}

void tt_plugin_log(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                   const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    /* NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start is just above */
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    tt_log_plugin((int)level, flags, file, line, "%s", text);
}

const char *tt_table_lacks(const void *table, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        uintptr_t function;
        memcpy(&function, (const char *)table + (i + 1) * sizeof(function), sizeof(function));
        if (names[i] && !function) return names[i];
    }
    return NULL;
}
