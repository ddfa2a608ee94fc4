/* What the generator of random programs writes while it goes: instructions that can still be
 * changed. Shared by its files; random_program.h is for others. */
#pragma once

#include "random_program.h"

#include "program/format/build.h"

enum { MOST_THREADS = 4, MOST_INSNS = 64, MOST_OPERANDS = 12 };

struct edit_insn { /* an instruction */
    enum tt_op op;
    uint8_t flags;
    int nsrcs, ndsts, arg, thread, nchunks;
    struct tt_operand src[MOST_OPERANDS], dst[MOST_OPERANDS];
};

struct writer {
    struct random_set *set;
    struct tt_program head;
    const struct tt_program *own; /* the library's program that this is; NULL: random */
    int position[RANDOM_RANKS];
    uint64_t state;
    int nthreads; /* of every rank */
    /* threads that own the ends of edges, [rank][peer]; -1: none yet */
    int sender[RANDOM_RANKS][RANDOM_RANKS], receiver[RANDOM_RANKS][RANDOM_RANKS];
    int second_sender[RANDOM_RANKS][RANDOM_RANKS]; /* the same of channel 1 */
    int second_receiver[RANDOM_RANKS][RANDOM_RANKS];
    struct edit_insn insns[RANDOM_RANKS][MOST_THREADS][MOST_INSNS];
    int ninsns[RANDOM_RANKS][MOST_THREADS];
    int total[RANDOM_RANKS];
    bool written[RANDOM_RANKS][8]; /* scratch chunks */
    bool direct;                   /* between ENTER and LEAVE */
    bool wide;    /* what random_wide.c adds is in it: every fourth seed, so that the others go on
                     meaning what they meant */
    bool uniform; /* all ranks are given the same instructions */
};

uint32_t random_draw(struct writer *writer, uint32_t below);
bool random_chance(struct writer *writer, uint32_t percent);
bool random_has_room(const struct writer *writer, int rank, int count);
struct edit_insn *random_append(struct writer *writer, int rank, int thread, enum tt_op op);
void random_add_src(struct edit_insn *insn, struct tt_operand operand);
void random_add_dst(struct edit_insn *insn, struct tt_operand operand);
/* Whether a thread of every rank may have all edges of channel 0 to itself; then it has. */
bool random_may_spread(const struct writer *writer, int thread);
void random_own_all_edges(struct writer *writer, int thread);

/* ---- random_own.c ---- */

/* Write one of the library's own programs. */
void random_write_own(struct writer *writer);

/* ---- random_wide.c ---- */

/* One more piece of a set, for all ranks. */
void random_wide_piece(struct writer *writer);
/* Name chunks in other words that mean the same. */
void random_wide_rename(struct writer *writer);
/* Two ranks that were given the same instructions may share a text. */
bool random_wide_same(const struct writer *writer, int rank, int other);
