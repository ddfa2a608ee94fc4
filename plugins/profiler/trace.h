/* The parts of our profiler plugin. It sees include/ only, so that any host of NCCL's profiler
 * interface can load it; whatever the host's version, one recorder keeps what happens.
 *
 * A thread that reports an event writes a record of fixed size into a ring of its own, without a
 * lock; a thread of the plugin makes lines of the records. What finds its ring full is counted.
 * Handles and contexts are numbers, never addresses: those of another process, which a network
 * proxy may pass, are written down and not looked at. */
#pragma once

#include "record.h"
#include "ticks.h"

#include "nccl/profiler.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TRACE_RINGS = 128, TRACE_WORD_BYTES = 24, TRACE_BUFFER_BYTES = 65536 };
enum { TRACE_PAIRS = 4096, TRACE_PROBES = 64 }; /* counters of messages, and where one is sought */
enum { TRACE_LINE_BYTES = 1024, TRACE_WORD_SLOTS = 256, TRACE_CLOCK_PAIRS = 64 };

/* One producer, the thread that owns it; one consumer, the thread that holds the process's lock. */
struct trace_ring {
    _Alignas(64) _Atomic uint64_t head; /* the producer's; in words, as is tail */
    uint64_t seen_tail;                 /* the producer's: where tail was when it last looked */
    uint64_t next_id;                   /* of events, goes on under the next owner */
    _Atomic uint64_t lost[TRACE_KIND_COUNT_];
    _Atomic uint64_t passed;              /* starts that the sample leaves out */
    _Alignas(64) _Atomic uint64_t marked; /* the producer's: head at the last eighth of the ring */
    _Alignas(64) _Atomic uint64_t tail;   /* the consumer's: what is before has left the ring */
    uint64_t done;                        /* the consumer's: what is before is written */
    uint64_t known_head;                  /* the consumer's: head in this turn */
    bool has_left;                        /* the consumer's: nothing comes behind known_head */
    uint64_t *aside;                      /* owned: what has left and is not written; or NULL */
    bool aside_touched;
    uint64_t reported_id; /* the consumer's: of the last start */
    _Atomic int state;    /* enum trace_ring_state */
    int tid;
    char name[TRACE_WORD_BYTES]; /* of the thread */
    bool reported;               /* the file knows the thread */
    bool brought;                /* the memory is there */
    uint64_t words[];
};
enum trace_ring_state { TRACE_RING_FREE, TRACE_RING_USED, TRACE_RING_LEFT };

/* Both clocks at one time, and nanoseconds per tick since the pair before. */
struct trace_clock_pair {
    uint64_t ticks, nsec;
    double slope;
};
struct trace_clock {
    struct trace_clock_pair pairs[TRACE_CLOCK_PAIRS]; /* the last ones */
    uint64_t count;
};

struct trace_pair {
    _Atomic uint64_t key; /* of communicator, peer and function; 0: free */
    _Atomic uint32_t reported;
};

/* keep.c: with TUTTI_TRACE_KEEP, the last records. Under `lock` but for the two counters. */
struct trace_kept_record {
    struct trace_record record;
    int tid;
};
struct trace_kept {
    struct trace_kept_record *records; /* owned; a circle */
    size_t room, first, count;         /* room 0: all is written, nothing is kept */
    uint64_t span_nsec;                /* no older than this before the newest */
    uint64_t rolled;                   /* records that made room */
    uint64_t least_id[TRACE_RINGS];    /* starts of the ring before this one have gone */
    char *lines;                       /* owned: of communicators and threads */
    size_t lines_bytes;
    bool has_signals;
    _Atomic uint32_t asked, answered; /* by signals */
};

/* blocks.c: records on their way into the file. Under `lock`. */
enum { TRACE_BLOCK_WORDS = 4096, TRACE_STATE_WORDS = 256, TRACE_STATES_MOST = 256 };
struct trace_block {
    bool wanted;          /* instead of lines */
    uint64_t base_nsec;   /* when the file began */
    uint64_t first_id;    /* of the ring before the block's first start */
    uint32_t words_known; /* texts that the file knows */
    size_t used;
    uint64_t words[TRACE_BLOCK_WORDS];
};

/* All that the plugin keeps for the process. */
struct trace_process {
    /* recorder.c, of any thread */
    _Atomic bool on;                         /* a communicator is there and the file is open */
    _Atomic uint32_t sample;                 /* each so many-th operation is kept; 1: all */
    struct trace_pair messages[TRACE_PAIRS]; /* while some of them are kept: recorded so far */
    _Atomic(struct trace_ring *) rings[TRACE_RINGS]; /* owned, kept until the process ends */
    _Atomic uint64_t lost[TRACE_KIND_COUNT_];        /* of threads that got no ring */
    _Atomic uint32_t word_count;
    char words[256][TRACE_WORD_BYTES];
    pthread_mutex_t word_lock;
    _Atomic uint64_t known_words[TRACE_WORD_SLOTS]; /* where a text was last seen, and its number */
    size_t ring_words;                              /* power of two; set before `on`, as these: */
    uint64_t first_ticks;
    bool ticks_are_nsec;
    pthread_key_t thread_key;
    /* writer.c, under `lock`; not in a line that recording threads read */
    _Alignas(64) pthread_mutex_t lock;
    pthread_cond_t wake;
    bool prepared, has_thread, failed;
    int fd;
    int pid;     /* whose file it is */
    int version; /* of the interface, for its head */
    struct trace_clock clock;
    int *mask;         /* borrowed from the host while there is a communicator */
    int known;         /* the bits of its version */
    char control[256]; /* the file that changes the mask; "": none */
    uint64_t control_nsec;
    int communicators;
    uint32_t last_context;
    uint64_t written[TRACE_KIND_COUNT_];
    ncclDebugLogger_t log; /* borrowed from the host; NULL: it has none */
    struct trace_kept kept;
    struct trace_block block;
    struct trace_outputs *outputs; /* owned; NULL: records alone */
    bool records_wanted;
    uint64_t emptied_ticks; /* when the rings were emptied last */
    uint64_t sleep_nsec;    /* of the writer, less where rings fill fast */
    size_t aside_bytes;     /* of all rings */
    uint64_t asides;        /* times that records were moved aside */
    size_t used;
    char buffer[TRACE_BUFFER_BYTES];
};
extern struct trace_process trace_process;

/* ---- recorder.c ---- */
/* Copy a text that comes from outside so that it can stand in JSON: other characters become '_'. */
void trace_clean(char *to, size_t bytes, const char *from);
/* What depends on the host's version. */
struct trace_extra {
    uint64_t comm; /* versions 1 to 3: the communicator's number, 0 else */
    bool tagged;   /* the descriptor has the tags of users */
};
/* *handle is NULL when there was no room: its host then reports nothing more of this event. Only
 * the members of the event's type are read. */
void trace_start(void *context, void **handle, const ncclProfilerEventDescr_v7_t *descr,
                 const struct trace_extra *extra);
void trace_state(void *handle, int state, uint64_t value);
void trace_stop(void *handle);
/* The calling thread ends: if it reports one more event, it takes a ring again. */
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
/* Write what was recorded so far; after the last communicator the line `end` as well. */
void trace_close(void);

/* Records that had no room, so far. */
uint64_t trace_lost(void);
/* Into the file; under `lock`. A line is shorter than TRACE_LINE_BYTES. */
void trace_put(const char *bytes, size_t count);
void trace_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- blocks.c; under `lock` ---- */
/* What a file of records begins with, behind its head. */
void trace_block_begin_file(uint64_t base_nsec);
void trace_block_end(const struct trace_ring *ring);

/* ---- files.c ---- */
uint64_t trace_wall_nsec(void);
void trace_host(char *name, size_t bytes);
/* The pattern with %h and %p, host and process, replaced. */
void trace_name(const char *pattern, char *name, size_t bytes);
/* Make the folder that the file is in, if only that is missing. */
void trace_make_folder(char *path);
/* Open it to be written anew; a FIFO that no process reads is refused and not waited for. -1:
 * errno. */
int trace_create_file(const char *path);
/* `what` and the reason at level WARN, where the host has a log. */
void trace_complain(const char *what, const char *path, int error);
/* A limit of file sizes and a pipe without a reader come with a signal for the thread that writes,
 * which may be the user's: it is taken back before the user sees it, unless one was there already.
 */
struct trace_guard {
    sigset_t ours, before, pending;
};
void trace_guard_begin(struct trace_guard *guard);
void trace_guard_end(struct trace_guard *guard, bool failed);

/* ---- outputs.c; under `lock` ---- */
/* Read the variables, once. False: they say something that is not understood, or there is no
 * memory; what can be written is written. */
bool trace_outputs_begin(void);
/* A communicator has this number in its contexts. */
void trace_outputs_join(uint32_t number, const struct trace_communicator *communicator);
void trace_outputs_take(const struct trace_record *record, int tid);
/* Write what is due; `all_of_it`: the last communicator ends, or the process. */
void trace_outputs_write(uint64_t now_nsec, bool all_of_it);
/* The child of a fork: nothing is its own. */
void trace_outputs_forget(void);

/* ---- keep.c; under `lock` ---- */
/* Read the variable, once. False: it says nothing that is understood, or there is no memory. */
bool trace_keep_begin(void);
void trace_keep(const struct trace_record *record, int tid);
/* The k-th oldest; false: its event has gone. */
bool trace_keep_at(size_t k, struct trace_record *record_out, int *tid_out);
void trace_keep_line(const char *line, size_t bytes);
/* The child of a fork: nothing is its own. */
void trace_keep_forget(void);
/* Handle the signals that ask for the records, where the program does not. */
void trace_keep_signals(void);

/* ---- clock.c; under `lock` ---- */
/* Read both clocks; returns the ticks up to which times are known now. */
uint64_t trace_clock_pair(struct trace_clock *clock);
/* The time of a tick that is not later than the last pair. */
uint64_t trace_clock_at(struct trace_clock *clock, uint64_t ticks);

/* ---- lines.c ---- */
/* Words of a ring (`at` counts on, `mask` keeps it inside) into a record but for its time and, of a
 * start, its id; returns how many they are. */
size_t trace_decode(const uint64_t *words, uint64_t at, uint64_t mask, struct trace_record *record);
/* NULL: no state has the number. */
const char *trace_state_name(uint32_t state);
const char *trace_type_name(uint32_t type);
/* In decimal; 8 bytes behind it may be written. Returns its end. */
char *trace_number(char *at, uint64_t value);
/* One record as a line; returns its length, less than TRACE_LINE_BYTES, which `line` has. */
size_t trace_line(const struct trace_record *record, int tid, char *line);
