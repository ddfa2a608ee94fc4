/* The best path between any two nodes. Private to the room. */
#pragma once

#include "system.h"

/* Find all paths, then replace those that must go through a CPU or another GPU. Errors:
 * ncclInvalidUsage when there are too many. */
ncclResult_t tt_topo_paths_make(struct tt_topo_system *system);
