/* Stacks by libdw of elfutils, which is opened when they are asked for: it attaches to a thread as
 * a debugger does, reads its frames, and lets it go on. */
#include "doctor/stacks.h"

#include "base/mem.h"

#include <ctype.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_FRAMES = 40, NAME_BYTES = 64 };

struct libdw {
    void *handle;
    __typeof__(dwfl_begin) *begin;
    __typeof__(dwfl_end) *end;
    __typeof__(dwfl_errmsg) *errmsg;
    __typeof__(dwfl_linux_proc_report) *report;
    __typeof__(dwfl_report_end) *report_end;
    __typeof__(dwfl_linux_proc_attach) *attach;
    __typeof__(dwfl_linux_proc_find_elf) *find_elf;
    __typeof__(dwfl_standard_find_debuginfo) *find_debuginfo;
    __typeof__(dwfl_getthreads) *threads;
    __typeof__(dwfl_thread_tid) *tid;
    __typeof__(dwfl_thread_getframes) *frames;
    __typeof__(dwfl_frame_pc) *frame_pc;
    __typeof__(dwfl_addrmodule) *module;
    __typeof__(dwfl_module_addrinfo) *symbol;
    __typeof__(dwfl_module_getsrc) *line;
    __typeof__(dwfl_lineinfo) *line_info;
    __typeof__(dwfl_module_info) *module_info;
};

struct wanted {
    const char *name;
    size_t offset;
};
static const struct wanted wanted[] = {
    {"dwfl_begin", offsetof(struct libdw, begin)},
    {"dwfl_end", offsetof(struct libdw, end)},
    {"dwfl_errmsg", offsetof(struct libdw, errmsg)},
    {"dwfl_linux_proc_report", offsetof(struct libdw, report)},
    {"dwfl_report_end", offsetof(struct libdw, report_end)},
    {"dwfl_linux_proc_attach", offsetof(struct libdw, attach)},
    {"dwfl_linux_proc_find_elf", offsetof(struct libdw, find_elf)},
    {"dwfl_standard_find_debuginfo", offsetof(struct libdw, find_debuginfo)},
    {"dwfl_getthreads", offsetof(struct libdw, threads)},
    {"dwfl_thread_tid", offsetof(struct libdw, tid)},
    {"dwfl_thread_getframes", offsetof(struct libdw, frames)},
    {"dwfl_frame_pc", offsetof(struct libdw, frame_pc)},
    {"dwfl_addrmodule", offsetof(struct libdw, module)},
    {"dwfl_module_addrinfo", offsetof(struct libdw, symbol)},
    {"dwfl_module_getsrc", offsetof(struct libdw, line)},
    {"dwfl_lineinfo", offsetof(struct libdw, line_info)},
    {"dwfl_module_info", offsetof(struct libdw, module_info)},
};

static bool library_open(struct libdw *dw)
{
    dw->handle = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; dw->handle && i < TT_LEN(wanted); i++) {
        void *symbol = dlsym(dw->handle, wanted[i].name);
        if (!symbol) return false;
        memcpy((char *)dw + wanted[i].offset, &symbol, sizeof(symbol));
    }
    return dw->handle;
}

struct walk { /* of one process */
    const struct libdw *dw;
    Dwfl *dwfl;
    int pid;
    json_t *stacks, *frames; /* `frames`: of the thread that is looked at */
};

/* Source and line, or else the file that holds the code. */
static void report_where(const struct libdw *dw, Dwfl_Module *module, Dwarf_Addr pc, char *text,
                         size_t text_bytes)
{
    int number = 0;
    Dwfl_Line *line = dw->line(module, pc);
    const char *path = line ? dw->line_info(line, NULL, &number, NULL, NULL, NULL) : NULL;
    if (!path) path = dw->module_info(module, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
    const char *slash = path ? strrchr(path, '/') : NULL;
    (void)snprintf(text, text_bytes, "%s", slash ? slash + 1 : path ? path : "");
    size_t used = strlen(text);
    if (number > 0) (void)snprintf(text + used, text_bytes - used, ":%d", number);
}

static int take_frame(Dwfl_Frame *frame, void *arg)
{
    const struct walk *walk = arg;
    const struct libdw *dw = walk->dw;
    Dwarf_Addr pc = 0;
    bool exact = false;
    if (!dw->frame_pc(frame, &pc, &exact)) return DWARF_CB_ABORT;
    if (!exact) pc--; /* the call, not what comes behind it */
    char where[256] = "";
    const char *name = NULL;
    Dwfl_Module *module = dw->module(walk->dwfl, pc);
    if (module) {
        GElf_Off offset;
        GElf_Sym symbol;
        name = dw->symbol(module, pc, &offset, &symbol, NULL, NULL, NULL);
        report_where(dw, module, pc, where, sizeof(where));
    }
    json_array_append_new(walk->frames,
                          json_pack("{s:s, s:s}", "function", name ? name : "?", "where", where));
    return json_array_size(walk->frames) < MAX_FRAMES ? DWARF_CB_OK : DWARF_CB_ABORT;
}

static void thread_name(int pid, pid_t tid, char name[NAME_BYTES])
{
    char path[64];
    (void)snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", pid, tid);
    FILE *file = fopen(path, "r");
    name[0] = '\0';
    if (file && !fgets(name, NAME_BYTES, file)) name[0] = '\0';
    if (file) (void)fclose(file);
    name[strcspn(name, "\n")] = '\0';
    for (char *c = name; *c; c++)
        if (!isprint((unsigned char)*c)) *c = '?';
}

static int take_thread(Dwfl_Thread *thread, void *arg)
{
    struct walk *walk = arg;
    pid_t tid = walk->dw->tid(thread);
    char name[NAME_BYTES];
    thread_name(walk->pid, tid, name);
    if (tid != walk->pid && !strncmp(name, "tutti-", 6)) return DWARF_CB_OK;
    walk->frames = json_array();
    walk->dw->frames(thread, take_frame, walk);
    json_array_append_new(walk->stacks, json_pack("{s:i, s:s, s:o}", "thread", (int)tid, "name",
                                                  name, "frames", walk->frames));
    return DWARF_CB_OK;
}

/* NULL, or why there are none. */
static const char *walk_process(struct walk *walk)
{
    const struct libdw *dw = walk->dw;
    const Dwfl_Callbacks callbacks = {.find_elf = dw->find_elf,
                                      .find_debuginfo = dw->find_debuginfo};
    walk->dwfl = dw->begin(&callbacks);
    bool good = walk->dwfl && dw->report(walk->dwfl, walk->pid) == 0 &&
                dw->report_end(walk->dwfl, NULL, NULL) == 0 &&
                dw->attach(walk->dwfl, walk->pid, false) == 0 &&
                dw->threads(walk->dwfl, take_thread, walk) >= 0;
    const char *why = good ? NULL : dw->errmsg(-1);
    if (!good && !why) why = "it cannot be looked at";
    if (walk->dwfl) dw->end(walk->dwfl);
    return json_array_size(walk->stacks) ? NULL : why;
}

static void add_process(const struct libdw *dw, json_t *process, int pid)
{
    struct walk walk = {.dw = dw, .pid = pid, .stacks = json_array()};
    const char *why =
        dw->handle ? walk_process(&walk) : "libdw.so.1 of elfutils is needed (Debian: libdw1)";
    if (why) json_object_set_new(process, "stacks_missing", json_string(why));
    if (!why) json_object_set(process, "stacks", walk.stacks);
    json_decref(walk.stacks);
}

void doctor_add_stacks(json_t *job, const int *pids, int npids)
{
    struct libdw dw = {.handle = NULL};
    char host[256] = "";
    json_t *process;
    size_t i;
    gethostname(host, sizeof(host) - 1);
    unsetenv("DEBUGINFOD_URLS"); /* nothing is fetched from a network */
    if (!library_open(&dw) && dw.handle) {
        dlclose(dw.handle);
        dw.handle = NULL;
    }
    json_array_foreach(json_object_get(job, "processes"), i, process)
    {
        const char *where = json_string_value(json_object_get(process, "host"));
        int pid = (int)json_integer_value(json_object_get(process, "pid"));
        if (!where || strncmp(where, host, 63) != 0) continue;
        for (int p = 0; p < npids; p++) {
            if (pids[p] == pid) add_process(&dw, process, pid);
        }
    }
    if (dw.handle) dlclose(dw.handle);
}

static void show_stack(const json_t *stack)
{
    const json_t *frame;
    size_t i;
    printf("  thread %lld \"%s\"\n", json_integer_value(json_object_get(stack, "thread")),
           json_string_value(json_object_get(stack, "name")));
    json_array_foreach(json_object_get(stack, "frames"), i, frame)
    {
        printf("    %s (%s)\n", json_string_value(json_object_get(frame, "function")),
               json_string_value(json_object_get(frame, "where")));
    }
}

void doctor_show_stacks(const json_t *job)
{
    const json_t *process, *stack;
    size_t i, k;
    json_array_foreach(json_object_get(job, "processes"), i, process)
    {
        const json_t *stacks = json_object_get(process, "stacks");
        const char *missing = json_string_value(json_object_get(process, "stacks_missing"));
        long long pid = json_integer_value(json_object_get(process, "pid"));
        if (stacks) printf("stacks of process %lld\n", pid);
        if (missing) printf("stacks of process %lld: %s\n", pid, missing);
        json_array_foreach(stacks, k, stack) show_stack(stack);
    }
}
