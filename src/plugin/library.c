/* Opens plugin libraries as NCCL does: RTLD_NOW, local scope, names in NCCL's order. */
#include "base/log.h"
#include "plugin/plugin.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static bool looks_complete(const char *name)
{
    size_t len = strlen(name);
    return strchr(name, '/') ||
           (len > 6 && !strncmp(name, "lib", 3) && !strcmp(name + len - 3, ".so"));
}

/* A missing file is collected for one line; any other reason is told at once. */
static void *open_one(const char *kind, uint32_t sub, const char *path, char *missing,
                      size_t missing_bytes)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle) return handle;
    const char *why = dlerror();
    if (why && strstr(why, path) && strstr(why, "No such file or directory")) {
        size_t used = strlen(missing);
        snprintf(missing + used, missing_bytes - used, " %s", path);
    } else {
        tt_info(sub, "%s/Plugin: %s: %s", kind, path, why ? why : "cannot be opened");
    }
    return NULL;
}

bool tt_library_open(const char *kind, uint32_t sub, const char *prefix, const char *name,
                     struct tt_library *library_out)
{
    char missing[600] = "";
    char path[256];
    memset(library_out, 0, sizeof(*library_out));
    if (name && !strcasecmp(name, "none")) return false;
    if (name && !strcasecmp(name, "STATIC_PLUGIN")) {
        library_out->handle = dlopen(NULL, RTLD_NOW | RTLD_LOCAL);
        snprintf(library_out->path, sizeof(library_out->path), "STATIC_PLUGIN");
        return library_out->handle != NULL;
    }
    if (name && *name) {
        snprintf(path, sizeof(path), "%s", name);
    } else {
        snprintf(path, sizeof(path), "%s.so", prefix);
    }
    void *handle = open_one(kind, sub, path, missing, sizeof(missing));
    if (!handle && name && *name && !looks_complete(name)) {
        snprintf(path, sizeof(path), "%s-%.200s.so", prefix, name);
        handle = open_one(kind, sub, path, missing, sizeof(missing));
    }
    if (!handle && missing[0]) tt_info(sub, "%s/Plugin: Could not find:%s", kind, missing);
    library_out->handle = handle;
    snprintf(library_out->path, sizeof(library_out->path), "%s", path);
    return handle != NULL;
}

void tt_library_close(struct tt_library *library)
{
    if (library->handle) dlclose(library->handle);
    library->handle = NULL;
}

void tt_plugin_log(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                   const char *fmt, ...)
{
    char text[1024];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    tt_log_plugin((int)level, flags, file, line, "%s", text);
}
