/* The stepper decodes instructions: it says what a thread of a program does next, and where. The
 * executor, the verifier, the counts of slots and the flattened lists all use it, each with its own
 * meaning of "move"; no other code decodes instructions. Pure: the caller owns the state, and
 * nothing blocks.
 *
 * A driver calls tt_stepper_next(), does (or waits for) what that returns, and calls
 * tt_stepper_done(). A MOVE is one transfer: one reduction, one copy, or one of the copies of a
 * move over several ranks. The driver moves it slice by slice. A slice waits for all source slots,
 * then for all destination slots, in listed order; then data moves, the destinations are posted in
 * listed order, and the source slots are freed. */
#pragma once

#include "program/program.h"

enum tt_next {
    TT_NEXT_MOVE,  /* tt_stepper_move() says from where to where */
    TT_NEXT_ENTER, /* once per operation; the instruction's `arg` */
    TT_NEXT_LEAVE, /* once per operation; the instruction's flags */
    TT_NEXT_AWAIT, /* until tt_stepper_awaited() of the thread that the instruction names */
    TT_NEXT_OVER,  /* nothing follows */
};

struct tt_stepper {
    const struct tt_program *program; /* borrowed, as its parts */
    const struct tt_insn *insns;
    const struct tt_operand *operands;
    int rank, nranks, ring_pos;
    uint32_t pass, npasses;
    int first, pc; /* instructions of the block */
    int loop_pc;   /* of the running loop */
    int32_t i;     /* its register */
    bool by_peer;  /* the move at pc is one copy per rank */
    int walk;      /* which of its transfers; -1: not begun */
    int nwalk;
    int k; /* which chunk of the move */
};

/* Start at the first instruction of a thread of the text that `rank` runs. */
void tt_stepper_start(struct tt_stepper *stepper, const struct tt_program *program, int rank,
                      int thread, uint32_t npasses);
/* What to do now; the same answer until tt_stepper_done(), which advances. */
enum tt_next tt_stepper_next(struct tt_stepper *stepper);
void tt_stepper_done(struct tt_stepper *stepper);

/* True when `other`, a thread of the same rank, has done what this AWAIT waits for. */
bool tt_stepper_awaited(const struct tt_stepper *stepper, const struct tt_stepper *other);

static inline const struct tt_insn *tt_stepper_insn(const struct tt_stepper *stepper)
{
    return &stepper->insns[stepper->pc];
}

/* Chunk whose length the transfer has, when all its locations are scratch. */
static inline int tt_stepper_like(const struct tt_stepper *stepper)
{
    return tt_stepper_insn(stepper)->arg + stepper->k;
}

struct tt_location {
    uint8_t space; /* enum tt_space */
    bool pre;      /* a source that gets the pre-operation of rank `rank` */
    int32_t rank;  /* whose memory, or the other end of the slot's edge; own: the network's */
    int32_t edge;  /* of a slot: channel * nranks + rank, as tables of edges are laid out */
    int32_t chunk;
};

/* One call of a network that reduces, for the group of a rank: each member gives `gives` slots, and
 * gets `takes` slots. */
struct tt_network_call {
    uint32_t members, own; /* ranks of the group; the own place among them */
    uint32_t gives, takes;
};
struct tt_network_call tt_program_network(const struct tt_program *program, int rank);
/* Which of the `gives` slots of a rank is for the own rank, and which of the `takes` slots is from
 * it; `member` is its place. */
static inline uint32_t tt_network_part(const struct tt_network_call *call, uint32_t member)
{
    if (call->gives > 1) return (call->own + call->members - member) % call->members;
    return call->takes > 1 ? (member + call->members - call->own) % call->members : 0;
}
/* The rank of the group at place *at or behind it, counted over all ranks, in the ring's order if
 * the program has a ring; *at becomes its place. -1: no more. */
int tt_network_member(const struct tt_program *program, int rank, int *at);

/* Slots of an edge; of the network's it is the one to the rank itself. */
static inline bool tt_location_is_slot(const struct tt_location *location)
{
    return location->space == TT_SPACE_SLOT || location->space == TT_SPACE_NETWORK;
}

/* Position of an iteration over the locations of one side of a transfer; zeroed but for `sends` at
 * the start. */
struct tt_side {
    bool sends; /* the destinations */
    int operand, k;
};
/* Next location of that side of the current transfer; false: no more. */
bool tt_stepper_location(const struct tt_stepper *stepper, struct tt_side *side,
                         struct tt_location *location_out);

/* Range of instructions that the rank runs: those of all threads of its text. */
static inline struct tt_thread tt_text_insns(const struct tt_program *program, int rank)
{
    const struct tt_text *text = tt_program_text(program, rank);
    const struct tt_thread *threads = tt_program_threads(program);
    return (struct tt_thread){threads[text->first].first, threads[text->end - 1].end};
}

/* tt_program_find_refs() of these instructions alone. */
void tt_text_find_refs(const struct tt_program *program, int rank, uint8_t *refs);

/* Most locations on one side of any transfer of what the rank runs. */
size_t tt_stepper_locations(const struct tt_program *program, int rank);

struct tt_move { /* a transfer's locations, all at once */
    int nsrcs, ndsts;
    struct tt_location *src, *dst; /* the caller's, tt_stepper_locations() each */
};
void tt_stepper_move(const struct tt_stepper *stepper, struct tt_move *move);
