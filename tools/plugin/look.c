/* What a library is before it is driven: whether the loader takes it, and which tables of plugins
 * it has. It is opened in a child, because constructors may do anything. */
#include "check.h"

#include "plugin/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { NEWEST = 20, SECONDS = 20, NKINDS = 5 };

static const struct check_kind *const kinds[NKINDS] = {&check_net, &check_profiler, &check_tuner,
                                                       &check_env, &check_collnet};

struct question {
    const char *file;
    const struct check_kind *wanted; /* NULL: any */
};

static bool exports(const struct tt_library *library, const char *table, int version)
{
    char symbol[64];
    snprintf(symbol, sizeof(symbol), "%s_v%d", table, version);
    return dlsym(library->handle, symbol) != NULL;
}

static void append(char *text, size_t text_bytes, const char *before, const char *table,
                   int version)
{
    size_t used = strlen(text);
    snprintf(text + used, text_bytes - used, "%s%s_v%d", before, table, version);
}

/* The names that were looked for, and those of any plugin that are there. */
static void say_symbols(const struct question *question, const struct tt_library *library,
                        char *note, size_t note_bytes)
{
    static const char *const tables[] = {"ncclNetPlugin",     "ncclProfiler",  "ncclTunerPlugin",
                                         "ncclCollNetPlugin", "ncclEnvPlugin", "rcclTunerPlugin"};
    snprintf(note, note_bytes, "%.200s is a library, but has no table", library->path);
    const char *before = " ";
    for (int k = 0; k < NKINDS; k++) {
        if (question->wanted && question->wanted != kinds[k]) continue;
        append(note, note_bytes, before, kinds[k]->table, kinds[k]->oldest);
        append(note, note_bytes, " to ", kinds[k]->table, kinds[k]->newest);
        before = " or ";
    }
    before = "; it has ";
    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        for (int version = 1; version <= NEWEST; version++) {
            if (!exports(library, tables[t], version)) continue;
            append(note, note_bytes, before, tables[t], version);
            before = ", ";
        }
    }
}

static bool has_table(const struct tt_library *library, const struct check_kind *kind)
{
    for (int version = kind->oldest; version <= kind->newest; version++) {
        if (exports(library, kind->table, version)) return true;
    }
    return false;
}

/* The bits of state->mask are the kinds that the library has. */
static int look(struct check_case_state *state, void *arg)
{
    const struct question *question = arg;
    struct tt_library library = {.handle = NULL};
    for (int k = 0; k < NKINDS && !library.handle; k++) {
        if (question->wanted && question->wanted != kinds[k]) continue;
        tt_library_open(kinds[k]->name, 0, kinds[k]->prefix, question->file, &library);
    }
    if (!library.handle) {
        snprintf(state->note, sizeof(state->note), "%.200s cannot be loaded: %s", question->file,
                 *library.why ? library.why : "there is no file of this name in the library path");
        return 1;
    }
    for (int k = 0; k < NKINDS; k++) {
        if (question->wanted && question->wanted != kinds[k]) continue;
        if (!question->wanted && kinds[k] == &check_collnet) continue; /* it comes with a network */
        if (has_table(&library, kinds[k])) state->mask |= 1u << k;
    }
    if (!state->mask) say_symbols(question, &library, state->note, sizeof(state->note));
    return state->mask == 0;
}

const struct check_kind *check_kind_named(const char *name)
{
    for (int k = 0; k < NKINDS; k++) {
        if (!strcmp(kinds[k]->name, name)) return kinds[k];
    }
    return NULL;
}

const struct check_kind *check_look(const char *file, const struct check_kind *wanted,
                                    bool *several_out, char reason[CHECK_REASON_BYTES])
{
    struct question question = {file, wanted};
    struct check_case_state *state = check_state_map();
    const struct check_kind *found = NULL;
    int sig = 0;
    *several_out = false;
    snprintf(reason, CHECK_REASON_BYTES, "no memory to share with a child");
    if (!state) return NULL;
    switch (check_isolated(look, &question, SECONDS, state, &sig)) {
    case CHECK_OK:
        *several_out = (state->mask & (state->mask - 1)) != 0;
        if (!*several_out) found = kinds[__builtin_ctz(state->mask)];
        break;
    case CHECK_NO:
        snprintf(reason, CHECK_REASON_BYTES, "%s",
                 *state->note ? state->note : "the library ended the process while it was loaded");
        break;
    case CHECK_CRASHED:
        snprintf(reason, CHECK_REASON_BYTES, "%.200s: signal %d (%s) while it was loaded", file,
                 sig, strsignal(sig));
        break;
    case CHECK_HUNG:
        snprintf(reason, CHECK_REASON_BYTES, "%.200s: loading it did not end within %d s", file,
                 SECONDS);
        break;
    }
    munmap(state, sizeof(*state));
    return found;
}
