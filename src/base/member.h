/* The membership card: all that rooms below comm/ may know of a communicator. */
#pragma once

#include "nccl.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_member {
    int rank;
    int nranks;
    int device;                /* device number of this rank in its process */
    uint64_t comm_id;          /* same on all ranks; for logs and plugins, no secret */
    const char *name;          /* borrowed from the communicator; "" when unnamed */
    _Atomic uint32_t abort;    /* non-zero: every wait returns; value is an ncclResult_t */
    _Atomic uint64_t given_up; /* operations with a smaller ticket end at their turn, whatever
                                  `abort` says by then */
};

static inline bool tt_member_aborted(const struct tt_member *member)
{
    return atomic_load_explicit(&member->abort, memory_order_relaxed) != 0;
}

/* The abort flag goes down, but not for operations with tickets below `ticket`: who waits for a
 * stream may reach them much later. */
static inline void tt_member_resume(struct tt_member *member, uint64_t ticket)
{
    atomic_store_explicit(&member->given_up, ticket, memory_order_relaxed);
    /* pairs with the acquire load in tt_member_gives_up() */
    atomic_store_explicit(&member->abort, 0u, memory_order_release);
}

static inline bool tt_member_gives_up(const struct tt_member *member, uint64_t ticket)
{
    return atomic_load_explicit(&member->abort, memory_order_acquire) != 0 ||
           ticket < atomic_load_explicit(&member->given_up, memory_order_relaxed);
}

/* Why every wait returns; ncclSuccess while none has to. Any thread. */
static inline ncclResult_t tt_member_abort_code(const struct tt_member *member)
{
    return (ncclResult_t)atomic_load_explicit(&member->abort, memory_order_acquire);
}

/* Make every wait return `code`, unless another one came first. True when this call was the first.
 * Any thread; wakes nobody who sleeps. */
static inline bool tt_member_abort(struct tt_member *member, ncclResult_t code)
{
    uint32_t none = 0;
    return atomic_compare_exchange_strong(&member->abort, &none, (uint32_t)code);
}
