/* Check whether the processes of members that have not joined yet still listen. Service's lock
 * held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* For the init of a child whose parent has failed. Members that end during the init are reported
 * over the parent's tree, which the failure may have cut. So the ranks that are to connect here are
 * probed from time to time. A process with a membership listens; one that refuses four times in a
 * second has ended, or has left all its memberships. Returns the rank of such a one, else -1. Never
 * blocks. */
int tt_probe_run(struct tt_bootstrap *child);
/* Close what is open. */
void tt_probe_end(struct tt_probe *probe);
