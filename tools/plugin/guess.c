/* Which kind of plugin a library is. It is opened in a child, because constructors may do anything.
 */
#include "check.h"

#include "plugin/plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>

enum { NEWEST = 16, SECONDS = 20, NET = 1, PROFILER = 2 };

static bool exports(const struct tt_library *library, const char *table)
{
    char symbol[64];
    for (int version = 1; version <= NEWEST; version++) {
        snprintf(symbol, sizeof(symbol), "%s_v%d", table, version);
        if (dlsym(library->handle, symbol)) return true;
    }
    return false;
}

static int look(struct check_case_state *state, void *arg)
{
    const char *file = arg;
    struct tt_library library;
    if (!tt_library_open("NET", 0, "libnccl-net", file, &library) &&
        !tt_library_open("PROFILER", 0, "libnccl-profiler", file, &library))
        return 1;
    state->mask = (exports(&library, "ncclNetPlugin") ? (uint32_t)NET : 0) |
                  (exports(&library, "ncclProfiler") ? (uint32_t)PROFILER : 0);
    return 0;
}

const struct check_kind *check_guess(const char *file, bool *several)
{
    struct check_case_state *state = check_state_map();
    const struct check_kind *kind = NULL;
    int sig = 0;
    *several = false;
    if (!state) return NULL;
    if (check_isolated(look, (void *)(uintptr_t)file, SECONDS, state, &sig) == CHECK_OK) {
        *several = state->mask == (NET | PROFILER);
        if (state->mask == NET) kind = &check_net;
        if (state->mask == PROFILER) kind = &check_profiler;
    }
    munmap(state, sizeof(*state));
    return kind;
}
