/* The membership: all that rooms below comm/ may know of a communicator. */
#pragma once

#include "nccl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TT_WHY_BYTES 640

struct tt_member {
    int rank;
    int nranks;
    int device;                /* device number of this rank in its process */
    uint64_t comm_id;          /* same on all ranks; for logs and plugins, no secret */
    const char *name;          /* borrowed from the communicator; "" when unnamed */
    _Atomic uint32_t abort;    /* non-zero: every wait returns; value is an ncclResult_t */
    _Atomic uint64_t given_up; /* operations with a smaller sequence number end at their turn,
                                  whatever `abort` says by then */
    pthread_mutex_t why_lock;  /* all zero: not locked */
    char why[TT_WHY_BYTES];    /* the first failure's sentence; "" before one */
};

static inline bool tt_member_aborted(const struct tt_member *member)
{
    return atomic_load_explicit(&member->abort, memory_order_relaxed) != 0;
}

static inline bool tt_member_gives_up(const struct tt_member *member, uint64_t seq)
{
    return atomic_load_explicit(&member->abort, memory_order_acquire) != 0 ||
           seq < atomic_load_explicit(&member->given_up, memory_order_relaxed);
}

/* Why every wait returns; ncclSuccess while none has to. Any thread. */
static inline ncclResult_t tt_member_abort_code(const struct tt_member *member)
{
    return (ncclResult_t)atomic_load_explicit(&member->abort, memory_order_acquire);
}

/* Make every wait return `code`, unless another one came first, and keep why: the sentence, or the
 * text of the last failure. True when this call was the first. Any thread; wakes nobody who
 * sleeps. */
bool tt_member_abort_why(struct tt_member *member, ncclResult_t code, const char *why);
bool tt_member_abort(struct tt_member *member, ncclResult_t code);
/* In a child of fork, which has no other threads: every call fails as usage, and says why. */
void tt_member_forked(struct tt_member *member);
/* The abort flag goes down and the reason is forgotten, but operations with sequence numbers below
 * `seq` end all the same: who waits for a stream may reach them much later. */
void tt_member_resume(struct tt_member *member, uint64_t seq);

/* Keep `why` unless a failure was kept before, without aborting anything. Any thread. */
void tt_member_keep_why(struct tt_member *member, const char *why);
/* What was kept; "" for nothing. Any thread. */
void tt_member_why(struct tt_member *member, char text_out[TT_WHY_BYTES]);
