/* What generators share: one function per collective and shape, and the words to write programs
 * with. A generator gets a program whose head (func .. root) is filled, appends instructions of
 * one thread after the other, and cannot fail: make.c has checked the request. */
#pragma once

#include "program/program.h"

typedef void tt_generate(const struct tt_shape *shape, struct tt_program *program);

tt_generate tt_gen_direct_allreduce, tt_gen_direct_reduce, tt_gen_direct_broadcast;
tt_generate tt_gen_direct_allgather, tt_gen_direct_reducescatter, tt_gen_direct_alltoall;
tt_generate tt_gen_direct_gather, tt_gen_direct_scatter;
tt_generate tt_gen_oneshot_allreduce, tt_gen_oneshot_reduce, tt_gen_oneshot_broadcast;
tt_generate tt_gen_oneshot_allgather, tt_gen_oneshot_reducescatter, tt_gen_oneshot_alltoall;
tt_generate tt_gen_oneshot_gather, tt_gen_oneshot_scatter;
tt_generate tt_gen_ring_allreduce, tt_gen_ring_reduce, tt_gen_ring_broadcast;
tt_generate tt_gen_ring_allgather, tt_gen_ring_reducescatter;
tt_generate tt_gen_tree_allreduce;
tt_generate tt_gen_p2p_send, tt_gen_p2p_recv;

/* ---- chunks ---- */

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

/* ---- operands ---- */

/* A place of the own rank. */
static inline struct tt_operand tt_gen_own(enum tt_space space, struct tt_gen_chunk chunk)
{
    return (struct tt_operand){.space = (uint8_t)space,
                               .peer = TT_PEER_SELF,
                               .chunk_by = (uint8_t)chunk.by,
                               .coef = (int8_t)chunk.coef,
                               .chunk = chunk.number,
                               .peer_rank = -1};
}

/* A place of one rank. */
static inline struct tt_operand tt_gen_at(enum tt_space space, int rank, struct tt_gen_chunk chunk)
{
    struct tt_operand operand = tt_gen_own(space, chunk);
    operand.peer = TT_PEER_RANK;
    operand.peer_rank = rank;
    return operand;
}

/* Places of EACH rank or of all OTHERS. */
static inline struct tt_operand tt_gen_set(enum tt_space space, enum tt_peer set,
                                           struct tt_gen_chunk chunk)
{
    struct tt_operand operand = tt_gen_own(space, chunk);
    operand.peer = (uint8_t)set;
    return operand;
}

/* ---- instructions; all append to the thread begun last ---- */

void tt_gen_thread(struct tt_program *program);               /* begin one */
void tt_gen_end(struct tt_program *program);                  /* end it */
void tt_gen_enter(struct tt_program *program, int rank);      /* -1: await all */
void tt_gen_leave(struct tt_program *program, uint8_t flags); /* 0: await all */
void tt_gen_loop(struct tt_program *program, int times);      /* times <= 0: skipped */
void tt_gen_next(struct tt_program *program);
struct tt_insn *tt_gen_move(struct tt_program *program, uint8_t flags); /* add operands to it */
void tt_gen_src(struct tt_insn *insn, struct tt_operand operand);
void tt_gen_dst(struct tt_insn *insn, struct tt_operand operand);

/* A move from one place to another. */
void tt_gen_copy(struct tt_program *program, struct tt_operand src, struct tt_operand dst);
