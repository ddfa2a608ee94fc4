/* Tasks (streams, and the host), their operations, and marks: what events, words and collectives
 * pass on. Private to check/; called under the checker's lock. */
#pragma once

#include "clock.h"

#include "device/host/check/check.h"

enum { TT_CHECK_HOST = 0 };                 /* the task of all host threads */
static const size_t CHECK_GRAPH = SIZE_MAX; /* in reports on nodes of a graph: no task */
enum { TT_CHECK_NAME_BYTES = 96 };

struct tt_check_task {
    struct tt_check_clock *now; /* counted; without its own entry */
    uint64_t epoch;             /* number of its last operation */
    uint64_t stream_id;
    const struct CUstream_st *stream;   /* NULL: the host */
    struct tt_host_position unreported; /* of the last operation with unknown accesses */
};

struct tt_check_op { /* an operation that accesses memory */
    unsigned refs;
    size_t task;
    uint64_t epoch;
    struct tt_check_clock *before; /* counted */
    int device;
    bool legacy, blocking;
    bool plain;  /* an instruction of the program, no call */
    bool direct; /* no copy or fill: it uses registered memory through the program's mapping */
    uint64_t stream_id;
    const void *site; /* the program's call; NULL: not known */
    char name[TT_CHECK_NAME_BYTES];
};

struct tt_check_mark { /* what an event, a word or a collective passes on */
    const void *key;
    uint64_t number;      /* collectives: sequence number in the communicator */
    uint64_t turn;        /* members: number of collectives so far */
    const void *site;     /* allocations: the call */
    size_t bytes;         /* allocations; 0: freed, */
    struct {              /* ... and then: */
        size_t bytes;     /* as many as there were */
        const void *site; /* of the call that freed it */
        uint64_t turn;    /* number of frees so far */
    } gone;
    enum tt_memory_kind kind;
    int device;
    struct tt_check_clock *clock; /* counted; NULL: it knows nothing */
    uint64_t *fences;             /* owned; collectives: fences of the waiting members */
    size_t nfences;
    int came; /* collectives: members so far */
};

struct tt_check_marks {
    struct tt_check_mark *at; /* owned; open addressing, never shrinks */
    size_t count, room;
};

bool tt_check_before(const struct tt_check_op *first, const struct tt_check_op *second);
static inline bool tt_check_ordered(const struct tt_check_op *one, const struct tt_check_op *other)
{
    return tt_check_before(one, other) || tt_check_before(other, one);
}

size_t tt_check_task_of(struct tt_host_check *check, const struct CUstream_st *stream);
/* A new operation of a stream, after tt_check_arrive(), or of the host (NULL). The caller drops it.
 * NULL: out of memory. */
struct tt_check_op *tt_check_op_begin(struct tt_host_check *check, const struct CUstream_st *stream,
                                      const char *name);
void tt_check_op_drop(struct tt_check_op *op);
void tt_check_task_report(struct tt_host_check *check, size_t task, struct tt_check_clock **into);
/* The mark of a key; made where there is none. NULL: out of memory. */
struct tt_check_mark *tt_check_mark(struct tt_check_marks *marks, const void *key, uint64_t number);

/* The allocation that ptr lies in, or NULL. Linear search. */
const struct tt_check_mark *tt_check_block_of(const struct tt_host_check *check, const void *ptr);
/* The one that ptr lay in and that was freed last. */
const struct tt_check_mark *tt_check_freed_of(const struct tt_host_check *check, const void *ptr);
