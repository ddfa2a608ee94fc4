/* Waiting for something to change in a membership. */
#pragma once

#include "bootstrap/tree/tree.h"

/* Wait until something changed, helping other work; lock held (released meanwhile).
 * Errors: the membership's, the member's abort, ncclTimeout after deadline_nsec (0: none). */
ncclResult_t tt_tree_wait(struct tt_bootstrap *bootstrap, uint64_t deadline_nsec);

/* The moment from which on who still waits says so: TUTTI_WATCHDOG from now; UINT64_MAX: never. */
uint64_t tt_tree_report_nsec(void);
