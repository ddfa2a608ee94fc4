/* Symbols and relocations of a loaded object, from dl_iterate_phdr(). Not from dladdr(), which
 * waits for a thread that runs constructors of a library, and that may wait for the checker. */
#pragma once

#include <link.h>
#include <stdbool.h>
#include <stddef.h>

struct tt_check_object { /* borrowed, while the object is loaded */
    const char *names;
    const ElfW(Sym) * symbols;
    size_t nsymbols;
    const ElfW(Rela) * calls, *others;
    size_t ncalls, nothers;
};

/* False: it has no symbols. */
bool tt_check_object_read(const struct dl_phdr_info *info, struct tt_check_object *out);
/* Whether the page is read-only. */
bool tt_check_is_sealed(const void *page);
bool tt_check_object_holds(const struct dl_phdr_info *info, const void *ptr);
