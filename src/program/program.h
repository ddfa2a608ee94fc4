/* Collectives as data. A program lists which chunks move where. Generators make programs; programs
 * are printed, hashed, verified for all ranks, executed and simulated. Pure room: no I/O, no
 * threads. The format and meaning of programs: format/block.h. */
#pragma once

#include "nccl.h"
#include "program/format/block.h"
#include "topo/topo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NCCL's numbers (ncclFunc_t), so plugins can be given them. */
enum tt_func {
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
    /* an AlltoAll with a count for each pair: of programs alone, no call is one (calls
       are sends and receives) */
    TT_FUNC_ALLTOALLV = TT_FUNC_COUNT_,
};
const char *tt_func_name(enum tt_func func); /* "AllReduce", ... */
bool tt_func_is_message(enum tt_func func);  /* a send or a receive: its root is the peer */
bool tt_func_from_root(enum tt_func func);   /* the root sends, all others receive */
bool tt_func_to_root(enum tt_func func);     /* all others send, the root receives */
/* True when, in place, the rank's input lies where its output belongs, and is only read. */
bool tt_func_keeps_given(enum tt_func func, bool is_root);

/* NCCL's numbers, then our own. */
enum tt_algo {
    TT_ALGO_TREE = 0,
    TT_ALGO_RING = 1,
    TT_ALGO_COLLNET_DIRECT = 2,
    TT_ALGO_COLLNET_CHAIN = 3,
    TT_ALGO_NVLS = 4,
    TT_ALGO_NVLS_TREE = 5,
    TT_ALGO_PAT = 6,
    TT_ALGO_NCCL_COUNT_ = 7,   /* number of those that tuner plugins know */
    TT_ALGO_DIRECT = 7,        /* two-shot on mapped user buffers; Simple */
    TT_ALGO_ONESHOT = 8,       /* one-shot through slots; LL */
    TT_ALGO_DOUBLING = 9,      /* recursive doubling; LL */
    TT_ALGO_HALVING = 10,      /* recursive halving, then doubling; Simple */
    TT_ALGO_BRUCK = 11,        /* LL */
    TT_ALGO_PAIRWISE = 12,     /* an AlltoAll, one partner after the other; Simple */
    TT_ALGO_HIERARCHICAL = 13, /* inside hosts, then between them */
    TT_ALGO_P2P = 14,          /* a send or a receive */
    TT_ALGO_COUNT_ = 15,
    TT_ALGO_FILE = TT_ALGO_COUNT_, /* a program from a file; in no table */
};
enum tt_proto { TT_PROTO_LL = 0, TT_PROTO_LL128 = 1, TT_PROTO_SIMPLE = 2, TT_PROTO_COUNT_ = 3 };
const char *tt_algo_name(enum tt_algo algo); /* "TREE", "RING", ..., "DIRECT", "ONESHOT", "P2P" */
const char *tt_proto_name(enum tt_proto proto);
const char *tt_type_name(int type); /* ncclDataType_t: "float"; "unknown type" */
const char *tt_op_name(int op);     /* ncclRedOp_t: "sum"; "own operator" for those not built in */

/* ---- a call in three 64-bit words ----
 * Ranks compare calls by a hash in the match header. These words are sent with it, so that an error
 * message can name the difference. */

enum { TT_CALL_OWN_OP = 255 }; /* any user operator: their numbers differ between ranks */

struct tt_call {
    uint64_t count;                 /* elements, the call's argument */
    int32_t root;                   /* or the peer of a message; -1: none */
    uint8_t func;                   /* enum tt_func */
    uint8_t type;                   /* ncclDataType_t */
    uint8_t op;                     /* ncclRedOp_t or TT_CALL_OWN_OP */
    uint8_t known;                  /* 0: nothing is known of the call */
    uint8_t algo, proto, nchannels; /* what was chosen for it */
    uint8_t zero[5];
};
_Static_assert(sizeof(struct tt_call) == 3 * sizeof(uint64_t), "fixed by the wire");

#define TT_CALL_BYTES 160 /* longest text and its end */

/* "AllReduce(count 512, float, sum)"; followed by the chosen algorithm when `chosen`. */
void tt_call_text(const struct tt_call *call, bool chosen, char text_out[TT_CALL_BYTES]);
/* True when the arguments of both calls are the same, whatever algorithms were chosen. */
bool tt_call_same(const struct tt_call *a, const struct tt_call *b);
/* True when rank `other` can finish its part of the call only after `rank` has made the call. */
bool tt_call_needs(const struct tt_call *call, int rank, int other);

/* ---- geometry: where chunk c of pass p lies, in elements ---- */

/* Element range of one chunk of one pass: filled by tt_geometry_*(). */
struct tt_extent {
    size_t first; /* from the start of the buffer, in elements */
    size_t count; /* 0: empty; the move still waits for and posts its slots once */
};

/* A program's geometry bound to a count. A buffer is one block of `count` elements, or one per
 * rank. A block is walked through in windows of nparts chunks, one window per pass; chunk c is part
 * c mod nparts of block c / nparts. The last window's chunk shrinks to ceil(rest/nparts) rounded up
 * to `grain`. All in elements. */
struct tt_geometry {
    size_t count;      /* of one block */
    size_t lo, hi;     /* this channel's part of [0, count) */
    size_t chunk;      /* regular chunk */
    size_t tail_chunk; /* of the last window */
    size_t
        block_stride; /* elements from block to block (the whole count, not the channel's part) */
    size_t scratch_stride; /* likewise of scratch: room for all passes */
    size_t grain;
    int nparts;
    uint32_t npasses;
};

/* Bind a program's geometry to a count.
 * part         this channel's part of [0, count)
 * chunk_limit  largest chunk in elements (from tune); ignored by programs of one window
 * grain        in elements; chunk boundaries are multiples of it */
void tt_geometry_init(struct tt_geometry *geometry, const struct tt_program *program, size_t count,
                      struct tt_extent part, size_t chunk_limit, size_t grain);
/* Where a chunk lies in IN and OUT; empty beyond the end of the part. */
struct tt_extent tt_geometry_extent(const struct tt_geometry *geometry, uint32_t pass, int chunk);

/* Where a chunk of scratch lies in scratch, and how many elements fit there. */
struct tt_extent tt_geometry_scratch(const struct tt_geometry *geometry, uint32_t pass, int chunk);

/* ---- making programs ---- */

struct tt_shape { /* a communicator as generators see it; all borrowed */
    int nranks;
    const int *ring_rank;             /* rank at each ring position */
    const struct tt_tree_links *tree; /* place of every rank */
    const int *by_host;               /* all ranks, host by host; NULL: they have no hosts */
    const int *host_first;            /* [nhosts + 1]: where each host begins there, and the end;
                                         NULL: hosts have as many ranks each */
    int nhosts;
    const int *counts; /* of an AlltoAllv: [from][to], in parts of a block; NULL: none */
    int head; /* the rank of a host, by local number, at which a chain reaches the network */
};

/* Make the program of (func, algo, proto, root) for all ranks of the shape. *program_out is the
 * caller's: one allocation, released with free().
 * Errors: ncclInvalidArgument naming the combination when no generator makes it; ncclSystemError.
 */
ncclResult_t tt_program_make(enum tt_func func, enum tt_algo algo, enum tt_proto proto, int root,
                             const struct tt_shape *shape, struct tt_program **program_out);

/* Whether tt_program_turn() knows how: a program without blocks whose operands name ranks by
 * number, as those of files do. */
bool tt_program_turns(const struct tt_program *program);
/* Make such a program for another root: each rank does what the rank as many numbers before it did
 * as the roots are apart. *turned_out is the caller's, released with free().
 * Errors: ncclSystemError (out of memory). */
ncclResult_t tt_program_turn(const struct tt_program *program, int root,
                             struct tt_program **turned_out);

/* True when a generator exists for the combination. */
bool tt_program_exists(enum tt_func func, enum tt_algo algo, enum tt_proto proto);

/* Memory that the slots of a move may refer to instead of holding its bytes: memory of this rank
 * that is not written any more until the program's end. Over edges with tt_edge_reads_once() it is
 * enough that it is not written until the receiver has taken the message. */
enum tt_refs {
    TT_REF_SRC = 1,       /* the only source, when it is memory and copied unchanged */
    TT_REF_DST = 2,       /* the first destination that is memory */
    TT_REF_SRC_TAKEN = 4, /* the same, but only until the messages were taken: later writes come
                             after that. Set whenever TT_REF_SRC is */
    TT_REF_DST_TAKEN = 8,
    TT_REF_BITS_ = 4,
    TT_REF_IN_PLACE_ =
        TT_REF_BITS_, /* shift: the same where the buffers are one (NCCL's in place) */
};

/* Compute refs[k] for every instruction k of the program as `rank` runs it; program->ninsns entries
 * of enum tt_refs, twice: out of place, and shifted by TT_REF_IN_PLACE_. Derived from the order of
 * the threads' writes and of all ranks' messages. A reference that cannot be proved safe is not
 * allowed: other ranks write there, memory is short, the program is too large. */
void tt_program_find_refs(const struct tt_program *program, int rank, uint8_t *refs);

/* With in-place buffers: number, in the larger buffer, of the smaller one's first chunk (the rank's
 * own block). -1: both have the same chunks, or the collective has no in-place form. */
int tt_program_in_place_chunk(const struct tt_program *program, int rank);

/* ---- looking at programs ---- */

enum tt_program_link { TT_LINK_SENDS = 1, TT_LINK_RECEIVES = 2 };

/* Set links[channel * nranks + p] to what `rank` does with slots of rank p on that channel
 * (enum tt_program_link, 0: nothing). nchannels * nranks entries, overwritten. */
void tt_program_links(const struct tt_program *program, int rank, uint8_t *links);

struct tt_slot_counts {
    uint64_t sends, receives;
};
/* Set counts[channel * nranks + p] to how many slots `rank` sends to and receives from rank p when
 * it runs the program once over `geometry` with slots of slice_count elements (> 0). As many
 * entries, overwritten. */
void tt_program_slots(const struct tt_program *program, int rank,
                      const struct tt_geometry *geometry, size_t slice_count,
                      struct tt_slot_counts *counts);

/* Check `bytes` bytes of an untrusted block: every offset, number and operand, for every rank, so
 * that no reader can go beyond the block. Whether it computes the collective is checked by
 * verify.h. False: the first fault is in `fault`. */
bool tt_program_check(const struct tt_program *program, size_t bytes, char *fault,
                      size_t fault_bytes);

/* Hash of the block's contents: equal programs have equal hashes, on all ranks and machines of one
 * byte order. */
uint64_t tt_program_hash(const struct tt_program *program);

/* Readable listing, one line per instruction; returns the length as snprintf does. */
int tt_program_print(const struct tt_program *program, char *text, size_t text_bytes);

/* Load of the busiest rank in one pass, for predictions (tune/). */
struct tt_program_load {
    double steps, messages; /* messages: sent and received */
    double touched, sent; /* in blocks (whole buffers where the collective has no blocks); touched:
                             read and written, slots included */
};
/* Compute the load of a verified program. Errors: ncclInvalidUsage (too large), ncclSystemError
 * (out of memory); nothing is logged. */
ncclResult_t tt_program_load(const struct tt_program *program, struct tt_program_load *load_out);
