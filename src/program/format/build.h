/* Writes a program's block: texts, their threads, instructions, operands and tables, appended in
 * that order. Generators and importers use it. Its functions do not return errors: the first
 * mistake (or lack of memory) is kept, later calls do nothing, and tt_build_end() returns it. */
#pragma once

#include "program/program.h"

struct tt_build_list { /* owned, grows; bytes */
    char *items;
    size_t bytes, capacity_bytes;
};

struct tt_builder {
    struct tt_program head; /* of the block; the caller sets the fields about the collective */
    struct tt_build_list texts, threads, insns, operands, text_of, tables[TT_MAX_TABLES];
    struct tt_build_list counts;
    ncclResult_t rc;
    char fault[160]; /* text for rc; "": out of memory */
};

/* Begin a program of `nranks` ranks: one block each of IN and OUT, one part, one channel. The
 * caller sets the other fields of builder->head (func .. whole_window). */
void tt_build_begin(struct tt_builder *builder, int nranks);
/* Begin a text; returns its number, for tt_build_assign(). Without any tt_build_assign() all ranks
 * run the first text. */
int tt_build_text(struct tt_builder *builder);
void tt_build_assign(struct tt_builder *builder, int rank, int text);
/* Give every rank a number; nranks values, copied. */
void tt_build_table(struct tt_builder *builder, enum tt_table table, const int32_t *values);

/* Give every pair of ranks a count of parts, [from][to]; copied. */
void tt_build_counts(struct tt_builder *builder, const int *counts);

/* Begin a thread of the text begun last, and instructions of that thread. */
void tt_build_thread(struct tt_builder *builder);
void tt_build_insn(struct tt_builder *builder, enum tt_op op, uint8_t flags, int arg);
void tt_build_enter(struct tt_builder *builder, int rank);      /* -1: await all */
void tt_build_leave(struct tt_builder *builder, uint8_t flags); /* 0: await all */
void tt_build_loop(struct tt_builder *builder, int times);      /* times <= 0: skipped */
void tt_build_next(struct tt_builder *builder);
void tt_build_stop(struct tt_builder *builder); /* the thread's end */
void tt_build_await(struct tt_builder *builder, int thread, int insn);
/* A move of one chunk; its sources follow, then its destinations. */
void tt_build_move(struct tt_builder *builder, uint8_t flags);
void tt_build_range(struct tt_builder *builder, int nchunks); /* make it one of several chunks */
/* Make it as long as that chunk of the buffers; where all its operands are scratch. */
void tt_build_like(struct tt_builder *builder, int chunk);
void tt_build_src(struct tt_builder *builder, struct tt_operand operand);
void tt_build_dst(struct tt_builder *builder, struct tt_operand operand);
/* A move from one location to another. */
void tt_build_copy(struct tt_builder *builder, struct tt_operand src, struct tt_operand dst);

/* Lay the block out and check it (tt_program_check()); frees what the builder holds.
 * *program_out  the caller's, released with free(); set on success only
 * Errors: ncclInvalidArgument naming the mistake, ncclSystemError (out of memory). */
ncclResult_t tt_build_end(struct tt_builder *builder, struct tt_program **program_out);

/* ---- operands ---- */

struct tt_gen_chunk { /* which chunk an operand means */
    enum tt_chunk by;
    int number;
    int coef;
};

static inline struct tt_gen_chunk tt_gen_number(int number)
{
    return (struct tt_gen_chunk){TT_CHUNK_CONST, number, 0};
}
static inline struct tt_gen_chunk tt_gen_me(void)
{
    return (struct tt_gen_chunk){TT_CHUNK_ME, 0, 0};
}
static inline struct tt_gen_chunk tt_gen_peer(void)
{
    return (struct tt_gen_chunk){TT_CHUNK_PEER, 0, 0};
}

/* A location of the rank given by `peer` and `number`. */
static inline struct tt_operand tt_gen_by(enum tt_space space, enum tt_peer peer, int number,
                                          struct tt_gen_chunk chunk)
{
    return (struct tt_operand){.space = (uint8_t)space,
                               .peer = (uint8_t)peer,
                               .chunk_by = (uint8_t)chunk.by,
                               .chunk_coef = (int16_t)chunk.coef,
                               .chunk = chunk.number,
                               .peer_number = number};
}

/* A location of the own rank. */
static inline struct tt_operand tt_gen_own(enum tt_space space, struct tt_gen_chunk chunk)
{
    return tt_gen_by(space, TT_PEER_SELF, 0, chunk);
}

/* A location of one rank. */
static inline struct tt_operand tt_gen_at(enum tt_space space, int rank, struct tt_gen_chunk chunk)
{
    return tt_gen_by(space, TT_PEER_RANK, rank, chunk);
}

/* Locations of EACH rank or of all OTHERS. */
static inline struct tt_operand tt_gen_set(enum tt_space space, enum tt_peer set,
                                           struct tt_gen_chunk chunk)
{
    return tt_gen_by(space, set, 0, chunk);
}
