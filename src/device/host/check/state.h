/* The checker's state, and what its files call of each other. Private to check/. The lock protects
 * all of it, and all functions are called under the lock, unless a comment says otherwise. */
#pragma once

#include "device/host/check/task/finding.h"
#include "device/host/check/task/task.h"

#include <pthread.h>
#include <signal.h>

enum { TT_CHECK_REPORTS_MOST = 100, TT_CHECK_COLLECTIVES = 1024 };
struct tt_check_report_key {
    const void *first, *second;
    int kind;
};

struct tt_check_guard;
struct tt_check_page;
struct tt_check_use;
struct tt_check_range {
    const void *ptr;
    size_t bytes;
};

struct tt_check_inside;
struct tt_check_launched {
    const void *launches; /* of the executable graph that it is part of; NULL: none */
    const struct tt_item *item;
    struct tt_check_op *op;         /* counted */
    struct tt_check_inside *inside; /* counted; the launch of the graph, ... */
    size_t node;                    /* ... and its number among all nodes */
};

enum { TT_CHECK_EXCEPTED_MOST = 8, TT_CHECK_PASSING_MOST = 64 };

struct tt_host_check {
    pthread_mutex_t lock;
    pthread_mutex_t kernels;       /* one kernel is observed at a time; taken before the lock */
    struct tt_check_guard *guards; /* owned */
    size_t nguards, guard_room;
    struct tt_check_use *used; /* owned; what streams have used of memory that the host maps, since
                                  the last update */
    size_t nused, used_room;
    struct tt_check_clock *guards_know; /* counted; what the host knew at the last update */
    bool guards_stale;                  /* the next update must look at all guards */
    const struct tt_check_op *excepted[TT_CHECK_EXCEPTED_MOST]; /* host functions that run */
    size_t nexcepted, all_excepted;
    const struct tt_check_op **calls; /* owned array: host functions on streams, until they end */
    size_t ncalls, call_room;
    struct tt_check_range passing[TT_CHECK_PASSING_MOST]; /* by system calls; 0 bytes: free */
    size_t npassing;
    bool closes_parts;  /* guard.c: also pages of which only a part is used */
    bool does_io;       /* the program makes system calls that imports.c does not redirect */
    bool lends_buffers; /* the C library's files have memory of devices as their buffers: io.c */
    void *(*io_instead)(const char *name); /* tt_check_io_instead(), for imports.c, below it */
    uint64_t io_of;                        /* objects loaded when does_io was determined */
    struct sigaction outer;                /* the program's handlers, which ours call */
    struct sigaction outer_trap;
    struct tt_check_launched *opaque; /* owned; kernels that report nothing, until they end */
    size_t nopaque, opaque_room;
    const void *launching; /* the `launches` of the graph that is being launched */
    struct tt_check_inside *launching_inside; /* counted */
    size_t steps;                /* accesses of kernels that were observed one by one */
    struct tt_check_task *tasks; /* owned */
    size_t ntasks, task_room;
    size_t *task_of; /* owned; task of each stream, by its index in the slab */
    size_t task_of_room;
    struct tt_check_clock *remote; /* counted; what other processes may know */
    bool any_opaque;               /* an operation was issued that may read words */
    struct tt_check_clock *waited; /* counted; what the host has waited for directly */
    struct tt_check_fences fences;
    struct tt_check_word **words; /* owned */
    size_t nwords, word_room;
    struct tt_check_lane *lanes; /* owned; open addressing by key */
    size_t nlanes, lane_room;
    struct tt_check_marks events, counts, execs;
    struct tt_check_mark collectives[TT_CHECK_COLLECTIVES]; /* the latest ones, by number */
    struct tt_check_page *pages;                            /* owned; open addressing */
    size_t npages, page_room;
    struct tt_check_marks blocks; /* allocations, by address: where they were made */
    uint64_t nfreed;              /* of them, so far */
    struct tt_check_range *lent;  /* owned; whole pages that the program registered */
    _Atomic size_t nlent;
    struct tt_check_range *private; /* owned; allocations that are not checked */
    size_t nprivate;
    struct tt_check_report_key reported[TT_CHECK_REPORTS_MOST];
    size_t nreported;
    _Atomic size_t findings;
    bool aborts, fails, reports_leaks;
};

/* Locked; NULL when checks are off. */
struct tt_host_check *tt_host_check_lock(void);
void tt_host_check_unlock(struct tt_host_check *check);

/* ---- order.c ---- */
static inline bool tt_check_is_captured(const struct CUstream_st *stream)
{
    return atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
}
/* The task learns what is certain to be over before the next operation of the stream. */
void tt_check_arrive(struct tt_host_check *check, struct CUstream_st *stream);

/* ---- launch.c ---- */
void tt_check_launch_kernel(struct tt_host_check *check, struct tt_check_op *op,
                            const struct tt_item *item, size_t node);
void tt_check_launch_end(struct tt_host_check *check,
                         const struct tt_check_op *op); /* the kernel has ended */

/* ---- imports.c ---- */
/* Whether the program, or one of its libraries, may make system calls with buffers by functions
 * that are not led to ours (io_calls.c). */
bool tt_check_program_does_io(struct tt_host_check *check);

/* ---- block.c ---- */
/* op: the operation that allocates or frees; NULL: the host, at once. */
void tt_check_allocate(struct tt_host_check *check, const struct tt_check_block *block,
                       struct tt_check_op *op);
void tt_check_release(struct tt_host_check *check, const struct tt_check_block *block,
                      struct tt_check_op *op);
