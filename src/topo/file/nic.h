/* A device of a network plugin as a NIC of a machine; apart from complete.h, whose readers need not
 * know the net ABI. */
#pragma once

#include "nccl/net.h"
#include "topo/file/complete.h"

/* As the plugin describes its device `number`; borrows from `props`. */
struct tt_topo_nic tt_topo_nic_of(int number, const ncclNetProperties_v12_t *props);
