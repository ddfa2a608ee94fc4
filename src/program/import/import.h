/* Reads programs in foreign formats (MSCCL, MSCCL++). Pure: the caller has read the file, and
 * reports its faults. An imported program is well-formed (tt_program_check()) and ends if it has
 * enough slots; whether its result is right is checked by verify.h. */
#pragma once

#include "program/program.h"

enum { TT_IMPORT_NAME_BYTES = 64 };

struct tt_import_place {      /* in MSCCL's XML: <gpu>, <tb> and <step> */
    int32_t gpu, block, step; /* step -1: none */
};

struct tt_import {
    struct tt_program *program;      /* owned */
    int32_t *lines;                  /* owned; of each of the program's instructions, from 1 */
    struct tt_import_place *places;  /* owned; of each of them */
    int32_t *rank_lines;             /* owned; where the file begins with each rank */
    char name[TT_IMPORT_NAME_BYTES]; /* as the file says; it may be empty */
    /* sizes that the file names, both inclusive: bytes of the user's buffer, times n for AllGather,
     * ReduceScatter and AlltoAll as NCCL counts them; 0: no upper limit */
    uint64_t min_bytes, max_bytes;
    bool in_place, out_of_place;
    int nsteps;  /* of the file */
    char *notes; /* owned; lines "line 3: ..." about what is ignored in the file; NULL: none */
};

/* Read an algorithm in MSCCL's XML, or an execution plan of MSCCL++ (JSON: the text begins with '{'
 * or '['). *import_out is set on success only, released with
 * tt_import_destroy(). Broadcast, Reduce, Gather and Scatter have root 0.
 * Errors, in `fault` beginning with "line 12: ": ncclInvalidUsage for whatever is wrong with the
 * text; ncclSystemError (memory is short; `fault` says so). Nothing is logged. */
ncclResult_t tt_import_read(const char *text, size_t text_bytes, struct tt_import **import_out,
                            char *fault, size_t fault_bytes);
void tt_import_destroy(struct tt_import *import); /* accepts NULL */

/* The line of the file that a fault of the verifier is about: of the instruction ("rank 3 insn 14:
 * ..."), else where the rank that is named first begins ("rank 3: ..."); 0: none. */
int tt_import_line(const struct tt_import *import, const char *fault);

/* The step that a fault of the verifier is about; false: it is about none, or the file is a plan.
 */
bool tt_import_find(const struct tt_import *import, const char *fault,
                    struct tt_import_place *place_out);

/* Write a program as MSCCL's XML. What was imported with `facts` comes back as an equal program;
 * NULL: a generator's, which is written for out of place. The caller frees *text_out.
 * Errors: ncclInvalidUsage, in `fault` what the format cannot say; ncclSystemError. */
ncclResult_t tt_export_msccl(const struct tt_program *program, const struct tt_import *facts,
                             char **text_out, char *fault, size_t fault_bytes);
