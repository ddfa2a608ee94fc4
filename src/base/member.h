/* The membership card: all that rooms below comm/ may know of a communicator. */
#pragma once

#include "nccl.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tt_member {
    int rank;
    int nranks;
    int device;             /* device number of this rank in its process */
    uint64_t comm_id;       /* same on all ranks; for logs and plugins, no secret */
    const char *name;       /* borrowed from the communicator; "" when unnamed */
    _Atomic uint32_t abort; /* non-zero: every wait returns; value is an ncclResult_t */
};

static inline bool tt_member_aborted(const struct tt_member *member)
{
    return atomic_load_explicit(&member->abort, memory_order_relaxed) != 0;
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
