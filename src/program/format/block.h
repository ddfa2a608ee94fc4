/* The form of a program: ONE block of memory without pointers, for all ranks that run it. It can be
 * shared, stored, sent and hashed. The parts follow the head (struct tt_program), at offsets from
 * its start. The builder writes it (build.h), the stepper reads it (step.h).
 *
 *   head | texts | text of each rank | threads | instructions | operands | tables | counts
 *
 * A TEXT is the code of one kind of rank: ranks of a ring that differ only in their neighbours
 * share one, the root of a Broadcast has its own. A text has THREADS: instruction ranges that run
 * concurrently, such as the two halves of a tree. Every thread runs all its instructions once per
 * PASS; each pass handles one window of the data (struct tt_geometry). In a pass, an instruction is
 * one fused move: wait until all source slots are full and all destination slots are free, reduce
 * the sources in listed order (or copy), store to every destination, free the source slots, post
 * the destination slots. Chunks larger than a slot are moved slice by slice; both ends of an edge
 * use the same slice size.
 *
 * Meaning of one MOVE over m elements. m is the extent of the operands' chunks. All operands have
 * the same m, which the verifier checks; operands in slots carry a chunk number for that.
 *
 * - REDUCE: the sources form one list, in which EACH and OTHERS stand for several locations. Every
 *   destination gets the reduction of the list, from left to right (EACH: in rank order). All
 *   sources and destinations of a slice are ready before data moves. No destination uses
 *   TT_CHUNK_PEER.
 * - Copy with one source operand that is one location (no peer set, no TT_CHUNK_PEER): the source
 *   goes to every destination. OTHERS stands for n-1 destinations.
 * - Any other copy: one independent copy per peer p of EACH or OTHERS. In it, every operand with a
 *   peer set or TT_CHUNK_PEER means p. The copies have no order and may be interleaved by slices.
 * - No source: the destinations are posted empty. No destination: the sources are consumed.
 * - Several chunks (`nchunks`): as many moves of one chunk, one after the other. Each operand
 *   counts up from the chunk that it names.
 * - A copy from an address to the same address moves nothing.
 * - An operand whose peer does not exist (child of a leaf, flip beyond the last rank) is left out.
 * - A chunk that goes through slots has at most TT_SLOTS/2 slices, since all ranks send before they
 *   receive. Chunk limits (tune/) ensure this. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- operands ---- */

enum tt_space {
    TT_SPACE_NONE,
    TT_SPACE_IN,      /* the rank's send buffer; with a peer: that rank's, directly addressable */
    TT_SPACE_OUT,     /* the rank's receive buffer; likewise */
    TT_SPACE_SLOT,    /* the next slot of the edge to (destination) or from (source) the peer */
    TT_SPACE_SCRATCH, /* temporary memory of the own rank, undefined at the start; it has chunks of
                         its own, each as long as what a move writes there */
    TT_SPACE_NETWORK, /* a network that reduces: the k-th slot that comes from it is the sum of the
                         k-th slots that all ranks of the own group (TT_TABLE_NETWORK) gave it on
                         that channel. In an AllGather it gathers instead: for each slot that a rank
                         gives come as many as the group has ranks, one from each, in the order of
                         the ring from the own rank on. In a ReduceScatter a rank gives as many, one
                         for each in that order, for each that comes: the sum of those for it.
                         Stands for nothing at ranks without a group */
    TT_SPACE_COUNT_,
};

/* Which rank. e is `peer_number` + `peer_coef` * i, i the loop's register. */
enum tt_peer {
    TT_PEER_SELF,
    TT_PEER_RANK,   /* rank e */
    TT_PEER_EACH,   /* every rank 0..n-1 in rank order, own included: n operands in one.
                       As a SLOT source the own rank stands for IN of the own rank at the same chunk
                       (PRE applies to it); never a SLOT destination */
    TT_PEER_OTHERS, /* every rank but the own one; copies go to me+1, me+2, ... in turn */
    TT_PEER_RING,   /* e positions on in the ring (TT_TABLE_RING, TT_TABLE_POSITION) */
    TT_PEER_SHIFT,  /* (me + e) mod n */
    TT_PEER_XOR,    /* me xor e; none when that is no rank */
    TT_PEER_FLIP,   /* me xor 2^e; likewise */
    TT_PEER_UP,     /* (me + 2^e) mod n */
    TT_PEER_DOWN,   /* (me - 2^e) mod n */
    TT_PEER_TABLE,  /* my entry of table `peer_number`; none when negative */
    /* memory of every rank through one address: reduced as it is loaded (a source of a REDUCE),
       stored to all (a destination). The host device does both rank by rank, in rank order */
    TT_PEER_MULTICAST,
    TT_PEER_COUNT_,
};

/* Which chunk. e is `chunk` + `chunk_coef` * i, + k at the k-th chunk of a move. With a `stride` k
 * is not in e: the chunk is (value below) * stride + offset + k (a block of several parts). */
enum tt_chunk {
    TT_CHUNK_CONST,     /* e */
    TT_CHUNK_ME,        /* own rank + e */
    TT_CHUNK_PEER,      /* the rank that an EACH/OTHERS operand stands at */
    TT_CHUNK_RING,      /* ring position (own + e) mod n, as number */
    TT_CHUNK_RING_RANK, /* the rank at that ring position */
    TT_CHUNK_SHIFT,     /* (me + e) mod n */
    TT_CHUNK_XOR,       /* me xor e */
    TT_CHUNK_GROUP,     /* first of the aligned group of 2^e that holds me */
    TT_CHUNK_SIBLING,   /* first of the group next to it: they make one of 2^(e+1) */
    TT_CHUNK_TABLE,     /* my entry of table `chunk_table`, + e */
    TT_CHUNK_ROUND,     /* (my entry of table TT_TABLE_ROUND + e) mod `nparts` */
    TT_CHUNK_COUNT_,
};

/* Tables in the block: one number per rank each. */
enum tt_table {
    TT_TABLE_RING,     /* by position: the rank there */
    TT_TABLE_POSITION, /* position of each rank: the inverse */
    TT_TABLE_PARENT,   /* in the tree; negative: none, as in all below */
    TT_TABLE_CHILD0,
    TT_TABLE_CHILD1,
    TT_TABLE_CHILD2,
    TT_TABLE_NETWORK, /* a number per group of ranks whose data the network reduces */
    TT_TABLE_OTHER,   /* from here on: free for the program's author */
    TT_MAX_TABLES = 16,
    TT_TABLE_ROUND = TT_MAX_TABLES - 1, /* where TT_CHUNK_ROUND counts from */
};

struct tt_operand {
    uint8_t space;    /* enum tt_space */
    uint8_t peer;     /* enum tt_peer */
    uint8_t chunk_by; /* enum tt_chunk */
    uint8_t chunk_table;
    int16_t chunk_coef, peer_coef;
    int32_t chunk;
    int32_t peer_number; /* a rank, a distance, an exponent or an enum tt_table */
    int32_t offset;
    uint16_t stride;  /* 0: none */
    uint16_t channel; /* of a slot's edge: edges are named by peer and channel */
};

/* ---- instructions ---- */

enum tt_op {
    TT_OP_END,   /* end of the thread's pass */
    TT_OP_ENTER, /* publish in and out, wait until every rank of the communicator (or `arg` >= 0:
                    that rank alone; arg == own rank: none) published for this operation. arg < 0
                    waits for all. Once per operation: passes > 0 skip it */
    TT_OP_LEAVE, /* publish that I am done with the other ranks' buffers; wait until every rank has
                    (flag TT_MOVE_NO_WAIT: do not wait: no rank uses mine). Last pass only */
    TT_OP_MOVE,
    TT_OP_AWAIT, /* wait until thread `thread` of the text has done its instruction `arg` (counted
                    from its first, a MOVE outside of loops) in this pass */
    TT_OP_LOOP,  /* i = 0 .. arg-1 up to the matching NEXT; no nesting; 0: none; < 65,537 */
    TT_OP_NEXT,
    TT_OP_COUNT_,
};

enum tt_move_flags {
    TT_MOVE_REDUCE = 1, /* reduce the sources; otherwise there is one source (or none: pure post) */
    TT_MOVE_PRE = 2,    /* pre-operation on sources taken from IN (PreMulSum, Avg of floats) */
    TT_MOVE_POST = 4,   /* apply the post-operation (integer Avg) before storing */
    TT_MOVE_NO_WAIT = 8, /* on LEAVE: publish, do not wait */
};

struct tt_insn {
    uint8_t op;    /* enum tt_op */
    uint8_t flags; /* enum tt_move_flags */
    uint16_t nsrcs, ndsts;
    uint16_t thread;
    int32_t arg; /* of a MOVE between chunks of scratch alone: the chunk of the buffers that it is
                    as long as; of other moves 0 */
    int32_t nchunks;               /* of a MOVE: 1 or more; else 0 */
    uint32_t first_src, first_dst; /* operands */
};

struct tt_text { /* threads [first, end) */
    uint32_t first, end;
};

struct tt_thread { /* instructions [first, end) */
    uint32_t first, end;
};

/* ---- the head ---- */

#define TT_PROGRAM_MAGIC 0x31505454u /* "TTP1" */

struct tt_program {
    uint32_t magic, bytes;     /* of the block */
    int32_t func, algo, proto; /* enum tt_func, tt_algo, tt_proto */
    int32_t nranks;
    int32_t root;          /* -1 when the collective has none; peer for send and receive */
    int32_t nparts;        /* chunks that a block is cut into, per window */
    int32_t scratch;       /* chunks of it, at each rank */
    int32_t nchannels;     /* that its edges have, from 0; a plan that splits the data over channels
                              gives each part as many of its own */
    uint8_t in_blocks;     /* IN holds nranks blocks, else one */
    uint8_t out_blocks;    /* likewise OUT */
    uint8_t whole_window;  /* one window over everything (direct programs) */
    uint8_t needs_barrier; /* has ENTER: all ranks must be directly addressable */
    uint32_t ntexts, nthreads, ninsns, noperands;
    uint32_t texts_at, threads_at, insns_at, operands_at; /* bytes from the block's start */
    uint32_t text_of_at;              /* uint16_t per rank; 0: all ranks run text 0 */
    uint32_t table_at[TT_MAX_TABLES]; /* int32_t per rank; 0: not there */
    uint32_t counts_at; /* uint32_t per pair of ranks, [from][to]: parts of the block that the one
                           has for the other; 0: all have all. Of an AlltoAllv alone */
};
_Static_assert(sizeof(struct tt_operand) == 24, "no gaps: a block is hashed");
_Static_assert(sizeof(struct tt_insn) == 24, "no gaps: a block is hashed");
_Static_assert(sizeof(struct tt_program) == 148, "no gaps: a block is hashed");

static inline const struct tt_thread *tt_program_threads(const struct tt_program *program)
{
    return (const void *)((const char *)program + program->threads_at);
}
static inline const struct tt_insn *tt_program_insns(const struct tt_program *program)
{
    return (const void *)((const char *)program + program->insns_at);
}
static inline const struct tt_operand *tt_program_operands(const struct tt_program *program)
{
    return (const void *)((const char *)program + program->operands_at);
}
/* NULL: the program has no such table. */
static inline const int32_t *tt_program_table(const struct tt_program *program, enum tt_table table)
{
    uint32_t at = program->table_at[table];
    return at ? (const void *)((const char *)program + at) : NULL;
}
/* Parts of the block that `from` has for `to`. */
static inline int tt_program_pair(const struct tt_program *program, int from, int to)
{
    if (!program->counts_at) return program->nparts;
    const uint32_t *counts = (const void *)((const char *)program + program->counts_at);
    return (int)counts[(size_t)from * (size_t)program->nranks + (size_t)to];
}
/* The text that the rank runs. */
static inline const struct tt_text *tt_program_text(const struct tt_program *program, int rank)
{
    const struct tt_text *texts = (const void *)((const char *)program + program->texts_at);
    if (!program->text_of_at) return texts;
    const uint16_t *text_of = (const void *)((const char *)program + program->text_of_at);
    return &texts[text_of[rank]];
}
static inline int tt_program_nthreads(const struct tt_program *program, int rank)
{
    const struct tt_text *text = tt_program_text(program, rank);
    return (int)(text->end - text->first);
}
/* Chunk numbers of IN and OUT. */
static inline int tt_program_in_chunks(const struct tt_program *program)
{
    return program->in_blocks ? program->nranks * program->nparts : program->nparts;
}
static inline int tt_program_out_chunks(const struct tt_program *program)
{
    return program->out_blocks ? program->nranks * program->nparts : program->nparts;
}
