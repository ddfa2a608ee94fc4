/* NVLink domains of emulated machines, and what of them is broken or switched off. Private to
 * comm/.
 */
#pragma once

#include "comm/record.h"

/* What this rank's variables say, as flags of its record. */
uint32_t tt_fabric_flags(void);
/* Domain and clique of this rank's device; `machine`, `flags` and `bus_id` are filled. */
void tt_fabric_fill(struct tt_comm_record *record);
/* Fill `domain` and `clique_size`. The same on all ranks, but for the own place.
 * Errors: ncclSystemError when a domain is broken and not switched off. */
ncclResult_t tt_fabric_agree(const struct tt_comm *comm, struct tt_agreement *agreed);
