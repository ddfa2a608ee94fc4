/* Text that is as wide as the terminal it is printed on. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Columns of the terminal behind `out`: COLUMNS where it is set, else what the terminal says, else
 * 80. 0: no terminal, so nothing is wrapped and each row stays one line for grep and its like. */
size_t tutti_columns(FILE *out);

/* Print text and a new line. It begins in column `at` (0: the first), goes on in column `indent` of
 * the next lines, and ends before column `width` (0: never) where its words allow. */
void tutti_print_wrapped(FILE *out, const char *text, size_t at, size_t indent, size_t width);
