/* Messages between the ranks of a world, by which network edges find each other. One thread. */
#pragma once

#include "bootstrap/bootstrap.h"

#include <stddef.h>
#include <stdint.h>

struct fake_entry;

struct tt_bootstrap {
    int rank;
    struct tt_bootstrap *boxes; /* of all ranks, by number; borrowed */
    struct fake_entry *entries; /* owned: came and were not fetched, newest first */
    ncclResult_t error;         /* as tt_bootstrap_error() has it, with the sentence; NULL: none */
    const char *sentence;
};

void fake_bootstrap_init(struct tt_bootstrap *boxes, int rank);
void fake_bootstrap_fini(struct tt_bootstrap *box);
