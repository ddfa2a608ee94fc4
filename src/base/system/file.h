/* Files that the user names. Opening one never blocks on another process. */
#pragma once

#include <stddef.h>
#include <stdio.h>

/* Open a regular file for reading; the caller closes the stream. NULL with *why_out (static text,
 * or the thread's until its next error text) when it cannot be opened or is a FIFO, a folder, a
 * device or a socket: a FIFO without a writer would hang its reader. Any thread. */
FILE *tt_file_open(const char *path, const char **why_out);

/* Text of a regular file of at most `most_bytes`, ended by 0; free() it. NULL with *why_out as
 * above, or when it is too large, cannot be read whole, or memory is short. Any thread. */
char *tt_file_read(const char *path, size_t most_bytes, size_t *bytes_out, const char **why_out);

/* Open a file for writing from its start; create it when it does not exist. It may be something
 * other than a regular file (a terminal, a FIFO with a reader). NULL with errno, ENXIO for a FIFO
 * without a reader. Any thread. */
FILE *tt_file_create(const char *path);
