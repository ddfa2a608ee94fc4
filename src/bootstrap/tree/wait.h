/* Waiting for something to change in a membership. */
#pragma once

#include "bootstrap/tree/tree.h"

/* Wait until something changed, running streams' work meanwhile. Lock held; released meanwhile.
 * Errors: the membership's, the member's abort, ncclTimeout after deadline_nsec (0: none). */
ncclResult_t tt_tree_wait(struct tt_bootstrap *bootstrap, uint64_t deadline_nsec);

/* Time from which a thread that still waits logs it: TUTTI_WATCHDOG from now; UINT64_MAX: never. */
uint64_t tt_tree_report_nsec(void);
