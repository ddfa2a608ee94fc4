/* Ranks whose process ended without leaving, or that left before others. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* Note that a rank exited or left (TT_FAIL_EXIT, TT_FAIL_ENDED); false when that was known. */
bool tt_exit_note(struct tt_bootstrap *bootstrap, int rank, enum tt_fail_kind kind, uint32_t begun,
                  const char *sentence);
/* Wake the owner (tt_bootstrap_attach). */
void tt_exit_event(const struct tt_bootstrap *bootstrap);
/* Number of collectives that this rank has begun, modulo 2^32. */
uint32_t tt_exit_begun(const struct tt_bootstrap *bootstrap);
