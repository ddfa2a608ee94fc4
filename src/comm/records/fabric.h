/* NVLink domains of emulated machines; variables can switch them off or mark them as broken.
 * Private to comm/. */
#pragma once

#include "comm/records/record.h"

/* Flags of this rank's record, from its variables. */
uint32_t tt_fabric_flags(void);
/* Fill domain and clique of this rank's device. `machine`, `flags` and `bus_id` must be filled. */
void tt_fabric_fill(struct tt_comm_record *record);
/* Fill `domain` and `clique_size`, from all records.
 * Errors: ncclSystemError when a domain is broken and not switched off. */
ncclResult_t tt_fabric_agree(const struct tt_comm *comm, struct tt_agreement *agreed);
