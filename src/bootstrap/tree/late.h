/* Who keeps an exchange waiting. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* The time of the exchange that the caller is in is up: find who is missing, and
 * fail with that name here and everywhere. At most 2 messages per connection of the tree. */
void tt_late_begin(struct tt_bootstrap *bootstrap);
void tt_late_asked(struct tt_bootstrap *bootstrap, struct tt_conn *conn, const unsigned char *bytes,
                   size_t len);
/* `branch` (NULL: the parent) lives. */
void tt_late_answered(struct tt_bootstrap *bootstrap, struct tt_branch *branch);
/* True while a question is open. */
bool tt_late_tick(struct tt_bootstrap *bootstrap, uint64_t now_nsec);
