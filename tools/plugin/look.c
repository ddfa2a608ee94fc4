/* What a library is before it is driven: whether the loader takes it, and which tables of plugins
 * it has. It is opened in a child, because constructors may do anything. */
#include "check.h"

#include "plugin/plugin.h"

#include <ctype.h>
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SECONDS = 20, NKINDS = 5 };

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

/* ---- what else it exports ---- */

/* A hash table for names ends where the last chain does. */
static size_t count_symbols(const uint32_t *gnu)
{
    const uint32_t nbuckets = gnu[0], first = gnu[1], filter_words = gnu[2];
    const uint32_t *buckets = gnu + 4 + filter_words * (sizeof(ElfW(Addr)) / sizeof(*gnu));
    const uint32_t *chains = buckets + nbuckets;
    size_t last = 0;
    for (uint32_t b = 0; b < nbuckets; b++) {
        if (buckets[b] > last) last = buckets[b];
    }
    if (last < first) return first;
    while (!(chains[last - first] & 1U))
        last++;
    return last + 1;
}

struct exported {
    const ElfW(Sym) * symbols;
    const char *names;
    size_t count;
};

static struct exported exported_by(void *handle)
{
    struct exported found = {.count = 0};
    struct link_map *map = NULL;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return found;
    for (const ElfW(Dyn) *entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        const void *at = (const void *)entry->d_un.d_ptr; /* glibc has added the base */
        if (entry->d_tag == DT_SYMTAB) found.symbols = at;
        if (entry->d_tag == DT_STRTAB) found.names = at;
        if (entry->d_tag == DT_GNU_HASH) found.count = count_symbols(at);
    }
    if (!found.symbols || !found.names) found.count = 0;
    return found;
}

/* The kind that a symbol seems to mean; NULL: none. */
static const struct check_kind *meant_by(const char *symbol)
{
    static const struct {
        const char *word;
        const struct check_kind *kind;
    } words[] = {{"tuner", &check_tuner},
                 {"profiler", &check_profiler},
                 {"collnet", &check_collnet},
                 {"net", &check_net},
                 {"env", &check_env}};
    if (!strcasestr(symbol, "nccl") && !strcasestr(symbol, "rccl")) return NULL;
    for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++) {
        if (strcasestr(symbol, words[k].word)) return words[k].kind;
    }
    return NULL;
}

/* ", it has NAME", and what its name should be when it is no table's. */
static void say_symbol(const char *symbol, const char *before, char *note, size_t note_bytes)
{
    const struct check_kind *kind = meant_by(symbol);
    const size_t used = strlen(note), len = strlen(kind->table);
    const char *digits = symbol + strlen(symbol);
    while (digits > symbol && isdigit((unsigned char)digits[-1]))
        digits--;
    long version = strtol(digits, NULL, 10);
    if (version < kind->oldest || version > kind->newest) version = kind->newest;
    if (!strncmp(symbol, kind->table, len) && !strncmp(symbol + len, "_v", 2)) {
        snprintf(note + used, note_bytes - used, "%s%.60s", before, symbol);
    } else {
        snprintf(note + used, note_bytes - used, "%s%.60s (expected: %s_v%ld)", before, symbol,
                 kind->table, version);
    }
}

/* The names that were looked for, and those of any plugin that are there. */
static void say_symbols(const struct question *question, const struct tt_library *library,
                        char *note, size_t note_bytes)
{
    enum { MOST_NAMES = 3 };
    snprintf(note, note_bytes, "%.160s is a library, but has no table", library->path);
    const char *before = " ";
    for (int k = 0; k < NKINDS; k++) {
        if (question->wanted && question->wanted != kinds[k]) continue;
        append(note, note_bytes, before, kinds[k]->table, kinds[k]->oldest);
        append(note, note_bytes, " to ", kinds[k]->table, kinds[k]->newest);
        before = " or ";
    }
    const struct exported exported = exported_by(library->handle);
    int said = 0;
    for (size_t k = 0; k < exported.count && said < MOST_NAMES; k++) {
        const ElfW(Sym) *symbol = &exported.symbols[k];
        const char *name = exported.names + symbol->st_name;
        if (symbol->st_shndx == SHN_UNDEF || (symbol->st_info & 0xf) != STT_OBJECT) continue;
        if (meant_by(name)) say_symbol(name, said++ ? ", " : "; it has ", note, note_bytes);
    }
    if (said) return;
    const size_t used = strlen(note);
    snprintf(note + used, note_bytes - used,
             "; it exports no table at all: C++ needs extern \"C\" const, as a const alone is "
             "local to its file");
}

static bool has_table(const struct tt_library *library, const struct check_kind *kind)
{
    for (int version = kind->oldest; version <= kind->newest; version++) {
        if (exports(library, kind->table, version)) return true;
    }
    return false;
}

static void say_absent(const char *file, const struct tt_library *library, char *note,
                       size_t note_bytes)
{
    snprintf(note, note_bytes, "%.200s cannot be loaded: %s", file,
             *library->why ? library->why : "there is no file of this name in the library path");
    const size_t used = strlen(note);
    if (!strchr(file, '/') && access(file, F_OK) == 0)
        snprintf(note + used, note_bytes - used, "; did you mean ./%.200s?", file);
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
        say_absent(question->file, &library, state->note, sizeof(state->note));
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
    int ended = 0;
    *several_out = false;
    snprintf(reason, CHECK_REASON_BYTES, "no memory to share with a child");
    if (!state) return NULL;
    switch (check_isolated(look, &question, SECONDS, state, &ended)) {
    case CHECK_OK:
        *several_out = (state->mask & (state->mask - 1)) != 0;
        if (!*several_out) found = kinds[__builtin_ctz(state->mask)];
        break;
    case CHECK_NO: snprintf(reason, CHECK_REASON_BYTES, "%s", state->note); break;
    case CHECK_EXITED:
        snprintf(reason, CHECK_REASON_BYTES,
                 "%.200s: it ended the process with status %d while it was loaded", file, ended);
        break;
    case CHECK_CRASHED:
        snprintf(reason, CHECK_REASON_BYTES, "%.200s: signal %d (%s) while it was loaded", file,
                 ended, strsignal(ended));
        break;
    case CHECK_HUNG:
        snprintf(reason, CHECK_REASON_BYTES, "%.200s: loading it did not end within %d s", file,
                 SECONDS);
        break;
    }
    munmap(state, sizeof(*state));
    return found;
}
