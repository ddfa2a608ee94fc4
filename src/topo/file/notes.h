/* Warnings about a machine file, collected as lines of text. The room has no I/O: the caller prints
 * or logs them. */
#pragma once

#include <stddef.h>

struct tt_topo_notes {
    char *text;     /* owned; NULL while empty; lines "NAME:LINE: warning: ..." */
    size_t bytes;   /* without the final zero */
    size_t dropped; /* number of lines beyond 64 KiB */
};

void tt_topo_note(struct tt_topo_notes *notes, const char *name, int line, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
void tt_topo_notes_fini(struct tt_topo_notes *notes);
