/* The parts of our profiler plugin. It sees include/ only, so that any host of NCCL's profiler
 * interface can load it; whatever the host's version, one recorder keeps what happens.
 *
 * A thread that tells of an event writes a record of fixed size into a ring of its own, without a
 * lock; a thread of the plugin makes lines of the records. What finds its ring full is counted.
 * Handles and contexts are numbers, never addresses: those of another process, which a network
 * proxy may pass, are written down and looked at by nobody. */
#pragma once

#include "nccl/profiler.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum trace_kind { TRACE_START, TRACE_STATE, TRACE_STOP, TRACE_KIND_COUNT_ };
enum { TRACE_RINGS = 128, TRACE_WORD_BYTES = 24, TRACE_BUFFER_BYTES = 65536 };

struct trace_record {
    uint64_t ts_nsec;
    uint64_t id, parent, group;
    uint64_t context; /* the handle that init gave */
    uint64_t seq;     /* sequence number; of NetPlugin: its id; of KernelCh: the timer */
    uint64_t count;   /* elements; of a state: its value; of CeBatch: bytes */
    uint64_t tag;     /* of the user */
    uint64_t comm;    /* versions 1 to 3: the communicator's number, 0 else */
    uint32_t type;    /* a bit; of a state: its number */
    int32_t peer;     /* or root */
    int32_t steps, chunk_bytes, pid;
    uint8_t kind;
    uint8_t func, datatype, algo, proto; /* words: see trace_word() */
    uint8_t channel;                     /* or how many */
    uint8_t warps;
    bool flag; /* captured; is a send; is complete; within a node */
};

/* One producer, the thread that owns it; one consumer, whoever holds the process's lock. */
struct trace_ring {
    _Alignas(64) _Atomic uint64_t head; /* the producer's */
    uint64_t next_id;                   /* of events, goes on under the next owner */
    _Atomic uint64_t lost[TRACE_KIND_COUNT_];
    _Alignas(64) _Atomic uint64_t tail; /* the consumer's */
    _Atomic int state;                  /* enum trace_ring_state */
    int tid;
    char name[TRACE_WORD_BYTES]; /* of the thread */
    bool told;                   /* the file knows the thread */
    struct trace_record records[];
};
enum trace_ring_state { TRACE_RING_FREE, TRACE_RING_USED, TRACE_RING_LEFT };

/* All that the plugin keeps for the process. */
struct trace_process {
    /* recorder.c, of any thread */
    _Atomic bool on; /* a communicator is there and the file is open */
    _Atomic(struct trace_ring *) rings[TRACE_RINGS]; /* owned, kept until the process ends */
    _Atomic uint64_t lost[TRACE_KIND_COUNT_];        /* of threads that got no ring */
    _Atomic uint32_t word_count;
    char words[256][TRACE_WORD_BYTES];
    pthread_mutex_t word_lock;
    size_t ring_records; /* power of two; set before `on` */
    pthread_key_t thread_key;
    /* writer.c, under `lock` */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool prepared, has_thread, failed;
    int fd;
    int pid; /* whose file it is */
    int communicators;
    uint32_t last_context;
    uint64_t written[TRACE_KIND_COUNT_];
    ncclDebugLogger_t log; /* borrowed from the host; NULL: it has none */
    size_t used;
    char buffer[TRACE_BUFFER_BYTES];
};
extern struct trace_process trace_process;

/* ---- recorder.c ---- */
uint64_t trace_clock_nsec(void);
/* Keep a short word; what comes back is its number, which is the same each time. 0: no word. */
uint8_t trace_word(const char *word);
/* Copy a text of somebody else's so that it can stand in JSON: other characters become '_'. */
void trace_clean(char *to, size_t bytes, const char *from);
/* *handle is NULL when there was no room: its host then tells nothing more of this event. */
void trace_start(void *context, void **handle, const ncclProfilerEventDescr_v7_t *descr,
                 uint64_t comm);
void trace_state(void *handle, int state, uint64_t value);
void trace_stop(void *handle);
/* The calling thread ends: if it tells of one more event, it takes a ring again. */
void trace_leave_ring(void);
/* The child of a fork has one thread and no events: all rings are free again. */
void trace_forget_rings(void);

/* ---- writer.c ---- */
struct trace_communicator {
    uint64_t comm;
    const char *name; /* NULL: unknown, as are the numbers that are -1 */
    int rank, nranks, nnodes;
    int version; /* of the interface */
};
/* Begin a communicator: the first one of the process opens the file. */
ncclResult_t trace_open(void **context, int *mask, const struct trace_communicator *communicator,
                        ncclDebugLogger_t log);
/* Write what was told so far; after the last communicator the line `end` as well. */
void trace_close(void);

/* ---- lines.c ---- */
/* One record as a line; returns its length, less than `bytes`. */
size_t trace_line(const struct trace_record *record, int tid, char *line, size_t bytes);
