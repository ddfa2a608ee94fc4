/* Programs from files (TUTTI_PROGRAM_DIR): read by every rank before the bootstrap, compared and
 * proved after it. Private to comm/. */
#pragma once

#include "base/member.h"
#include "comm/records/record.h"
#include "program/import/import.h"

struct tt_import_file {       /* a file for this number of ranks, or one that is refused */
    char *path;               /* owned */
    const char *name;         /* of it, without the folder */
    struct tt_import *import; /* owned; NULL: refused */
    char *fault;              /* owned; why; else NULL */
    uint8_t *refs;            /* owned; set when all ranks have agreed */
    uint64_t hash;            /* of its content: program, sizes, or reason of the refusal */
    uint64_t least_bytes, most_bytes;
    bool predicted; /* it names no sizes: it runs for sizes where it is predicted to be fastest */
    struct tt_program_load load; /* for that prediction */
};

struct tt_imports {
    bool forced;                  /* the variable names one file: it runs for all sizes */
    struct tt_import_file *files; /* owned; sorted by name */
    int nfiles;
    struct tt_tune_program *programs; /* owned; what all ranks may run, in the order of names */
    int nprograms;
};

/* Read the folder's files for this membership; the caller owns the result. NULL: the variable is
 * not set, no file is for this number of ranks, or none can be read, which is logged. Local. */
struct tt_imports *tt_imports_read(const struct tt_member *member);
/* Hash of all files, never 0. */
uint64_t tt_imports_hash(const struct tt_imports *imports);
/* The most channels that one of the programs needs. */
int tt_imports_channels(const struct tt_imports *imports);
