/* Create a membership and connect it; dispatch the frames that arrive, and the deadlines. Service's
 * lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* Errors: ncclSystemError. */
ncclResult_t tt_tree_create(struct tt_member *member, int nblocks,
                            struct tt_bootstrap **bootstrap_out);
/* Let the children connect. */
void tt_tree_accept_children(struct tt_bootstrap *bootstrap);
/* Start to connect to the parent, by `deadline_nsec`: `dialing` ends with or without `up`.
 * Errors: those of tt_conn_dial(); that the parent refused at once is none. */
ncclResult_t tt_tree_dial_parent(struct tt_bootstrap *bootstrap, uint64_t deadline_nsec);
