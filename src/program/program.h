/* Collectives as data. A program says, for ONE rank, which chunks move where; it is made by a
 * generator, can be printed, verified for all ranks, executed and simulated. Pure room: no I/O, no
 * threads.
 *
 * Model. A program has one or more threads (instruction ranges that run concurrently: the up and
 * the down half of a tree). Every thread runs all its instructions once per PASS; passes walk over
 * the data in windows (struct tt_geometry). Inside a pass, an instruction is one fused move: wait
 * until all source slots are full and all destination slots are free, fold the sources in listed
 * order (or copy), store to every destination, free the source slots, post the destination slots.
 * Chunks larger than a slot are moved slice by slice; both ends of an edge use the same slice size.
 *
 * Meaning of one MOVE over m elements. m is the extent of its operands' chunks: all of them agree
 * (the verifier says so), slot operands carry a chunk number for that reason.
 *   FOLD: the sources are one list, EACH and OTHERS standing for several; dst[*] = fold of the list
 *         in listed order (a left fold, rank order for EACH). All sources and all destinations of
 *         a slice are there before data moves. No operand uses TT_CHUNK_PEER as a destination.
 *   copy, one source operand that is one place (SELF or RANK, not TT_CHUNK_PEER): that place goes
 *         to every destination. OTHERS stands for n-1 destinations.
 *   copy, otherwise: one independent copy per peer p that EACH or OTHERS walks over; every operand
 *         with a peer set or TT_CHUNK_PEER stands at that p. Any order, any interleaving by slices.
 *   no source: drain nothing, post the destinations empty. No destination: sources are consumed.
 * A copy whose source and destination are the same address moves nothing.
 * A chunk that goes through slots has at most TT_SLOTS/2 slices (all ranks send before they
 * receive); chunk limits see to that (tune/). */
#pragma once

#include "nccl.h"
#include "topo/topo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tt_func { /* NCCL's numbers (ncclFunc_t), so plugins can be given them */
               TT_FUNC_BROADCAST = 0,
               TT_FUNC_REDUCE = 1,
               TT_FUNC_ALLGATHER = 2,
               TT_FUNC_REDUCESCATTER = 3,
               TT_FUNC_ALLREDUCE = 4,
               TT_FUNC_SEND = 6,
               TT_FUNC_RECV = 7,
               TT_FUNC_ALLTOALL = 8,
               TT_FUNC_SCATTER = 9,
               TT_FUNC_GATHER = 10,
               TT_FUNC_COUNT_ = 15,
};
const char *tt_func_name(enum tt_func func); /* "AllReduce", ... */
bool tt_func_is_message(enum tt_func func);  /* a send or a receive: its root is the peer */

enum tt_algo { /* NCCL's numbers; what lies behind them is ours */
               TT_ALGO_TREE = 0,
               TT_ALGO_RING = 1,
               TT_ALGO_COLLNET_DIRECT = 2,
               TT_ALGO_COLLNET_CHAIN = 3,
               TT_ALGO_NVLS = 4,
               TT_ALGO_NVLS_TREE = 5,
               TT_ALGO_PAT = 6,
               TT_ALGO_NCCL_COUNT_ = 7, /* what a tuner plugin sees */
               TT_ALGO_DIRECT = 7,      /* two-shot on mapped user buffers; Simple */
               TT_ALGO_ONESHOT = 8,     /* one-shot through slots; LL */
               TT_ALGO_P2P = 9,         /* a send or a receive */
               TT_ALGO_COUNT_ = 10,
};
enum tt_proto { TT_PROTO_LL = 0, TT_PROTO_LL128 = 1, TT_PROTO_SIMPLE = 2, TT_PROTO_COUNT_ = 3 };
const char *tt_algo_name(enum tt_algo algo); /* "TREE", "RING", ..., "DIRECT", "ONESHOT", "P2P" */
const char *tt_proto_name(enum tt_proto proto);

/* ---- operands ---- */

enum tt_space {
    TT_SPACE_NONE,
    TT_SPACE_IN,   /* the rank's send buffer; with a peer: that rank's, directly addressable */
    TT_SPACE_OUT,  /* the rank's receive buffer; likewise */
    TT_SPACE_SLOT, /* the next slot of the edge to (destination) or from (source) the peer */
};

enum tt_peer {
    TT_PEER_SELF,
    TT_PEER_RANK,   /* the rank in `peer_rank` */
    TT_PEER_EACH,   /* every rank 0..n-1 in rank order, own included: n operands in one.
                       As a SLOT source the own rank stands for IN of the own rank at the same chunk
                       (PRE applies to it); never a SLOT destination */
    TT_PEER_OTHERS, /* every rank but the own one; copies go to me+1, me+2, ... in turn */
};

enum tt_chunk {
    TT_CHUNK_CONST,     /* `chunk` */
    TT_CHUNK_ME,        /* own rank */
    TT_CHUNK_PEER,      /* the rank that an EACH/OTHERS operand stands at */
    TT_CHUNK_RING,      /* ring position (ringpos + chunk + coef*i) mod n, as number; the sum may be
                           negative before the mod, never below -2n */
    TT_CHUNK_RING_RANK, /* the rank at that ring position */
};

struct tt_operand {
    uint8_t space;    /* enum tt_space */
    uint8_t peer;     /* enum tt_peer */
    uint8_t chunk_by; /* enum tt_chunk */
    int8_t coef;      /* of the loop register i, for TT_CHUNK_RING* */
    int32_t chunk;
    int32_t peer_rank;
};

enum tt_op {
    TT_OP_END,   /* end of the thread's pass */
    TT_OP_ENTER, /* publish in and out, wait until every rank of the communicator (or `arg` >= 0:
                    that rank alone; arg == own rank: nobody) published for this operation. arg < 0
                    waits for all. Once per operation: passes > 0 skip it */
    TT_OP_LEAVE, /* say that I am done with the others' buffers; wait until every rank said so (flag
                    TT_MOVE_ONE_WAY: do not wait: nobody touches mine). Last pass only */
    TT_OP_MOVE,
    TT_OP_LOOP, /* i = 0 .. arg-1 up to the matching NEXT; no nesting; 0: none; < 65,537 */
    TT_OP_NEXT,
};

enum tt_move_flags {
    TT_MOVE_FOLD = 1, /* reduce the sources; otherwise there is one source (or none: pure post) */
    TT_MOVE_PRE = 2,  /* pre-operation on sources taken from IN (PreMulSum, Avg of floats) */
    TT_MOVE_POST = 4, /* apply the post-operation (integer Avg) before storing */
    TT_MOVE_ONE_WAY = 8, /* on LEAVE: say it, do not wait */
};

/* What the slots that a move posts may refer to in place of holding its bytes: memory of the own
 * rank that nobody writes from then until the program's end. Derived: tt_program_find_refs(). */
enum tt_refs {
    TT_REF_SRC = 1, /* the one source, when it is memory and copied as it is */
    TT_REF_DST = 2, /* the first destination that is memory */
    TT_REF_BITS_ = 2,
    TT_REF_IN_PLACE_ =
        TT_REF_BITS_, /* shift: the same where the buffers are one (NCCL's in place) */
};

#define TT_MAX_OPERANDS 4 /* a tree: own + 3 children; out + 3 children */

struct tt_insn {
    uint8_t op;    /* enum tt_op */
    uint8_t flags; /* enum tt_move_flags */
    uint8_t nsrcs, ndsts;
    uint8_t refs; /* enum tt_refs, twice: out of place, and shifted by TT_REF_IN_PLACE_ */
    int32_t arg;
    struct tt_operand src[TT_MAX_OPERANDS];
    struct tt_operand dst[TT_MAX_OPERANDS];
};

/* ---- geometry: where chunk c of pass p lies, in elements ---- */

enum tt_geometry_kind {
    /* One buffer of `count` elements, cut into nchunks per window. Direct programs: one window over
     * everything, chunk = ceil(count/n) rounded up to `grain`. Rings: window = nchunks*chunk; the
     * last window's chunk shrinks to ceil(rest/nchunks) rounded up to `grain`. */
    TT_GEOMETRY_SPLIT,
    /* nblocks blocks of `count` elements (one per rank; 1 for whole-buffer pipelines); chunk c of
     * pass p is elements [p*chunk, min((p+1)*chunk, count)) of block c. */
    TT_GEOMETRY_BLOCKS,
};

#define TT_MAX_THREADS 4
#define TT_MAX_INSNS 24

struct tt_program {
    enum tt_func func;
    enum tt_algo algo;
    enum tt_proto proto;
    enum tt_geometry_kind geometry;
    int nranks, rank, root; /* root: -1 when the collective has none; peer for send and receive */
    int nchunks;            /* per window */
    bool in_blocks;       /* BLOCKS: IN holds nranks blocks (else one, and its chunk is CONST 0) */
    bool out_blocks;      /* likewise OUT */
    bool needs_board;     /* has ENTER: all ranks must be directly addressable */
    bool whole_window;    /* SPLIT: one window over everything (direct programs) */
    int ring_pos;         /* own position; ring_rank[k] is borrowed from the plan's shape */
    const int *ring_rank; /* nranks entries, NULL when no ring operand occurs; rank at position k */
    int nthreads;
    int thread_first[TT_MAX_THREADS + 1]; /* instructions of thread t: [first[t], first[t+1]) */
    int ninsns;
    struct tt_insn insns[TT_MAX_INSNS];
};

/* Element range of one chunk of one pass: filled by tt_geometry_*(). */
struct tt_extent {
    size_t first; /* from the start of the buffer, in elements */
    size_t count; /* 0: empty; the move still posts and waits its slots once */
};

/* A program's geometry bound to a count. All in elements. */
struct tt_geometry {
    enum tt_geometry_kind kind;
    size_t count;        /* SPLIT: whole buffer; BLOCKS: of one block */
    size_t lo, hi;       /* this channel's part of [0, count) */
    size_t chunk;        /* regular chunk */
    size_t tail_chunk;   /* SPLIT: chunk of the last window */
    size_t block_stride; /* BLOCKS: elements from block to block (the whole count, not the channel's
                            part) */
    size_t grain;
    int nchunks;
    uint32_t npasses;
};

/* Bind. chunk_limit: largest chunk in elements (from tune), SPLIT rings and BLOCKS; direct programs
 * pass SIZE_MAX. part: this channel's, of [0, count). grain: elements, chunk boundaries are
 * multiples of it. */
void tt_geometry_init(struct tt_geometry *geometry, const struct tt_program *program, size_t count,
                      struct tt_extent part, size_t chunk_limit, size_t grain);
/* Where that chunk lies in IN and OUT, from their starts; empty beyond the part's end. */
struct tt_extent tt_geometry_extent(const struct tt_geometry *geometry, uint32_t pass, int chunk);

/* ---- making programs ---- */

struct tt_shape { /* what a generator may know of a communicator; borrowed */
    int nranks, rank;
    const int *ring_rank; /* rank at each ring position, ring_rank[ring_pos] == rank */
    int ring_pos;
    struct tt_tree_place tree;
};

/* Make the program of (func, algo, proto, root) for shape->rank.
 * Errors: ncclInvalidArgument naming the combination when no generator makes it. */
ncclResult_t tt_program_make(enum tt_func func, enum tt_algo algo, enum tt_proto proto, int root,
                             const struct tt_shape *shape, struct tt_program *program_out);

/* True when a generator exists for the combination. */
bool tt_program_exists(enum tt_func func, enum tt_algo algo, enum tt_proto proto);

/* Derive what the slots of the program's moves may refer to, from what its threads write when. What
 * cannot be shown (other ranks write here, memory is short) is not allowed. tt_program_make() has
 * done it; the verifier refuses a set in which it is wrong. Loops must be closed and flat. */
void tt_program_find_refs(struct tt_program *program);

/* Chunk of the larger buffer that the only chunk of the smaller one is, in NCCL's in place: the own
 * rank's. -1: both have the same chunks (or the collective has no in place). */
int tt_program_in_place_chunk(const struct tt_program *program);

/* ---- looking at programs ---- */

enum tt_program_link { TT_LINK_SENDS = 1, TT_LINK_RECEIVES = 2 };

/* Set links[p] to what the program does with slots of rank p (enum tt_program_link, 0: nothing).
 * nranks entries, overwritten. */
void tt_program_links(const struct tt_program *program, uint8_t *links);

struct tt_slot_counts {
    uint64_t sends, receives;
};
/* Set counts[p] to how many slots the program sends to and receives from rank p when it runs once
 * over `geometry` with slots of slice_count elements (> 0). nranks entries, overwritten. */
void tt_program_slots(const struct tt_program *program, const struct tt_geometry *geometry,
                      size_t slice_count, struct tt_slot_counts *counts);

/* Readable listing, one line per instruction; returns the length as snprintf does. */
int tt_program_print(const struct tt_program *program, char *text, size_t text_bytes);
