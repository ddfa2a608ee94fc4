/* Inside of streams: queue, claim, operations. Private to the room.
 *
 * A stream is a queue of operations with one claim word: whoever swaps it from 0 to 1 may run the
 * head, nobody else. Appending needs the lock, running only the claim; an idle stream (nothing
 * pending) is run by the submitting thread without touching the queue at all. */
#pragma once

#include "host_graph.h"
#include "host_stream.h"
#include "state.h"

struct host_exec;

struct host_mark { /* a place in a stream; reached once */
    _Atomic int refs;
    _Atomic bool reached;
    uint64_t time_nsec; /* valid once reached */
};

enum host_op_kind {
    HOST_OP_ITEM,
    HOST_OP_COPY,
    HOST_OP_SET,
    HOST_OP_CALL,
    HOST_OP_MARK,
    HOST_OP_WAIT,
    HOST_OP_GRAPH,
    HOST_OP_EMPTY
};

struct host_op {
    struct host_op *next;
    enum host_op_kind kind;
    union {
        struct tt_item *item;
        struct tt_copy copy;
        struct {
            void *ptr;
            unsigned value, elem_bytes;
            size_t pitch, width, height;
        } set;
        struct {
            void (*fn)(void *);
            void *arg;
        } call;
        struct host_mark *mark; /* counted */
        struct {
            struct host_exec *exec; /* counted */
            void *token;            /* names the launch: its stream, or its place in a parent */
        } launch;
    };
};

struct host_capture;

struct CUstream_st {
    uint32_t magic;
    int device;
    unsigned flags;
    int priority;
    uint64_t id;
    bool legacy, dying;
    _Atomic uint32_t claimed, pending, waiters;
    pthread_mutex_t lock;
    struct host_op *head, *tail;
    struct host_capture *_Atomic capture; /* borrowed; NULL when not capturing */
    struct CUgraphNode_st **tips;         /* owned; capture: what the next node depends on */
    size_t ntips;
};

/* The stream behind a handle, or NULL. */
struct CUstream_st *host_stream_find(struct CUstream_st *handle);

bool host_stream_claim(struct CUstream_st *stream);
void host_stream_release(struct CUstream_st *stream);
/* True when an operation may run here and now: nothing queued, no legacy ordering in the way,
 * claimed. */
bool host_stream_claim_idle(struct CUstream_st *stream);
/* Copy of *op at the end, behind what the legacy rules demand; arms the worker. 2 when out of
 * memory. */
int host_stream_append(struct CUstream_st *stream, const struct host_op *op);
/* The unfinished operation of a claimed stream goes to the head of the queue; releases the claim.
 */
int host_stream_park(struct CUstream_st *stream, const struct host_op *op);
/* Run what can be run. calls: host functions allowed. */
enum tt_step host_stream_run(struct CUstream_st *stream, bool calls);
/* A mark at the present end of the stream; NULL when everything there is done. */
int host_stream_mark(struct CUstream_st *stream, struct host_mark **mark_out);
bool host_stream_idle(const struct CUstream_st *stream);

enum tt_step host_op_step(struct host_op *op, bool calls);
void host_op_drop(struct host_op *op); /* give back what it refers to */

struct host_mark *host_mark_create(int refs);
void host_mark_drop(struct host_mark *mark);

/* Worker and waiters (worker.c). */
void host_worker_arm(void);
void host_wait_until(bool (*done)(void *arg), void *arg, struct CUstream_st *own);
/* Every live stream in turn; stops when visit answers true. */
bool host_streams_visit(bool (*visit)(struct CUstream_st *stream, void *arg), void *arg);
extern _Atomic uint32_t host_busy_streams; /* streams with something pending */
extern _Atomic int host_crowds;            /* not 0: more ranks than cores, waits yield at once */

static inline bool host_crowded(void)
{
    return atomic_load_explicit(&host_crowds, memory_order_relaxed) > 0;
}

/* Capture (capture.c): add a node behind the stream's tips. Takes what op refers to. */
int host_capture_add(struct CUstream_st *stream, const struct host_op *op);
void host_capture_invalidate(struct CUstream_st *stream);
void host_capture_leave(struct CUstream_st *stream);
struct host_capture_place; /* where in a capture an event was recorded */
struct host_capture_place *host_capture_place(struct CUstream_st *stream);
void host_capture_place_drop(struct host_capture_place *place);
int host_capture_join(struct CUstream_st *stream, const struct host_capture_place *place);

/* Executable graphs (exec.c). */
enum tt_step host_exec_step(struct host_exec *exec, void *token, bool calls);
void host_exec_hold(struct host_exec *exec);
void host_exec_drop(struct host_exec *exec);
