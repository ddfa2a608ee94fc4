/* Runs programs. A work is one operation: programs bound to buffers and edges. It is put on a
 * stream, advances in slices whenever a thread calls its step, and may stop and resume at any
 * instruction.
 */
#pragma once

#include "device/device.h"
#include "nccl.h"
#include "program/program.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_member;
struct tt_transport;
struct tt_edge;
struct tt_profiler;
struct tt_prof_replay;

/* What the reduction does: type, operator and scalars. */
struct tt_reduction {
    ncclDataType_t type;
    ncclRedOp_t op;        /* ncclSum..ncclMin; Avg and PreMulSum are Sum with pre or post */
    bool pre_mul;          /* multiply each input by the scalar first, rounded to the type */
    int post_div;          /* > 1: divide the finished sum: integers truncating toward zero, 16- and
                              8-bit floats in fp32 before the one rounding, fp32 and fp64 as is */
    bool scalar_on_device; /* scalar_ptr is read when the operation runs */
    const void *scalar_ptr;
    uint64_t scalar_bits; /* the scalar, in the first bytes, when not on the device */
};

/* One reduction: nsrcs sources of count elements in listed order, stored to ndsts destinations.
 * 16- and 8-bit floats are reduced in fp32 and rounded once at the end; others in their own type.
 * One source is copied (scaled if asked). Destinations may equal a source exactly; other overlap is
 * forbidden. Any alignment. */
struct tt_reduce_job {
    const struct tt_reduction *reduction;
    void *const *dsts;
    const void *const *srcs;
    const uint64_t *pre_mask; /* bit k: multiply source k by its scalar first; NULL: none */
    const void *const
        *scalars; /* per source, of the reduction's type; NULL: the reduction's for all */
    size_t count;
    int ndsts, nsrcs;
    bool post;
    bool stream; /* the operation as a whole exceeds the cache: use non-temporal stores */
};
/* Run it. Any thread; blocks for as long as the bytes take. */
void tt_reduce_run(const struct tt_reduce_job *job);

/* Copy with the instructions that are fastest for the size; `stream` as in struct tt_reduce_job. */
void tt_copy_run(void *dst, const void *src, size_t bytes, bool stream);

/* What goes to all ranks over one edge (TT_CONN_CAST). */
enum tt_casts {
    TT_CASTS_NONE,
    TT_CASTS_SAME,  /* what a move sends to several ranks */
    TT_CASTS_PARTS, /* the whole input, in place of a block to each: a receiver takes its block.
                       Programs of one pass, in one slice, that send before they receive */
};

/* One program of an operation, bound. Everything a cursor needs; plan/ fills it. A program without
 * SLOT operands and ENTER needs no edges and no transport: a copy or a scaling within one rank. */
struct tt_frame {
    const struct tt_program *program; /* shared: outlives the work */
    const uint8_t *refs; /* tt_program_find_refs(), as long-lived; NULL: everything is copied */
    int rank;            /* whose part of the program to run */
    struct tt_geometry geometry;
    struct tt_reduction reduction;
    const char *in;
    char *out;
    char *scratch;              /* written by exec: the queue's, during the work's turn */
    size_t in_bytes, out_bytes; /* whole buffers, for staging */
    size_t elem_bytes;
    uint32_t fingerprint; /* of the operation, equal on all ranks; for messages between two ranks
                             (TT_CONN_P2P) exec uses the size instead, and numbers messages per edge
                             instead of operations */
    struct tt_call call;  /* the user's, for reports */
    int channel;          /* of a message: of its part; the parts follow each other */
    int conn;             /* enum tt_conn_index */
    bool ahead;    /* of short messages to one rank: over edges with more slots (TT_CONN_AHEAD) */
    uint8_t casts; /* enum tt_casts */
    int after;   /* 0, or 1 + index of the frame of this work that must end before this one starts:
                    messages to one peer share an edge and keep their order */
    bool begins; /* first frame of a further call of the group, which counts as one operation */
    uint64_t match; /* written by exec: the match header of the run */
    int nsame;      /* number of frames from this one on that are calls of the same kind */
    void *event;    /* parent of this frame's profiler events (its own P2p); NULL: the work's */
    /* borrowed; [channel of the program][peer], NULL where it has none */
    struct tt_edge **send_edges;
    struct tt_edge **recv_edges;
};

/* On which stream an operation of a queue was put that did not end inside of its call. */
enum { TT_ISSUE_PLACES = 32 };
struct tt_issue_place {
    _Atomic uint64_t number;                  /* of the operation, plus 1; 0: none */
    const struct CUstream_st *_Atomic stream; /* as the caller named it; compared only */
};

/* The issue queue of a communicator: its operations run one after the other in issue order,
 * whatever streams they are on. One per communicator, shared by those that share resources. */
struct tt_issue_queue {
    _Atomic uint32_t issuing; /* lock: a position on a stream and its sequence number are taken
                                 together */
    int nheld;                /* items of the graph launch that holds the lock */
    _Atomic uint64_t issued;  /* sequence numbers handed out */
    _Atomic uint64_t served;  /* sequence numbers finished */
    struct tt_work *_Atomic spare[4];              /* owned: works to reuse */
    struct tt_issue_place places[TT_ISSUE_PLACES]; /* by number; only who issues writes */
    /* used by the work that runs now: */
    char *staging; /* owned: range memory for buffers that peers cannot reach */
    size_t staging_bytes;
    char *scratch; /* owned: scratch memory of programs */
    size_t scratch_bytes;
};

/* A number for the stream on which the oldest unfinished operation of the queue is; 0: not known.
 * Any thread. */
static inline uint64_t tt_issue_head_stream(const struct tt_issue_queue *queue)
{
    enum { LEGACY = 1 }; /* the same stream has the handles 0 and 1 */
    const uint64_t head = atomic_load_explicit(&queue->served, memory_order_acquire);
    const struct tt_issue_place *place = &queue->places[head % TT_ISSUE_PLACES];
    /* pairs with the release store of tt_issue_note() */
    if (atomic_load_explicit(&place->number, memory_order_acquire) != head + 1) return 0;
    const uintptr_t stream = (uintptr_t)atomic_load_explicit(&place->stream, memory_order_relaxed);
    /* it ended meanwhile: the entry may be another one's */
    if (atomic_load_explicit(&queue->served, memory_order_acquire) != head) return 0;
    return stream ? stream : LEGACY;
}

/* Free what the queue owns, after tt_exec_drain(). Zeroed storage is a valid queue. */
void tt_issue_queue_fini(struct tt_issue_queue *queue);

struct tt_work_events {                   /* what the profiler needs */
    struct tt_profiler *profiler;         /* borrowed; NULL: none */
    void *parent;                         /* Coll or P2p event; NULL: it has no handle */
    uint32_t mask;                        /* sampled when the call was made */
    bool channel_times;                   /* emit KernelCh, */
    bool phases;                          /* and KernelPhase */
    const struct tt_prof_replay *replays; /* captured: its calls, whose events begin with each run;
                                             copied */
    int nreplays;
};

/* One or more frames that start together (a collective: one per channel; a group of sends and
 * receives: one per message) and count as one operation on the stream and in the communicator's
 * queue. */
struct tt_work;

struct tt_work_spec {
    struct tt_member *member; /* borrowed; abort is set to the error that the work ends with */
    struct tt_transport *transport; /* borrowed */
    struct tt_issue_queue *queue;   /* borrowed */
    struct tt_frame *frames;        /* copied */
    int nframes;
    struct tt_work_events events;
    bool oversubscribed;
    bool captured; /* kept after DONE, run again by graph launches; takes a sequence number at each
                      launch */
    _Atomic uint32_t *graph_refs; /* counts captured works alive; NULL when not captured */
    bool kept; /* the owner keeps the work and submits it again (a plan's cache): RELEASE makes it
                  idle, tt_work_destroy() frees it */
};

/* Build a work item (from the queue's spares when one fits). One thread at a time per queue.
 * *work_out  the caller's until tt_exec_submit() takes it
 * Errors: ncclSystemError (out of memory). */
ncclResult_t tt_work_create(const struct tt_work_spec *spec, struct tt_work **work_out);
/* Free a work that was never submitted, or a kept one that is idle. Accepts NULL. */
void tt_work_destroy(struct tt_work *work);

/* True when a kept work is idle: it may be bound again, submitted or destroyed. Any thread. hot */
bool tt_work_idle(const struct tt_work *work);
/* True when all frames are small messages in one flat list, in which calls of a group overlap. */
bool tt_work_is_flat(const struct tt_work *work);
/* What the profiler needs of the next run of a kept work that is idle and was made with a profiler;
 * no replays. */
void tt_work_set_events(struct tt_work *work, const struct tt_work_events *events);
/* The parent of the events of one of its frames, in its next run. */
void tt_work_set_event(struct tt_work *work, int frame, void *event);
/* Give all frames of a kept work new buffers of the same sizes. False: it is busy. hot */
bool tt_work_rebind(struct tt_work *work, const void *in, void *out);
struct tt_buffers { /* of one frame; borrowed until the work ends */
    const void *in;
    void *out;
};
/* Give each frame of an idle kept work its own buffers; `buffers` has one entry per frame. hot */
void tt_work_rebind_each(struct tt_work *work, const struct tt_buffers *buffers);

/* What a call reads and writes, for the race checker; inside of step(item, TT_ITEM_TOUCH). */
struct tt_touched {
    enum tt_func func;
    bool root; /* this rank is the root */
    const char *in, *out;
    size_t in_bytes, out_bytes;
};
void tt_touch_buffers(const struct tt_touched *touched);

/* Put the work on the stream. On an idle stream the work runs here for about 2 us at most (one pass
 * where ranks outnumber cores), and waiters and workers finish the rest: returns TT_CLAIM_TAKEN. On
 * a busy stream it is queued: returns TT_CLAIM_BUSY, with *rc_out as of tt_exec_submit(). For a
 * captured or invalid stream it returns tuttiHostClaim()'s answer and does nothing.
 * The position on the stream and the sequence number are taken in one step: a call or graph launch
 * of another thread comes before both or after both, so streams and queue have the same order. The
 * work frees itself unless kept. One thread at a time per communicator; blocks only where
 * tt_exec_submit() does. hot */
enum tt_claim tt_exec_launch(struct tt_work *work, struct CUstream_st *stream,
                             ncclResult_t *rc_out);

/* Put the work at the end of the stream's queue: it is captured, or takes a sequence number. The
 * work frees itself unless kept; after an error it is destroyed (a kept one is idle again). One
 * thread at a time per communicator. Blocks only when the stream refuses the work: it then waits
 * for the turn of the number taken. Errors: ncclUnhandledCudaError. */
ncclResult_t tt_exec_submit(struct tt_work *work, struct CUstream_st *stream);

/* Wait until all sequence numbers of `queue` are served, and run streams' work meanwhile. Blocks;
 * at most half a second when the member was aborted, since works on stalled streams end only when
 * their turn comes. Errors: the member's abort code. */
ncclResult_t tt_exec_drain(const struct tt_member *member, struct tt_issue_queue *queue);
