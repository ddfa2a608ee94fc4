/* The membership: all that rooms below comm/ may know of a communicator. */
#pragma once

#include "nccl.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define TT_WHY_BYTES 640
#define TT_QUOTED_BYTES 160 /* of tt_member_quoted(): longer names are cut */
#define TT_REFUSAL_BYTES 320

struct tt_member {
    int rank;
    int nranks;
    int device;                     /* device number of this rank in its process */
    uint64_t comm_id;               /* same on all ranks; for logs and plugins, no secret */
    const char *name;               /* borrowed from the communicator; "" when unnamed */
    _Atomic uint32_t abort;         /* non-zero: every wait returns; value is an ncclResult_t */
    _Atomic uint64_t given_up;      /* operations with a smaller sequence number end at their turn,
                                       whatever `abort` says by then */
    pthread_mutex_t why_lock;       /* all zero: not locked */
    char why[TT_WHY_BYTES];         /* the first failure's sentence; "" before one */
    char refusal[TT_REFUSAL_BYTES]; /* what its last call that was refused was told; "": none */
    _Atomic bool grouped;           /* a group of some thread holds calls on it, for reports */
    const char *_Atomic meets; /* the call in which it waits for that of all ranks, for reports;
                                  NULL: none */
};

static inline bool tt_member_aborted(const struct tt_member *member)
{
    return atomic_load_explicit(&member->abort, memory_order_relaxed) != 0;
}

/* True when the operation with sequence number `seq` must end without running. */
static inline bool tt_member_gives_up(const struct tt_member *member, uint64_t seq)
{
    return atomic_load_explicit(&member->abort, memory_order_acquire) != 0 ||
           seq < atomic_load_explicit(&member->given_up, memory_order_relaxed);
}

/* The code that every wait returns; ncclSuccess when the member is not aborted. Any thread. */
static inline ncclResult_t tt_member_abort_code(const struct tt_member *member)
{
    return (ncclResult_t)atomic_load_explicit(&member->abort, memory_order_acquire);
}

/* Make every wait return `code`, unless an earlier call has set another one, and keep the reason:
 * `why`, or (tt_member_abort) the text of the thread's last failure. True when this call was the
 * first. Any thread. Does not wake sleeping threads. */
bool tt_member_abort_why(struct tt_member *member, ncclResult_t code, const char *why);
bool tt_member_abort(struct tt_member *member, ncclResult_t code);
/* In a child of fork, which has no other threads: make every call fail with ncclInvalidUsage and
 * that reason. */
void tt_member_forked(struct tt_member *member);
/* Clear the abort flag and the reason. Operations with sequence numbers below `seq` still end
 * without running, even when a thread that waits for their stream reaches them much later. */
void tt_member_resume(struct tt_member *member, uint64_t seq);

/* ` "NAME"` of a communicator with a name, else "": messages put it behind the communicator's id.
 * Returns text. */
const char *tt_member_quoted(const struct tt_member *member, char *text, size_t text_bytes);

/* Keep `why` as the first failure's reason unless there is one already; aborts nothing. Any thread.
 */
void tt_member_keep_why(struct tt_member *member, const char *why);
/* Keep what a call of this rank was refused for: the others wait for that call, and are told. Any
 * thread. */
void tt_member_keep_refusal(struct tt_member *member, const char *why);
/* "; a call of rank 2 was refused: WHY", or "". Any thread. */
void tt_member_refused(struct tt_member *member, char text_out[TT_WHY_BYTES]);
/* Copy the reason that was kept; "" when there is none. Any thread. */
void tt_member_why(struct tt_member *member, char text_out[TT_WHY_BYTES]);
