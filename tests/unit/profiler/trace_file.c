/* See trace_file.h. */
#include "trace_file.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EVENTS = 5000 };

char trace_folder[] = "/tmp/tutti-trace.XXXXXX";
char trace_text[TRACE_TEXT_BYTES];
static void *library;

void trace_ignore(ncclDebugLogLevel level, unsigned long flags, const char *file, int line,
                  const char *fmt, ...)
{
    (void)level, (void)flags, (void)file, (void)line, (void)fmt;
}

const void *trace_symbol(const char *name)
{
    const void *object = dlsym(library, name);
    assert_non_null(object);
    return object;
}

const char *trace_path(pid_t pid)
{
    static char path[128];
    snprintf(path, sizeof(path), "%s/trace.%d", trace_folder, (int)pid);
    return path;
}

void trace_read(pid_t pid)
{
    FILE *file = fopen(trace_path(pid), "r");
    assert_non_null(file);
    size_t bytes = fread(trace_text, 1, sizeof(trace_text) - 1, file);
    fclose(file);
    assert_true(bytes < sizeof(trace_text) - 1);
    trace_text[bytes] = '\0';
}

unsigned long trace_count(const char *needle)
{
    unsigned long count = 0;
    for (const char *at = trace_text; (at = strstr(at, needle)); at++)
        count++;
    return count;
}

unsigned long trace_end_says(const char *member)
{
    const char *last = NULL;
    char name[64];
    for (const char *at = trace_text; (at = strstr(at, "{\"t\":\"end\"")); at++)
        last = at;
    assert_non_null(last);
    snprintf(name, sizeof(name), "\"%s\":", member);
    last = strstr(last, name);
    assert_non_null(last);
    return strtoul(last + strlen(name), NULL, 10);
}

void trace_init(ncclResult_t (*init)(void **, uint64_t, int *, const char *, int, int, int,
                                     ncclDebugLogger_t),
                void **context, int *mask)
{
    *context = NULL;
    assert_int_equal(init(context, 0xabcdef, mask, "a \"name\"\n", 1, 8, 5, trace_ignore),
                     ncclSuccess);
    assert_non_null(*context);
}

void *trace_report_much(void *opaque)
{
    const ncclProfiler_v7_t *v7 = trace_symbol("ncclProfiler_v7");
    struct trace_reported *reported = opaque;
    for (int i = 0; i < EVENTS; i++) {
        ncclProfilerEventDescr_v7_t descr = {.type = ncclProfileKernelCh};
        void *handle = NULL;
        v7->startEvent(reported->context, &handle, &descr);
        reported->starts++;
        if (!handle) reported->refused++;
        if (!handle) continue;
        v7->stopEvent(handle);
        reported->stops++;
    }
    return NULL;
}

int trace_run(int argc, char **argv, int (*run)(void))
{
    char pattern[128];
    if (argc < 2 || !mkdtemp(trace_folder)) return 99;
    snprintf(pattern, sizeof(pattern), "%s/trace.%%p", trace_folder);
    setenv("TUTTI_TRACE_FILE", pattern, 1);
    setenv("TUTTI_TRACE_RING", "16", 1);
    library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return 99;
    int failed = run();
    unlink(trace_path(getpid()));
    rmdir(trace_folder);
    return failed;
}
