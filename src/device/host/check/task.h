/* Tasks (streams, and the host), their operations, and marks: what events, words and collectives
 * pass on. Private to check/; called under the checker's lock. */
#pragma once

#include "check.h"
#include "clock.h"

enum { TT_CHECK_HOST = 0 };                 /* the task that the host's threads are */
static const size_t CHECK_GRAPH = SIZE_MAX; /* of a node in a report: no task */
enum { TT_CHECK_NAME_BYTES = 96 };

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

bool tt_check_before(const struct tt_check_op *first, const struct tt_check_op *second);
static inline bool tt_check_ordered(const struct tt_check_op *one, const struct tt_check_op *other)
{
    return tt_check_before(one, other) || tt_check_before(other, one);
}

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
