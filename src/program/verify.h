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
    bool
        any_result; /* not the collective's result is asked for, but that the outcome is determined:
                       all memory holds something at the start, the proof says what it ends with */
};

/* Execute the programs of all ranks symbolically (programs[r] is rank r's) and check that every
 * output element got exactly the right contributions (each rank's once, pre-operation once each,
 * post once, last), that nothing else was written, that it ends with nslots slots per edge, and
 * that conflicting direct accesses are ordered. 0-length text on success. Errors: ncclInternalError
 * with the first fault in `fault` ("rank 3 insn 4: ..."). */
ncclResult_t tt_program_verify(const struct tt_program *programs, int nranks,
                               const struct tt_verify_options *options, char *fault,
                               size_t fault_bytes);

/* ---- what was proved ---- */

struct tt_verify_value { /* of one element: lane[0] + g * lane[1] for any g, modulo 2^64, where
                            inputs are such numbers too and each rank's pre-operation multiplies by
                            tt_verify_scalar(); then the post-operation, `post` times */
    uint64_t lane[2];
    int32_t post;
    bool known; /* false: nobody wrote it */
};
uint64_t tt_verify_scalar(int rank);

struct tt_proof; /* the end of a symbolic execution; opaque */

/* tt_program_verify() that keeps what memory ends with. *proof_out is set on success (NULL: not
 * wanted) and the caller's; the programs and options must outlive it. */
ncclResult_t tt_program_prove(const struct tt_program *programs, int nranks,
                              const struct tt_verify_options *options, char *fault,
                              size_t fault_bytes, struct tt_proof **proof_out);
void tt_proof_destroy(struct tt_proof *proof); /* accepts NULL */

struct tt_proof_unit { /* elements that go through the program together */
    int rank;
    bool is_out;
    uint32_t pass;
    int chunk;
    size_t first, count;                  /* elements, from the chunk's first */
    struct tt_verify_value before, after; /* of each of its elements */
};
/* Next unit of IN and OUT of all ranks; false: no more. In place both have the same contents. */
bool tt_proof_next(struct tt_proof *proof, struct tt_proof_unit *unit_out);
