/* Proves the programs of all ranks before they run, by symbolic execution. Pure; allocates and
 * frees its own memory. */
#pragma once

#include "program.h"

struct tt_verify_options {
    size_t count;       /* elements (per block for BLOCKS) */
    size_t chunk_limit; /* elements */
    size_t grain;
    size_t slice; /* elements that one slot holds; 0: as much as a chunk has */
    int nslots;   /* per edge */
    bool in_place;
};

/* Execute the programs of all ranks symbolically (programs[r] is rank r's) and check that every
 * output element got exactly the right contributions (each rank's once, pre-operation once each,
 * post once, last), that nothing else was written, that it ends with nslots slots per edge, and
 * that conflicting direct accesses are ordered. 0-length text on success. Errors: ncclInternalError
 * with the first fault in `fault` ("rank 3 insn 4: ..."). */
ncclResult_t tt_program_verify(const struct tt_program *programs, int nranks,
                               const struct tt_verify_options *options, char *fault,
                               size_t fault_bytes);
