/* Ranks whose process ended without leaving. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* Note that a rank exited; false when that was known. */
bool tt_exit_note(struct tt_bootstrap *bootstrap, int rank, uint32_t begun, const char *sentence);
/* Wake the owner (tt_bootstrap_attach). */
void tt_exit_event(const struct tt_bootstrap *bootstrap);
/* Collectives that this rank has begun. */
uint32_t tt_exit_begun(const struct tt_bootstrap *bootstrap);
