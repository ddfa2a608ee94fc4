/* Inside of the checker. All of it is under the lock but what says otherwise. */
#pragma once

#include "check.h"
#include "finding.h"

#include <pthread.h>
#include <signal.h>

enum { TT_CHECK_HOST = 0 };                 /* the task that the host's threads are */
static const size_t CHECK_GRAPH = SIZE_MAX; /* of a node in a report: no task */
enum { TT_CHECK_NAME_BYTES = 96 };

struct tt_check_clock { /* per task: the last operation that is known; shared ones do not change */
    unsigned refs;
    size_t count;
    uint64_t at[];
};

struct tt_check_task {
    struct tt_check_clock *now; /* counted; without its own entry */
    uint64_t epoch;             /* its last operation */
    uint64_t stream_id;
    const struct CUstream_st *stream; /* NULL: the host */
    struct tt_host_position untold;   /* the last operation whose accesses are not known */
};

struct tt_check_op { /* one operation that touched memory */
    unsigned refs;
    size_t task;
    uint64_t epoch;
    struct tt_check_clock *before; /* counted */
    int device;
    bool legacy, blocking;
    bool direct; /* not a copy or a fill: memory that was registered is used as it is mapped */
    uint64_t stream_id;
    const void *site; /* where the program called; NULL: not known */
    char name[TT_CHECK_NAME_BYTES];
};

struct tt_check_mark { /* what an event, a word or a collective knows */
    const void *key;
    uint64_t number;  /* of collectives: which of the communicator */
    uint64_t turn;    /* of members: how many collectives there were */
    const void *site; /* of allocations: the call, ... */
    size_t bytes;     /* ... 0 when freed, ... */
    enum tt_memory_kind kind;
    int device;
    struct tt_check_clock *clock; /* counted; NULL: nothing */
    uint64_t *fences;             /* owned; of collectives: of those that wait there */
    size_t nfences;
    int came;
};

struct tt_check_marks {
    struct tt_check_mark *at; /* owned; open addressing, never shrinks */
    size_t count, room;
};

struct tt_check_user {
    struct tt_check_op *op; /* counted */
    bool wrote;             /* before the piece's writer, for kernels that are still to be seen */
};
struct tt_check_readers {
    size_t count, room;
    struct tt_check_user at[];
};

enum { TT_CHECK_FRESH = 1, TT_CHECK_FREED = 2 };
struct tt_check_piece { /* bytes [from, to) of a page of the shadow */
    uint32_t from, to, flags;
    struct tt_check_op *writer;       /* counted; or who allocated or freed it */
    struct tt_check_readers *readers; /* owned */
};
struct tt_check_page {
    uint64_t number;
    struct tt_check_piece *pieces; /* owned, sorted, apart */
    size_t count, room;
};

enum { TT_CHECK_REPORTS_MOST = 100, TT_CHECK_COLLECTIVES = 1024 };
struct tt_check_report_key {
    const void *first, *second;
    int kind;
};

struct tt_check_guard;
struct tt_check_use;
struct tt_check_range {
    const void *ptr;
    size_t bytes;
};

struct tt_check_inside;
struct tt_check_launched {
    const void *launches; /* of the executable that it is a part of; NULL: of none */
    const struct tt_item *item;
    struct tt_check_op *op;         /* counted */
    struct tt_check_inside *inside; /* counted; the launch, and which of all its nodes it is */
    size_t node;
};

enum { TT_CHECK_EXCEPTED_MOST = 8 };

struct tt_host_check {
    pthread_mutex_t lock;
    pthread_mutex_t kernels;       /* one is seen at a time; taken before the lock */
    struct tt_check_guard *guards; /* owned */
    size_t nguards, guard_room;
    struct tt_check_use
        *used; /* owned; what streams use that the host sees, since the last update */
    size_t nused, used_room;
    struct tt_check_clock *guards_know; /* counted; what the host knew then */
    bool guards_stale;                  /* something else has changed since */
    const struct tt_check_op *excepted[TT_CHECK_EXCEPTED_MOST]; /* host functions that run */
    size_t nexcepted, all_excepted;
    const struct tt_check_op **calls; /* owned array: host functions on streams that are not over */
    size_t ncalls, call_room;
    bool closes_parts;                     /* guard.c: of pages, too */
    bool does_io;                          /* imports.c */
    void *(*io_instead)(const char *name); /* io.c, which lies above it */
    uint64_t io_of;                        /* objects that were loaded then */
    struct sigaction outer;                /* the handlers that ours stand before */
    struct sigaction outer_trap;
    struct tt_check_launched *opaque; /* owned; kernels that report nothing and are not over, */
    size_t nopaque, opaque_room; /* ... which will be seen to touch what others have used since */
    const void *launching;       /* of the graph that is put on a stream */
    struct tt_check_inside *launching_inside; /* counted */
    size_t steps;                /* of kernels: accesses that were looked at one by one */
    struct tt_check_task *tasks; /* owned */
    size_t ntasks, task_room;
    size_t *task_of; /* owned; by number of the stream in its slab */
    size_t task_of_room;
    struct tt_check_clock *remote; /* counted: what other processes may have learned */
    bool any_opaque;               /* something was put on a stream that may look at words */
    struct tt_check_clock *waited; /* counted: what the host waited for itself, without hearsay */
    struct tt_check_fences fences;
    struct tt_check_word **words; /* owned */
    size_t nwords, word_room;
    struct tt_check_lane *lanes; /* owned; open addressing by key */
    size_t nlanes, lane_room;
    struct tt_check_marks events, counts, execs;
    struct tt_check_mark collectives[TT_CHECK_COLLECTIVES]; /* the latest collectives, by number */
    struct tt_check_page *pages;                            /* owned; open addressing */
    size_t npages, page_room;
    struct tt_check_marks blocks; /* of allocations: where they were made */
    struct tt_check_range *lent;  /* owned; whole pages that the program registered */
    _Atomic size_t nlent;
    struct tt_check_range *private; /* owned; allocations whose uses are not looked at */
    size_t nprivate;
    struct tt_check_report_key reported[TT_CHECK_REPORTS_MOST];
    size_t nreported;
    _Atomic size_t findings;
    bool aborts, fails, tells_leaks;
};

/* Locked; NULL when checks are off. */
struct tt_host_check *tt_host_check_lock(void);
void tt_host_check_unlock(struct tt_host_check *check);

/* ---- clock.c ---- */
void tt_check_clock_drop(struct tt_check_clock *clock);
struct tt_check_clock *tt_check_clock_hold(struct tt_check_clock *clock);
/* *into learns what `from` knows. */
void tt_check_clock_merge(struct tt_check_clock **into, const struct tt_check_clock *from);
void tt_check_clock_raise(struct tt_check_clock **clock, size_t task, uint64_t epoch);
/* *into keeps what `by` knows as well. */
void tt_check_clock_limit(struct tt_check_clock **into, const struct tt_check_clock *by);
static inline uint64_t tt_check_clock_of(const struct tt_check_clock *clock, size_t task)
{
    return clock && task < clock->count ? clock->at[task] : 0;
}
bool tt_check_before(const struct tt_check_op *first, const struct tt_check_op *second);
static inline bool tt_check_ordered(const struct tt_check_op *one, const struct tt_check_op *other)
{
    return tt_check_before(one, other) || tt_check_before(other, one);
}

/* ---- task.c ---- */
size_t tt_check_task_of(struct tt_host_check *check, const struct CUstream_st *stream);
/* A new operation of a stream that has arrived, or of the host (NULL); drop it. NULL when out of
 * memory. */
struct tt_check_op *tt_check_op_begin(struct tt_host_check *check, const struct CUstream_st *stream,
                                      const char *name);
void tt_check_op_drop(struct tt_check_op *op);
void tt_check_task_tell(struct tt_host_check *check, size_t task, struct tt_check_clock **into);
/* The mark of a key, made when there is none; NULL when out of memory. */
struct tt_check_mark *tt_check_mark(struct tt_check_marks *marks, const void *key, uint64_t number);

/* The allocation around ptr, or NULL; looks at all of them. */
const struct tt_check_mark *tt_check_block_of(const struct tt_host_check *check, const void *ptr);

/* ---- order.c ---- */
static inline bool tt_check_is_captured(const struct CUstream_st *stream)
{
    return atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
}
/* The task learns what an operation put there now may rely on. */
void tt_check_arrive(struct tt_host_check *check, struct CUstream_st *stream);
/* The host has waited for all that the task did. */
void tt_check_waited(struct tt_host_check *check, size_t task);

/* ---- shadow.c ---- */
void tt_check_touch(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                    size_t bytes, bool write);
/* The same, of an access that a kernel was seen to make. */
void tt_check_touch_seen(struct tt_host_check *check, struct tt_check_op *op, const void *ptr,
                         size_t bytes, bool write);
/* Forget what was known of the bytes; flags of the new state, and who made it (or NULL). */
void tt_check_reset(struct tt_host_check *check, const void *ptr, size_t bytes, uint32_t flags,
                    struct tt_check_op *op);
bool tt_check_is_freed(struct tt_host_check *check, const void *ptr);
enum tt_check_flight {
    TT_CHECK_ORDERED, /* the host knows that what used the byte is over */
    TT_CHECK_READ,    /* something reads it yet, for all that the host knows */
    TT_CHECK_WRITTEN,
};
/* Of the byte at ptr and at least one, at most `bytes`, from there that are alike. */
enum tt_check_flight tt_check_flight_at(struct tt_host_check *check, const void *ptr, size_t bytes,
                                        size_t *same_out);

/* ---- launch.c ---- */
void tt_check_launch_kernel(struct tt_host_check *check, struct tt_check_op *op,
                            const struct tt_item *item, size_t node);
void tt_check_launch_end(struct tt_host_check *check,
                         const struct tt_check_op *op); /* it is over */

/* ---- imports.c ---- */
/* Whether the program, or a library of its own, calls functions that give buffers to the kernel. */
bool tt_check_program_does_io(struct tt_host_check *check);

/* ---- pattern.c ---- */
bool tt_check_is_unwritten(struct tt_host_check *check, const void *ptr, size_t bytes);
void tt_check_pattern_fill(void *ptr, size_t bytes);
/* How much of an allocation is filled: nobody wants all of it in memory before it is used. */
size_t tt_check_pattern_bytes(size_t bytes);

/* ---- block.c ---- */
/* By an operation, or NULL: at once. */
void tt_check_allocate(struct tt_host_check *check, const struct tt_check_block *block,
                       struct tt_check_op *op);
void tt_check_release(struct tt_host_check *check, const struct tt_check_block *block,
                      struct tt_check_op *op);

/* ---- site.c ---- */
const void *tt_check_call_site(void);      /* NULL: not known */
bool tt_check_is_system(const char *file); /* a library that comes with the system, or ours */
/* From inside a signal handler: of the instruction, or of the call that led there. */
const void *tt_check_fault_site(const void *instruction);
void tt_check_site_write(const void *site, char *out, size_t out_bytes); /* ", called at ..." */
