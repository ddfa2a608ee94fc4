/* A network plugin's device as a NIC of a machine. Not in complete.h, which does not depend on the
 * net ABI. */
#pragma once

#include "nccl/net.h"
#include "topo/file/complete.h"

/* Convert the properties of device `number`. The result borrows from `props`. */
struct tt_topo_nic tt_topo_nic_of(int number, const ncclNetProperties_v12_t *props);
