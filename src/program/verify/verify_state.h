/* Symbolic execution of one program set: what the verifier's files share. Private to the room.
 *
 * The unit of state is a slice: (pass, chunk, slice) names a range of elements of a buffer, and
 * verify_check.c has made sure that these ranges cover the buffer once, so what holds for units
 * holds for elements.
 *
 * A value is a sum of contributions, kept as two 64-bit numbers: every unit of every input has a
 * random weight, every rank a random odd scalar for its pre-operation, and a value is what the
 * program computes from the weights, modulo 2^64. Two different sums agree with a chance of 2^-128,
 * and a value costs the same for any number of ranks.
 *
 * Order is kept by vector clocks, one component per thread of every rank. A thread shares its
 * vector with what it released until it learns something new, so that a clock on a slot is a
 * pointer and a number. */
#pragma once

#include "verify.h"

#include "program/format/step.h"

enum tt_verify_buffer { TT_VERIFY_IN, TT_VERIFY_OUT, TT_VERIFY_SCRATCH };

struct tt_verify_vector { /* counted; shared once refs > 1, then never changed */
    int32_t refs;
    uint32_t at[]; /* per global thread */
};

struct tt_verify_clock { /* `vector`, but `own` for `thread`; zeroed: nothing is known */
    struct tt_verify_vector *vector; /* shared */
    int32_t thread;                  /* -1: of no thread, a sum */
    uint32_t own;
};

struct tt_verify_read { /* one more reader of a cell; index 0 ends a list */
    int32_t thread;
    uint32_t clock;
    uint32_t next;
};

struct tt_verify_cell { /* one unit of one buffer */
    struct tt_verify_value value, initial;
    int32_t writer; /* global thread of the last write */
    uint32_t write_clock;
    int32_t write_pc; /* its instruction; -1: the value that was there before */
    int32_t reader;   /* the last reader; those that it does not come after are listed in `reads` */
    uint32_t read_clock;
    uint32_t reads;
    uint32_t count;   /* elements written last: scratch has the length of what came there */
    int32_t part;     /* of a window, where they came from; -1: several are equally long */
    bool referred;    /* slots may refer to it until the owner's program ends */
    bool wanted;      /* part of the result */
    uint32_t nposted; /* slots that were not taken and may refer to it until then */
    uint32_t takes; /* threads that took such slots since it was written last: a list in `reads` */
};

struct tt_verify_slot {
    struct tt_verify_value value;
    size_t count; /* elements */
    int part;     /* as of cells */
    struct tt_verify_clock posted;
    struct tt_verify_cell *refers[2]; /* borrowed; memory that it may refer to until it is taken */
};

struct tt_verify_edge { /* slots from one rank to another; allocated on first use */
    uint32_t head, tail;
    uint32_t nslots; /* that are used: of an edge with few messages as many as these */
    struct tt_verify_slot *slots;
};

struct tt_verify_sight { /* a rank saw another one enter; moment 0: not yet */
    int32_t thread;      /* of the rank: a thread that comes after that moment of it may use it */
    uint32_t moment;
};

enum tt_verify_wait {
    TT_WAIT_NONE,
    TT_WAIT_FULL,   /* for a full slot from peer */
    TT_WAIT_FREE,   /* for a free slot to peer */
    TT_WAIT_ENTER,  /* for peer to enter */
    TT_WAIT_LEAVE,  /* for peer to leave */
    TT_WAIT_THREAD, /* for another thread of the rank */
};

struct tt_verify_cursor { /* one thread of one rank */
    const struct tt_program *program;
    int rank;
    int thread; /* global number */
    struct tt_stepper stepper;
    size_t slice; /* of the transfer */
    bool ended;
    enum tt_verify_wait wait;
    int wait_peer;
};

struct tt_verify {
    const struct tt_program *const *programs; /* borrowed, as the blocks */
    const struct tt_verify_options *options;
    int nranks, nthreads, nchannels;
    bool alone; /* each rank's memory is touched by one thread: nothing can race, and no order is
                   kept */
    struct tt_geometry geometry;
    int nchunks;     /* of the larger buffer */
    size_t slice;    /* elements */
    size_t nslices;  /* of the largest chunk */
    size_t nunits;   /* of IN, and of OUT */
    size_t per_rank; /* of all three buffers */

    uint8_t *refs;                    /* per rank, of its text; owned like all below */
    size_t *refs_at;                  /* nranks + 1: where a rank's begin, and all of them end */
    struct tt_verify_clock *ends;     /* per pass and instruction of refs: when awaited ones
                                         were done; NULL: nothing is awaited */
    struct tt_verify_cursor *cursors; /* nthreads */
    struct tt_verify_clock *clocks;   /* nthreads */
    struct tt_verify_clock *enter_clocks;         /* nranks */
    struct tt_verify_clock *leave_clocks;         /* nranks */
    struct tt_verify_clock all_entered, all_left; /* sums of these, once all are there */
    bool *entered, *left;                         /* nranks */
    struct tt_verify_sight *sights; /* [rank * nranks + owner]: may address its buffers */
    int *main_thread;               /* nranks: first global thread */
    struct tt_verify_cell *cells;   /* nranks * per_rank */
    struct tt_verify_edge *edges;   /* [channel][from][to] */
    struct tt_move move;            /* scratch: the locations of one transfer */
    int part;                       /* that it is about, as of cells */
    uint64_t *seen;                 /* scratch, [channel][rank]: last transfer that used the edge */
    uint64_t transfers;             /* looked at so far */
    struct tt_verify_value *sums;   /* per unit: the sum of all ranks' inputs; when asked */

    struct tt_verify_read *reads;
    uint32_t nreads, reads_capacity;

    char *fault; /* borrowed */
    size_t fault_bytes;
    bool failed;
};

/* ---- verify_fault.c ---- */

/* First fault wins. `cursor` NULL: about no instruction. Returns false always. */
bool tt_verify_fail(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                    const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* ---- verify_check.c ---- */

/* The blocks are well-formed and fit each other. */
bool tt_verify_wellformed(struct tt_verify *verify);
/* Chunks of all passes cover the buffer exactly once. */
bool tt_verify_cover(struct tt_verify *verify);
/* No two threads of a rank use the same end of an edge: which of them comes first would depend on
 * the schedule, and with it the fault that the execution meets first. */
bool tt_verify_ends(struct tt_verify *verify);

/* ---- verify_state.c ---- */

bool tt_verify_state_init(struct tt_verify *verify);
void tt_verify_state_fini(struct tt_verify *verify);

size_t tt_verify_unit(const struct tt_verify *verify, uint32_t pass, int chunk, size_t slice);
/* The number of an instruction of the rank's text among those of all ranks. */
size_t tt_verify_insn(const struct tt_verify *verify, int rank, int pc);
/* The end of an instruction of the rank's, for the thread that awaits it; NULL: nothing is awaited.
 */
struct tt_verify_clock *tt_verify_end_of(const struct tt_verify *verify, int rank, uint32_t pass,
                                         int pc);

/* ---- verify_value.c ---- */

/* What one unit of a buffer holds at the start; its pre-operation; sums; equality. */
struct tt_verify_value tt_verify_value_input(int rank, enum tt_verify_buffer buffer, size_t unit);
void tt_verify_value_scale(struct tt_verify_value *value, int rank);
void tt_verify_value_add(struct tt_verify_value *value, const struct tt_verify_value *other);
void tt_verify_value_take(struct tt_verify_value *value, const struct tt_verify_value *other);
bool tt_verify_value_equal(const struct tt_verify_value *a, const struct tt_verify_value *b);

/* ---- verify_clock.c ---- */

/* When `clock` says that the other thread has passed that moment. */
bool tt_verify_knows(const struct tt_verify_clock *clock, int thread, uint32_t moment);
/* Learn what `other` knows. False: out of memory (reported). */
bool tt_verify_join(struct tt_verify *verify, struct tt_verify_clock *clock,
                    const struct tt_verify_clock *other);
/* Learn what all ranks' `clocks` know; `sum` keeps that for the next call. Likewise. */
bool tt_verify_join_all(struct tt_verify *verify, struct tt_verify_clock *clock,
                        const struct tt_verify_clock *clocks, struct tt_verify_clock *sum);
/* Copy the thread's clock out (what lay there is dropped), then begin a new epoch. */
void tt_verify_release(struct tt_verify *verify, int thread, struct tt_verify_clock *clock_out);
void tt_verify_clock_drop(struct tt_verify_clock *clock);

/* ---- verify_state.c, on ---- */

struct tt_verify_location { /* one unit of one rank's buffer */
    enum tt_verify_buffer buffer;
    int rank;
    int chunk;
    size_t unit;
};

/* The cell behind a location; in place, IN and OUT share cells. */
struct tt_verify_cell *tt_verify_cell(const struct tt_verify *verify,
                                      const struct tt_verify_location *location);
/* True when the rank's OUT is part of its IN or the reverse. */
bool tt_verify_shares(const struct tt_verify *verify, int rank);

/* Read or write a location: range, reachability and order are checked, the access is recorded. */
struct tt_verify_cell *tt_verify_access(struct tt_verify *verify, struct tt_verify_cursor *cursor,
                                        const struct tt_verify_location *location, bool write);

/* A slot was posted that may refer to the cell until it is taken; the cursor takes one. */
void tt_verify_cell_post(struct tt_verify_cell *cell);
bool tt_verify_cell_take(struct tt_verify *verify, const struct tt_verify_cursor *cursor,
                         struct tt_verify_cell *cell);

/* True when all accesses to the cell come before what the clock knows. */
bool tt_verify_over(const struct tt_verify *verify, const struct tt_verify_cell *cell,
                    const struct tt_verify_clock *clock);

struct tt_verify_edge *tt_verify_edge(struct tt_verify *verify, int channel, int from, int to);

/* ---- verify_move.c ---- */

/* Go on with the cursor's transfer. True: done. False: blocked (cursor->wait) or failed. */
bool tt_verify_move(struct tt_verify *verify, struct tt_verify_cursor *cursor);

/* ---- verify_goal.c ---- */

/* Fill in what the collective reads, or, where any result will do, all memory. */
bool tt_verify_begin(struct tt_verify *verify);
/* Every output is right, every other byte as before, all slots empty, all accesses over. */
bool tt_verify_end(struct tt_verify *verify);

struct tt_verify_units { /* a walk over the units of one rank's buffer that hold elements */
    struct tt_verify_location location;
    uint32_t pass;
    size_t slice;
};
struct tt_verify_units tt_verify_units(int rank, enum tt_verify_buffer buffer);
/* The next unit; false: no more. */
bool tt_verify_next_unit(const struct tt_verify *verify, struct tt_verify_units *units);
