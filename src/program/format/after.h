/* Finds the transfers, of all ranks, that happen after a message was received: a chain of messages
 * leads from that receive to them. Private to the room. */
#pragma once

#include "program/program.h"

struct tt_after; /* the messages of one pass of all ranks; opaque */

/* Follow the messages of a program whose edges have one thread at each end. NULL: it is too large,
 * leaves slots full, or memory is short. The program must outlive it. */
struct tt_after *tt_after_create(const struct tt_program *program);
void tt_after_destroy(struct tt_after *after); /* accepts NULL */

struct tt_after_transfer { /* counted in its thread, in one pass, from 1 */
    int rank, thread;
    uint32_t number;
};
/* True when transfer `later` of the same thread moves no slice before all receivers of `posted`
 * have received its slice of the same number. */
bool tt_after_taken(struct tt_after *after, const struct tt_after_transfer *posted, uint32_t later);
