/* The checker's state, and what its files call of each other. Private to check/. The lock protects
 * all of it, and all functions are called under the lock, unless a comment says otherwise. */
#pragma once

#include "finding.h"
#include "task.h"

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

/* ---- order.c ---- */
static inline bool tt_check_is_captured(const struct CUstream_st *stream)
{
    return atomic_load_explicit(&stream->capture, memory_order_relaxed) != NULL;
}
/* The task learns what an operation put there now may rely on. */
void tt_check_arrive(struct tt_host_check *check, struct CUstream_st *stream);
/* The host has waited for all that the task did. */
void tt_check_waited(struct tt_host_check *check, size_t task);

/* ---- launch.c ---- */
void tt_check_launch_kernel(struct tt_host_check *check, struct tt_check_op *op,
                            const struct tt_item *item, size_t node);
void tt_check_launch_end(struct tt_host_check *check,
                         const struct tt_check_op *op); /* it is over */

/* ---- imports.c ---- */
/* Whether the program, or a library of its own, calls functions that give buffers to the kernel. */
bool tt_check_program_does_io(struct tt_host_check *check);

/* ---- block.c ---- */
/* By an operation, or NULL: at once. */
void tt_check_allocate(struct tt_host_check *check, const struct tt_check_block *block,
                       struct tt_check_op *op);
void tt_check_release(struct tt_host_check *check, const struct tt_check_block *block,
                      struct tt_check_op *op);
