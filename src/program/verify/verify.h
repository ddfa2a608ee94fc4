/* Proves the programs of all ranks before they run, by symbolic execution. Pure; allocates and
 * frees its own memory. */
#pragma once

#include "program/program.h"

struct tt_verify_options {
    size_t count;       /* elements (per block for BLOCKS) */
    size_t chunk_limit; /* elements */
    size_t grain;
    size_t slice; /* elements that one slot holds; 0: as much as a chunk has */
    int nslots;   /* per edge */
    bool in_place;
    bool parts_apart; /* treat all parts of a window as differently long: a program that passes then
                         passes for every count */
    bool keep_order;  /* for tests: keep clocks also where nothing can race; no effect on results */
    bool any_result;  /* do not require the collective's result, only a determined one: all memory
                         is defined at the start, and the proof says what it holds at the end */
};

/* Execute the programs of all ranks symbolically (rank r runs programs[r]; it may be one block for
 * all) and check that every output element gets exactly the right contributions (each rank's once,
 * the pre-operation once each, the post-operation once, last), that nothing else is written, that
 * it ends with nslots slots per edge, and that conflicting direct accesses are ordered. `fault` is
 * "" on success. Errors: ncclInternalError with the first fault in `fault` ("rank 3 insn 4: ...").
 */
ncclResult_t tt_program_verify(const struct tt_program *const *programs, int nranks,
                               const struct tt_verify_options *options, char *fault,
                               size_t fault_bytes);

/* ---- what was proved ---- */

/* Of one element: lane[0] + g * lane[1] for any g, modulo 2^64, where inputs are such numbers too
 * and each rank's pre-operation multiplies by tt_verify_scalar(); then the post-operation, `post`
 * times. */
struct tt_verify_value {
    uint64_t lane[2];
    int32_t post;
    bool known; /* false: it was not written */
};
uint64_t tt_verify_scalar(int rank);

struct tt_proof; /* the end of a symbolic execution; opaque */

/* tt_program_verify() that keeps what memory ends with. *proof_out is set on success (NULL: not
 * wanted) and the caller's; the programs and options must outlive it. */
ncclResult_t tt_program_prove(const struct tt_program *const *programs, int nranks,
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

/* ---- programs that no generator made ---- */

struct tt_admit_options { /* how the program will be used */
    int nslots;           /* per edge */
    int nslices;          /* most that a chunk will have */
    bool in_place, out_of_place;
};
/* The use that communicators make of a program: edges of TT_PROGRAM_SLOTS slots, chunks of one. An
 * AlltoAll in place reads from a copy of its input, so it is out of place for the program. */
enum { TT_PROGRAM_SLOTS = 8 };
static inline struct tt_admit_options tt_admit_usual(const struct tt_program *program)
{
    return (struct tt_admit_options){.nslots = TT_PROGRAM_SLOTS,
                                     .nslices = 1,
                                     .in_place = program->func != TT_FUNC_ALLTOALL,
                                     .out_of_place = true};
}
struct tt_admitted; /* what was verified; opaque, of one thread at a time */
void tt_admitted_destroy(struct tt_admitted *admitted); /* accepts NULL */

/* Verify a program for such a use before its first run, unless *admitted (NULL: made now) knows the
 * same contents and use. The block has passed tt_program_check(). What is proved with chunks
 * of one slot: that chunks are moved to and from the same part of a window alone, for counts that
 * end in the first part, in the middle, in a full window and behind several; other counts leave
 * elements out and go round more often, but no element goes another way. With chunks of several
 * slots, windows that end in each part are executed too. Errors, in `fault`: ncclInvalidUsage with
 * the first fault, ncclInvalidArgument, ncclSystemError. Nothing is logged. */
ncclResult_t tt_program_admit(struct tt_admitted **admitted, const struct tt_program *program,
                              const struct tt_admit_options *options, char *fault,
                              size_t fault_bytes);
/* The same for the use that communicators make of it. *copies_out: it is right out of place alone,
 * so a call in place has to read from a copy of its input, as an AlltoAll always does. */
ncclResult_t tt_program_admit_usual(struct tt_admitted **admitted, const struct tt_program *program,
                                    bool *copies_out, char *fault, size_t fault_bytes);
/* First rank whose hash differs from rank 0's; nranks: none. `hashes` are the ranks'
 * tt_program_hash(); 0: a rank without a program. */
int tt_program_agree(const uint64_t *hashes, int nranks);
