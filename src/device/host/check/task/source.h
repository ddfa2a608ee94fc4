/* Source file and line of an address, from an object's debug information. Private to check/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Write "train.c:42" for the instruction at `address` (as in the object's file) to `out`. False:
 * the file has no line for it, or a form of debug information that is not read (compressed,
 * 32-bit). Allocates nothing and takes no lock, so that a signal handler may call it; reads the
 * whole table of lines, some 5 ms for 1 MB, and none of more than 32 MiB. */
bool tt_check_source_find(const char *path, uint64_t address, char *out, size_t out_bytes);
