/* Find the rank that an exchange waits for. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* The exchange that the caller is in has timed out: find the missing rank, and fail at all ranks
 * with its name. At most 2 messages per connection of the tree. */
void tt_late_begin(struct tt_bootstrap *bootstrap);
/* Handle a LATE frame: answer that this rank lives, and ask on. */
void tt_late_asked(struct tt_bootstrap *bootstrap, struct tt_conn *conn, const unsigned char *bytes,
                   size_t len);
/* Handle a HERE frame of `branch` (NULL: the parent): its process lives. */
void tt_late_answered(struct tt_bootstrap *bootstrap, struct tt_branch *branch);
/* Act on the deadline. True while answers are outstanding. */
bool tt_late_tick(struct tt_bootstrap *bootstrap, uint64_t now_nsec);
