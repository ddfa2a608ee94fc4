/* A ring of messages over the built-in network. */
#pragma once

#include "nccl.h"

struct tt_member;
struct tt_bootstrap;

/* All ranks call; `*wrong` grows with each byte that is not what was sent. */
ncclResult_t sim_traffic(struct tt_member *member, struct tt_bootstrap *bootstrap, int *wrong);
