/* Inside of streams: sequence numbers, queue, operations. Private to the room.
 *
 * Every operation of a stream has a sequence number: 1, 2, 3 ... `tail` is the last one given,
 * `done` the last one finished; equal means idle. A thread that swaps tail from done to done + 1
 * has found the stream idle and holds the only unfinished sequence number: it runs its operation
 * here and now and touches no queue. Every other thread takes the next sequence number and queues.
 * Only the operation with sequence number done + 1 may run, and only the thread that finishes it
 * writes `done`.
 *
 * So a position in a stream is the pair (stream, sequence number), reached when done >= seq.
 * Streams are type-stable and sequence numbers go on when a stream is reused, hence a position is
 * valid for ever: events, waits and joins allocate nothing and count nothing. */
#pragma once

#include "op.h"

#include "device/host/heap/slab.h"
#include "device/host/host_graph.h"
#include "device/host/host_stream.h"
#include "device/host/process/state.h"

struct tt_host_attribute;
struct tt_host_cell;

struct tt_host_slot {                /* an operation in a queue */
    _Atomic uint64_t seq;            /* published last; 0: empty */
    struct tt_host_positions *after; /* owned; NULL: nothing */
    struct tt_host_op op;
};

struct tt_host_capture;
struct tt_host_chunk;
enum tt_host_life { TT_HOST_LIFE_NEW, TT_HOST_LIFE_USED, TT_HOST_LIFE_DYING, TT_HOST_LIFE_DEAD };

void tt_host_wake(
    struct CUstream_st *stream); /* call it when `done` moved and a thread sleeps; queue.c */

struct CUstream_st {
    struct tt_host_timeline line; /* first member, for tt_container_of() */
    unsigned flags;
    int device;
    bool ordered, legacy, is_own; /* ordered: the legacy rules hold; own: a thread's default */
    struct tt_host_capture *_Atomic capture; /* counted; NULL when not capturing */
    _Atomic uint32_t running;                /* a thread runs the operation at the queue's head */
    _Atomic uint32_t waiters;                /* waiting threads that run it: workers leave it */
    _Atomic uint32_t sleepers;               /* threads that sleep until `done` moves ... */
    _Atomic uint32_t wake_count;             /* ... on this word */
    _Atomic bool asks_one;                   /* of the last item; wait.c */
    /* ---- the queue ---- */
    pthread_mutex_t lock;               /* for appending */
    struct tt_host_chunk *_Atomic head; /* owned; the next ones hang on it */
    struct tt_host_chunk *tail_chunk;
    struct tt_host_chunk *_Atomic spare; /* owned */
    unsigned head_index, tail_index;
    struct tt_host_slot parked; /* begun inside a call, unfinished */
    /* ---- rarely used ---- */
    _Atomic uint32_t life;   /* enum tt_host_life */
    _Atomic uint64_t seen;   /* `done` at a worker's last visit when idle */
    _Atomic uint64_t passed; /* the same while it was busy */
    int priority;
    uint64_t id;
    struct CUstream_st *_Atomic next_ordered; /* of the device; a dead one's leads on as well */
    struct CUstream_st *prev_ordered;         /* under the lock of all streams */
    struct CUstream_st *next;     /* in a list of dead ones, or of a thread's own ones */
    struct CUgraphNode_st **tips; /* owned; capture: what the next node depends on */
    size_t ntips;
    struct tt_host_attribute *attributes; /* owned; under the lock */
};

/* ---- life.c ---- */
enum tt_host_stream_kind { TT_HOST_STREAM_FREE, TT_HOST_STREAM_ORDERED, TT_HOST_STREAM_LEGACY };
/* Storage for a stream, perhaps a dead one's. The lock of all streams is held. */
struct CUstream_st *tt_host_stream_take(int device, enum tt_host_stream_kind kind);

/* ---- stream.c ---- */
enum { TT_HOST_STREAM_MAGIC = 0x73747265 };
_Static_assert(offsetof(struct CUstream_st, line) == 0, "a stream begins with its timeline");
struct CUstream_st *tt_host_stream_default(struct CUstream_st *handle);
/* The stream behind a handle, by fast checks only: also NULL for a default stream that this thread
 * has never used.                                                                  hot
 */
static inline struct CUstream_st *tt_host_stream_glance(struct CUstream_st *handle)
{
    if (tt_host_forked()) return NULL;
    if (__builtin_expect((uintptr_t)handle > 2, 1)) {
        bool ours = tt_host_slab_holds(&tt_host.streams.slab, handle, TT_HOST_STREAM_MAGIC);
        return ours ? handle : NULL;
    }
    if ((uintptr_t)handle < 2) {
        return atomic_load_explicit(&tt_host.streams.devices[tt_host_thread.device].legacy,
                                    memory_order_acquire);
    }
    struct CUstream_st *own = tt_host_thread.own_streams;
    return own && own->device == tt_host_thread.device ? own : NULL;
}
/* The stream behind a handle, or NULL.                                                        hot
 */
static inline struct CUstream_st *tt_host_stream_find(struct CUstream_st *handle)
{
    struct CUstream_st *stream = tt_host_stream_glance(handle);
    if (stream || (uintptr_t)handle > 2 || tt_host_forked()) return stream;
    return tt_host_stream_default(handle);
}
static inline struct CUstream_st *tt_host_legacy_stream(int device) /* NULL when never used */
{
    return atomic_load_explicit(&tt_host.streams.devices[device].legacy, memory_order_seq_cst);
}
/* First of the blocking streams of the device but for the legacy one; then by next_ordered. */
static inline struct CUstream_st *tt_host_ordered_streams(int device)
{
    return atomic_load_explicit(&tt_host.streams.devices[device].ordered, memory_order_seq_cst);
}
pthread_mutex_t *tt_host_order_lock(int device);
static inline size_t tt_host_stream_number(const struct CUstream_st *stream)
{
    return tt_host_slab_number(&tt_host.streams.slab, stream);
}
struct CUstream_st *tt_host_stream_numbered(size_t number);
/* Call `visit` for every live stream, until it returns true; then true. */
bool tt_host_streams_visit(bool (*visit)(struct CUstream_st *stream, void *arg), void *arg);
/* Wait for all that was put on the device's streams up to now, also on destroyed ones. */
void tt_host_streams_wait(int device);
/* Make a destroyed stream free for reuse, if it has no work left. */
void tt_host_stream_retire(struct CUstream_st *stream);
/* Take a stream without a device and without a handle for the program. Positions in it can be
 * waited for like others. Its owner queues on it, or counts `tail` up for what will come and
 * finishes that in order. NULL when there are too many. Give it back when all sequence numbers are
 * finished; give accepts NULL. */
struct CUstream_st *tt_host_timeline_take(void);
void tt_host_timeline_give(struct CUstream_st *line);

static inline bool tt_host_stream_idle(const struct CUstream_st *stream)
{
    return tt_host_timeline_idle(&stream->line);
}

/* ---- submit.c, copy.c ---- */
enum { TT_HOST_INLINE_BYTES = 1 << 20 }; /* larger copies are left to waiters and workers */
int tt_host_stream_synchronize(struct CUstream_st *handle); /* not reported to the checker */

/* ---- queue.c ---- */
/* True when the rules of the legacy stream forbid that the claimed operation of an ordered stream
 * runs now. */
bool tt_host_stream_conflicts(const struct CUstream_st *stream);

/* Leave the unfinished operation of a claimed stream to waiters and workers. Returns 0. */
int tt_host_stream_park(struct CUstream_st *stream, const struct tt_host_op *op);
int tt_host_stream_park_call(struct CUstream_st *stream, void (*fn)(void *), void *arg);
/* Queue a copy of *op after what the rules of the legacy stream demand. *position_out (unless NULL)
 * is its position. 2: out of memory, 906: legacy stream in a capture; then nothing of op was taken.
 */
int tt_host_stream_append_at(struct CUstream_st *stream, const struct tt_host_op *op,
                             struct tt_host_position *position_out);
static inline int tt_host_stream_append(struct CUstream_st *stream, const struct tt_host_op *op)
{
    return tt_host_stream_append_at(stream, op, NULL);
}
/* The positions that a query of the legacy stream is about: the present ends of it and of the
 * blocking streams of its device. *positions_out: those that are not reached; free() them. 2, 906.
 */
int tt_host_legacy_ends(struct CUstream_st *legacy, struct tt_host_positions **positions_out);
/* The present end of the stream, as an operation that is queued now would see it: for an ordered
 * stream after the legacy stream's work. */
int tt_host_stream_end_ordered(struct CUstream_st *stream, struct tt_host_position *position_out);
static inline int tt_host_stream_end(struct CUstream_st *stream,
                                     struct tt_host_position *position_out)
{
    if (stream->ordered) return tt_host_stream_end_ordered(stream, position_out);
    uint64_t tail = atomic_load_explicit(&stream->line.tail, memory_order_seq_cst);
    *position_out = (struct tt_host_position){stream, tail};
    return TT_HOST_OK;
}
/* Run the stream's work as far as possible, host functions only up to sequence number calls_upto.
 * True when something was done. *blocker_out: the position that its first operation waits for, if
 * any. */
bool tt_host_stream_run(struct CUstream_st *stream, uint64_t calls_upto,
                        struct tt_host_position *blocker_out);

/* ---- span.c ---- */
/* False: freed memory, or more than the allocation has, or mapped without the access. */
bool tt_host_copy_fits(const struct tt_copy *copy);
bool tt_host_set_fits(const struct tt_host_op *op);
/* True when the caller of a copy must wait for it: one end is pageable, or both are host memory. */
bool tt_host_copy_blocks(const struct tt_copy *copy);
/* Copies and fills of graphs: true when the memory is still mapped, and memory that was open at
 * tt_host_op_note_opened() is still open. */
bool tt_host_op_is_mapped(const struct tt_host_op *op);
void tt_host_op_note_opened(struct tt_host_op *op);

/* ---- threads.c ---- */
/* Note that the stream has queued work; wakes a worker unless one is awake. */
void tt_host_runnable_set(struct CUstream_st *stream);
/* Before and after a host function, which may block. */
void tt_host_worker_enter(void);
void tt_host_worker_leave(void);
void tt_host_worker_wake_all(void); /* ends long back-offs */
/* For workers themselves. */
void tt_host_worker_back_off(long nsec); /* sleeps so long, or until wake_all */
bool tt_host_worker_sleep(void);         /* until something is runnable; false: something is */
/* Allow one more worker, up to one per core, when there are that many streams. */
void tt_host_worker_share(int streams);

/* ---- worker.c ---- */
void tt_host_workers_prepare(void); /* before there is a stream */
/* Run a share of the runnable streams' work, except that of `except`. Host functions are left to
 * workers: one that waits for the caller would never end. */
bool tt_host_help(const struct CUstream_st *except);

/* ---- share.c ---- */
/* Begin and end a share: the work of other streams that a thread may do while it queries or waits
 * for something else, some hundred microseconds and as many bytes as a call may copy itself. Shares
 * nest; only the outermost counts. *outer_out: pass it to end. */
void tt_host_share_begin(struct tt_host_share *outer_out);
void tt_host_share_end(const struct tt_host_share *outer);
bool tt_host_share_spent(void); /* false outside of one */

/* ---- wait.c ---- */
/* Wait for a position; runs work meanwhile. */
void tt_host_wait_position(const struct tt_host_position *position);
/* True when the position is reached, maybe after a share of work, first of what it depends on. */
bool tt_host_ask_position(const struct tt_host_position *position);
void tt_host_wait_cell(const struct tt_host_cell *cell, uint64_t number);
