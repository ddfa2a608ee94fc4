/* PCI switches that appear as two levels of bridges. Private to the room. */
#pragma once

#include "system.h"

/* Replace both levels of each such switch by one node. False: out of memory. */
bool tt_topo_flatten(struct tt_topo_system *system);
