/* State of a running work: a cursor per program thread, and what the frames of a work share. A
 * cursor may stop between any two slices; these fields are its whole state. */
#pragma once

#include "base/member.h"
#include "exec/exec.h"
#include "exec/launch_seqs.h"
#include "program/format/step.h"
#include "transport/barrier.h"
#include "transport/small.h"
#include "transport/transport.h"

/* Result of running a cursor. */
enum tt_run {
    TT_RUN_DONE,
    TT_RUN_PROGRESS,
    TT_RUN_WAIT,
    TT_RUN_FAILED, /* work->rc says why */
};

/* One side of a move: an operand for many ranks is expanded to as many locations. */
struct tt_locations {
    int count;
    int ready;             /* so many, from the first on, are ready */
    struct tt_edge **edge; /* NULL: memory */
    char **base;           /* memory: start of the chunk */
    void **at;             /* this slice */
};

struct tt_cursor {
    const struct tt_frame *frame; /* borrowed from the work */
    int frame_index;
    int part;             /* of the flat list: the last one of the frame */
    int first_op, end_op; /* of the flat list: the frame's */
    int thread;           /* of the program */
    struct tt_stepper stepper;
    bool done;
    bool sized;               /* the length of the transfer is known */
    bool moving;              /* the transfer at the stepper's position is under way */
    bool draining;            /* all passes are done; peers still read references */
    bool leaving;             /* counted as being at its LEAVE */
    int ref_shift;            /* which bits of frame->refs apply; see allow_refs() */
    bool overwritten;         /* the memory that it sends receives a message of the same work */
    bool ref_taken;           /* its references are valid only until the peer has taken the slot */
    bool ref_many;            /* slots of several edges hold references */
    uint8_t joined;           /* long messages that `held` holds */
    struct tt_edge *ref_edge; /* the first edge with such a slot; NULL: none */
    struct tt_edge *held;     /* where the last post waits for the one behind it; NULL: nowhere */
    /* the transfer */
    size_t done_count, total_count, slice_count; /* elements */
    size_t slot_bytes, slot_done; /* of a source slot that holds several slices; 0: none does */
    struct tt_locations src, dst;
    uint64_t *pre_mask; /* sources that get the pre-operation */
    size_t mask_bytes;
    const void **scalars; /* theirs: each rank multiplies by its own; NULL: no pre-operation */
    bool any_pre;
    int waits_for; /* rank; -1 several */
    const char *waits_what;
    _Alignas(64) char small[TT_SLOT_INLINE_BYTES];
};

/* Programs of small messages, flattened: see eager.c. */
enum tt_eager_kind {
    TT_EAGER_SEND,   /* IN to a slot */
    TT_EAGER_PAIR,   /* IN and a slot, reduced to OUT */
    TT_EAGER_TAKE,   /* a slot to OUT (the kinds up to here occur in lists of small calls) */
    TT_EAGER_COPY,   /* IN to OUT */
    TT_EAGER_PART,   /* `count` bytes of a slot, from `in_at` on, to OUT */
    TT_EAGER_PICK,   /* a slot from `in_at` on, or IN, becomes a source */
    TT_EAGER_REDUCE, /* the sources to OUT */
    /* of several calls of one kind: */
    TT_EAGER_SEND_ALL, /* their messages to one peer in one slot */
    TT_EAGER_REST,     /* what follows their sends */
    TT_EAGER_NOTHING,  /* a REST whose messages came otherwise: the calls' own operations follow */
};
struct tt_eager_op {
    enum tt_eager_kind kind;
    int after_sends;              /* operations of the part's sends that come before */
    uint32_t bytes;               /* of a message */
    uint32_t in_at, out_at;       /* bytes from the buffers' starts */
    uint32_t count;               /* REDUCE, PAIR: elements; PART: bytes */
    bool slot_first;              /* PAIR: the slot is the first source */
    const struct tt_frame *frame; /* borrowed, as is */
    struct tt_eager_op *next;     /* one of the part; NULL: none */
    struct tt_eager_op *each; /* SEND_ALL, REST: the first call's own operation, and of REST all */
    int neach;                /* so many; REST's last one leads on as REST does */
    int ncalls;               /* the others' frames follow `frame` */
    struct tt_edge *edge;     /* borrowed; NULL: memory, and no `small` */
    const struct tt_edge_small *small;
    /* SEND: one of small's */
    bool (*send)(struct tt_edge *edge, uint64_t match, const void *bytes, size_t len_bytes);
    void (*pair)(void *dst, const void *a, const void *b, size_t count); /* NULL: any, REDUCE */
};
/* A sequence of operations. */
struct tt_eager_part {
    struct tt_eager_op *at, *first, *last; /* borrowed; `at`: the next one; NULL: none */
    struct tt_eager_op *twin; /* its `next` is changed together with that of `last`; NULL: none */
    int passed;               /* how many are done */
    int after[2];             /* parts that must end before, plus 1; 0: none */
    int sends;                /* the part that the operations' after_sends count, plus 1; 0: none */
    bool over;                /* also of an empty part: those that it comes after are */
};
#define TT_EAGER_MAX_RANKS 32
struct tt_eager {
    int nops, nparts;
    int done; /* parts from the start that are */
    int nsrcs, nfull;
    const void *srcs[TT_EAGER_MAX_RANKS];     /* of the one reduction that is under way */
    struct tt_edge *full[TT_EAGER_MAX_RANKS]; /* picked slots to give back */
    const char *late;        /* the message that was waited for last, of the operation at hand */
    int limit;               /* of operations */
    struct tt_eager_op *ops; /* in the work's allocation, as are the parts: */
    struct tt_eager_part *parts; /* two for each frame at most */
    /* while it is made: the last part of collectives with sends, without; plus 1 */
    int sends, rests;
    bool open; /* those two take what the next collective does */
};

struct tt_channel_events {
    void *kernel, *phase; /* the plugin's handles; NULL: none is open */
    int phase_id;         /* of what is or was open: initial_sync, compute, final_sync */
};

enum tt_work_phase { TT_WORK_IDLE, TT_WORK_TURN, TT_WORK_STAGE_IN, TT_WORK_RUN, TT_WORK_STAGE_OUT };

struct tt_stage { /* one foreign buffer and its bounce buffer */
    char *user, *range;
    size_t bytes;
};

struct tt_work {
    struct tt_item item;
    struct tt_member *member;       /* borrowed */
    struct tt_transport *transport; /* borrowed; NULL when no frame uses it */
    struct tt_issue_queue *queue;   /* borrowed */
    struct tt_work_events events;
    _Atomic uint32_t *graph_refs;
    _Atomic uint32_t in_flight; /* kept works: submitted and not released */
    enum tt_work_phase phase;
    ncclResult_t rc;
    uint64_t seq;
    struct tt_launch_seqs seqs; /* captured: of launches to come */
    size_t slice_bytes;         /* of the transport's slots */
    int polls_per_step;         /* polls of a slot before a step gives up */
    int polls_now;              /* the same now; 1 in a long wait */
    bool oversubscribed, captured, kept;
    bool stream;         /* stores go around the cache */
    bool uses_transport; /* some frame of conn 0: the run takes an operation number, */
    bool each_counts;    /* and each of its frames another one */
    bool expects;        /* receives are posted in advance, see tt_edge_expect() */
    bool announced;      /* the network or a profiler is informed before the first step */
    bool tracks;         /* with a profiler: some edge reports its steps, see tt_edge_track() */
    /* shared barrier */
    uint64_t match; /* of frame 0 */
    int nentered;   /* frames with ENTER */
    bool entered, left;
    int nleaving, narrived, ngone;
    struct tt_arrival *arrivals; /* nranks */
    /* staging */
    int nstages;
    struct tt_stage stages[2]; /* in, out; or their union */
    size_t staged_bytes;
    bool has_scratch; /* some frame's program */
    const char *user_in;
    char *user_out;
    /* waiting */
    uint32_t polls;            /* steps in a row without progress */
    bool waits_long;           /* the wait has been entered in the registry */
    uint64_t waits_since_nsec; /* set when polls_now became 1 */
    int wait_slot;             /* of base/wait; -1 not entered */
    /* parts of this allocation */
    size_t capacity_bytes;
    int nframes, ncursors;
    struct tt_channel_events
        *channel_events;                /* per frame; NULL without profiler, as is `replays` */
    struct tt_slot_counts *slot_counts; /* per edge: of the frame that is looked at */
    struct tt_prof_replay *replays;
    bool events_open;
    struct tt_eager *eager; /* NULL: the interpreter runs the programs */
    int nlive;              /* cursors not done */
    int *frame_live;        /* the same per frame */
    struct tt_frame *frames;
    struct tt_cursor *cursors;
};

/* Note for which rank (-1: several) and for what (static text) the cursor waits. Returns
 * TT_RUN_WAIT. */
static inline enum tt_run tt_cursor_wait(struct tt_cursor *cursor, int rank, const char *what)
{
    cursor->waits_for = rank;
    cursor->waits_what = what;
    return TT_RUN_WAIT;
}

/* Advance one cursor until it ends, waits, or has moved that many slices. */
enum tt_run tt_cursor_run(struct tt_work *work, struct tt_cursor *cursor, int slices);

/* Poll an edge until its next slot is full (tt_edge_peek()). ncclInProgress: the step has used up
 * its polls. */
ncclResult_t tt_slot_poll(const struct tt_work *work, struct tt_edge *edge, uint64_t match,
                          const char **payload_out, size_t *bytes_out);
/* Fail because the slot holds `got` bytes, not the `want` that the program expects. */
ncclResult_t tt_slot_size_error(const struct tt_work *work, struct tt_edge *edge, size_t got,
                                size_t want);

/* Most operations that a frame flattens to; 0: it does not. */
static inline size_t tt_eager_op_limit(const struct tt_frame *frame, int nranks)
{
    if (frame->conn == TT_CONN_P2P) return 2; /* a copy within the rank is a reduction of one */
    return nranks <= TT_EAGER_MAX_RANKS ? 2 * (size_t)nranks + 2 : 0;
}
/* Flatten the programs of a work into work->eager. False: one of them cannot be flattened. */
bool tt_eager_compile(struct tt_work *work);
/* Run the list from its start until it ends or slots are missing. hot */
enum tt_run tt_eager_start(struct tt_work *work);
/* Continue a list that has waited. */
enum tt_run tt_eager_run(struct tt_work *work);
/* Wait for an edge: no slot was free, or the next slot was not full or not the expected one. DONE:
 * now it is, and *payload_out is the message. */
enum tt_run tt_eager_await_free(struct tt_work *work, const struct tt_eager_op *op);
enum tt_run tt_eager_await_full(struct tt_work *work, const struct tt_eager_op *op,
                                const char **payload_out);

/* ---- bundle.c: messages of several calls of one kind in one slot ---- */

/* How many cursors from number `at` on are calls whose messages may share slots; 1: none. */
int tt_bundle_length(const struct tt_work *work, int at);
/* Append the operations of these calls to the list as if they were one call: sends, then a REST. */
bool tt_bundle_add(struct tt_work *work, int at, int ncalls);
/* Run one of them. hot */
enum tt_run tt_bundle_run(struct tt_work *work, struct tt_eager_op *op);

/* One transfer: begin finds its locations, step moves its next slice. WAIT and PROGRESS as above;
 * DONE when the whole transfer is over. */
void tt_move_begin(struct tt_work *work, struct tt_cursor *cursor);
enum tt_run tt_move_step(struct tt_work *work, struct tt_cursor *cursor);

/* Decide whether buffers that peers cannot address need bounce buffers, and allocate these.
 * tt_stage_copy() copies the next piece in or out; true when all is copied. */
ncclResult_t tt_stage_plan(struct tt_work *work);
/* Give scratch memory to the frames whose programs use it. */
ncclResult_t tt_stage_scratch(struct tt_work *work);
bool tt_stage_copy(struct tt_work *work, bool in);
