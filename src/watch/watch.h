/* Who waits for whom and why. Reads counters and the wait registry; moves nothing. */
#pragma once

#include "nccl.h"

struct tt_comm;

/* Start and stop watching a communicator (TUTTI_WATCHDOG, TUTTI_TIMEOUT). */
ncclResult_t tt_watch_add(struct tt_comm *comm);
void tt_watch_remove(struct tt_comm *comm);
