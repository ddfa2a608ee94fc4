/* Whether the processes of members that have not come still listen. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* A child is being born of a membership that has failed: news of members that end meanwhile come
 * over that one's tree, which the failure may have cut. So those that are to connect here are
 * probed from time to time; never blocks. A process with a membership listens; one that refuses
 * four times in a second has ended, or has given up all it had: returns its rank, else -1. */
int tt_probe_run(struct tt_bootstrap *child);
/* Close what is open. */
void tt_probe_end(struct tt_probe *probe);
