/* Lines of warnings in one growing text; a hostile file cannot make it grow beyond a bound. */
#include "notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_BYTES = 65536 };

void tt_topo_note(struct tt_topo_notes *notes, const char *name, int line, const char *fmt, ...)
{
    char text[768];
    int at = snprintf(text, sizeof(text) / 2, "%s:%d: warning: ", name, line);
    if (at < 0) return;
    if ((size_t)at >= sizeof(text) / 2) at = (int)(sizeof(text) / 2) - 1;
    va_list args;
    va_start(args, fmt);
    (void)vsnprintf(text + at, sizeof(text) - (size_t)at - 1, fmt, args);
    va_end(args);
    size_t length = strlen(text);
    text[length++] = '\n';
    char *grown =
        notes->bytes + length < MOST_BYTES ? realloc(notes->text, notes->bytes + length + 1) : NULL;
    if (!grown) {
        notes->dropped++;
        return;
    }
    memcpy(grown + notes->bytes, text, length);
    notes->bytes += length;
    grown[notes->bytes] = '\0';
    notes->text = grown;
}

void tt_topo_notes_fini(struct tt_topo_notes *notes)
{
    free(notes->text);
    *notes = (struct tt_topo_notes){0};
}
