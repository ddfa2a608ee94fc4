/* What comes after a message: transfers, of all ranks, that cannot move a slice before a message
 * was taken, because messages lead from there to them. Private to the room. */
#pragma once

#include "program.h"

struct tt_after; /* the messages of one pass of all ranks; opaque */

/* Follow the program, whose edges have one thread at each end. NULL: it is too large to be
 * followed, leaves slots full, or memory is short. The program must outlive it. */
struct tt_after *tt_after_create(const struct tt_program *program);
void tt_after_destroy(struct tt_after *after); /* accepts NULL */

struct tt_after_transfer { /* counted in its thread, in one pass, from 1 */
    int rank, thread;
    uint32_t number;
};
/* Whether transfer `later` of the same thread moves no slice before everybody to whom the transfer
 * posted took the slice of that number. */
bool tt_after_taken(struct tt_after *after, const struct tt_after_transfer *posted, uint32_t later);
