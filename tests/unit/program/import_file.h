/* Files of programs for tests of the importer: reading one, and what must be refused. */
#pragma once

#include <stddef.h>

struct flaw { /* in line `line` of a sound file, `from` becomes `to` */
    int line;
    const char *from, *to, *fault;
};

/* The bytes of the file, with a NUL behind them; free() them. Fails the test when there is none. */
char *import_file_read(const char *folder, const char *name, size_t *bytes_out);
/* The text is refused, with a fault that contains `wanted`, and nothing is kept. */
void import_expect_fault(const char *text, size_t bytes, const char *wanted);
/* Whichever allocation of ours fails, nothing is kept and the result says so. */
void import_expect_short_memory(const char *text);
