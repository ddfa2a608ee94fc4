/* What a rank that has ended the communicator leaves in the memory that it shares with others, for
 * those to whom no message comes. */
#pragma once

#include "base/member.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_transport;

struct tt_left {                 /* why it has ended it */
    uint64_t rc;                 /* what the others return; ncclSuccess: it did not fail */
    char sentence[TT_WHY_BYTES]; /* "": none */
};
enum { TT_LEFT_WORDS = sizeof(struct tt_left) / sizeof(uint64_t) };

/* True when memory that is shared with that rank says it has ended the communicator. Any thread.
 * *left_out  set then */
bool tt_transport_rank_left(const struct tt_transport *transport, int rank,
                            struct tt_left *left_out);
