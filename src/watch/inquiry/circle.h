/* A circle of waits that leads over several communicators. Private to the room. */
#pragma once

#include "watch/inquiry/verdict.h"

struct tt_standing { /* a rank on the way of a verdict, and what it waits in */
    const struct tt_status *status;
    struct tt_status_wait wait;
};

/* Fill a verdict's `circle`, `certain` and communicators from the ranks of a circle, each of which
 * waits for the next, and the last one for the first. `count` is 2 at least, in two communicators
 * at least. */
void tt_circle_describe(const struct tt_inquiry *inquiry, const struct tt_standing *ranks,
                        int count, struct tt_verdict *verdict);
/* The same process and device as `rank`, in another communicator; NULL: it is not there. */
const struct tt_status *tt_circle_in_comm(const struct tt_inquiry *inquiry,
                                          const struct tt_status *rank, uint64_t comm_id);
/* The circle of two ranks: `from` waits in an operation for one that meets others in a split, a
 * registration or the like, to which `from` has not come. */
void tt_circle_exchange(const struct tt_standing *from, const struct tt_status *standing,
                        struct tt_verdict *verdict);
