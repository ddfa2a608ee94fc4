/* Symbolic execution of one program set: what the verifier's files share. Private to the room.
 *
 * The unit of state is a slice: (pass, chunk, slice) names a range of elements of a buffer, and
 * verify_check.c has made sure that these ranges cover the buffer once, so what holds for units
 * holds for elements. A value is a multiset of contributions. Order is kept by vector clocks, one
 * component per thread of every rank. */
#pragma once

#include "step.h"
#include "verify.h"

enum tt_verify_buffer { TT_VERIFY_IN, TT_VERIFY_OUT, TT_VERIFY_BUFFERS_ };

#define TT_VERIFY_NOTHING (-1) /* value of memory that nobody wrote */

struct tt_verify_atom { /* what one rank contributed to a value */
    int32_t unit;       /* of its IN; -2: units differ */
    uint8_t times;      /* 0: nothing; saturates */
    uint8_t pre;        /* pre-operations on the way */
};

struct tt_verify_value { /* counted; atoms[value * nranks + rank] lie beside */
    int32_t refs;
    int32_t post;
};

struct tt_verify_cell { /* one unit of one buffer */
    int32_t value;
    int32_t initial;
    int32_t writer; /* global thread of the last write */
    uint32_t write_clock;
    bool referred; /* slots may refer to it until the owner's program ends */
};

struct tt_verify_slot {
    int32_t value;
    size_t count; /* elements */
};

struct tt_verify_edge { /* slots from one rank to another; allocated on first use */
    uint32_t head, tail;
    int32_t sender, receiver; /* global threads; -1: none yet */
    struct tt_verify_slot *slots;
    uint32_t *posted, *freed; /* clocks, nslots * nthreads each; part of the same allocation */
};

enum tt_verify_wait {
    TT_WAIT_NONE,
    TT_WAIT_FULL,  /* for a full slot from peer */
    TT_WAIT_FREE,  /* for a free slot to peer */
    TT_WAIT_ENTER, /* for peer to enter */
    TT_WAIT_LEAVE, /* for peer to leave */
};

struct tt_verify_cursor { /* one thread of one rank */
    const struct tt_program *program;
    int thread; /* global number */
    struct tt_stepper stepper;
    size_t slice; /* of the transfer */
    bool ended;
    enum tt_verify_wait wait;
    int wait_peer;
};

struct tt_verify {
    const struct tt_program *programs; /* borrowed */
    const struct tt_verify_options *options;
    int nranks, nthreads;
    struct tt_geometry geometry;
    int nchunks;    /* chunk numbers in use: max of ranks and chunks of a window */
    size_t slice;   /* elements */
    size_t nslices; /* of the largest chunk */
    size_t nunits;  /* per buffer */

    struct tt_verify_cursor *cursors;      /* nthreads; owned like all below */
    uint32_t *clocks;                      /* nthreads * nthreads */
    uint32_t *enter_clocks, *leave_clocks; /* nranks * nthreads; 0 while not done */
    bool *entered, *left;                  /* nranks */
    bool *knows;                           /* [rank * nranks + owner]: may address its buffers */
    int *main_thread;                      /* nranks: first global thread */
    struct tt_verify_cell *cells;          /* nranks * 2 * nunits */
    uint32_t *read_clocks;                 /* per cell: nthreads */
    struct tt_verify_edge *edges;          /* [from * nranks + to] */
    struct tt_move move;                   /* scratch: the places of one transfer */

    struct tt_verify_value *values;
    struct tt_verify_atom *atoms;
    int32_t nvalues, free_value; /* capacity; head of the free list (in refs), -1: full */

    char *fault; /* borrowed */
    size_t fault_bytes;
    bool failed;
};

/* ---- verify_check.c ---- */

/* Opcodes, operands and loops are well-formed, and the programs fit each other. */
bool tt_verify_wellformed(struct tt_verify *verify);
/* Chunks of all passes cover the buffer exactly once. */
bool tt_verify_cover(struct tt_verify *verify);

/* ---- verify_state.c ---- */

bool tt_verify_state_init(struct tt_verify *verify);
void tt_verify_state_fini(struct tt_verify *verify);

/* First fault wins. `cursor` NULL: about no instruction. Returns false always. */
bool tt_verify_fail(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

size_t tt_verify_unit(const struct tt_verify *verify, uint32_t pass, int chunk, size_t slice);

/* The contribution of one unit of a rank's IN. -1 when memory is short. References are owned. */
int32_t tt_verify_value_new(struct tt_verify *verify);
int32_t tt_verify_value_input(struct tt_verify *verify, int rank, size_t unit);
void tt_verify_value_hold(struct tt_verify *verify, int32_t value);
void tt_verify_value_drop(struct tt_verify *verify, int32_t value);
static inline struct tt_verify_atom *tt_verify_atoms(const struct tt_verify *verify, int32_t value)
{
    return &verify->atoms[(size_t)value * (size_t)verify->nranks];
}

struct tt_verify_place { /* one unit of one rank's buffer */
    enum tt_verify_buffer buffer;
    int rank;
    int chunk;
    size_t unit;
};

/* The cell behind a place; in place, IN and OUT share cells. */
struct tt_verify_cell *tt_verify_cell(const struct tt_verify *verify,
                                      const struct tt_verify_place *place);
/* True when the rank's OUT is part of its IN or the reverse. */
bool tt_verify_shares(const struct tt_verify *verify, int rank);

/* Read or write a place: range, reachability and order are checked, the access is recorded. */
struct tt_verify_cell *tt_verify_access(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                                        const struct tt_verify_place *place, bool write);

/* Clocks. */
uint32_t *tt_verify_clock(const struct tt_verify *verify, int thread);
void tt_verify_join(const struct tt_verify *verify, uint32_t *clock, const uint32_t *other);
/* Copy the thread's clock out, then begin a new epoch. */
void tt_verify_release(const struct tt_verify *verify, int thread, uint32_t *clock_out);

struct tt_verify_edge *tt_verify_edge(struct tt_verify *verify, int from, int to);

/* ---- verify_move.c ---- */

/* Go on with the cursor's transfer. True: done. False: blocked (cursor->wait) or failed. */
bool tt_verify_move(struct tt_verify *verify, struct tt_verify_cursor *cursor);

/* ---- verify_goal.c ---- */

/* Fill in what the collective reads. */
bool tt_verify_begin(struct tt_verify *verify);
/* Every output is right, every other byte as before, all slots empty, all accesses over. */
bool tt_verify_end(struct tt_verify *verify);
