/* Switches that show two levels. Private to the room. */
#pragma once

#include "system.h"

/* Make one crossbar of switches that show two levels. False when memory is short. */
bool tt_topo_flatten(struct tt_topo_system *system);
