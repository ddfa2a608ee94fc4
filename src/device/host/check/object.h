/* A loaded object (dl_iterate_phdr) as the checker reads it. dladdr would wait for a thread that
 * runs constructors of a library, which may wait for the checker; dl_iterate_phdr does not. */
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
/* May the page be read alone? */
bool tt_check_is_sealed(const void *page);
bool tt_check_object_holds(const struct dl_phdr_info *info, const void *ptr);
