/* Merge NICs of a machine into virtual NICs. Private to the room. */
#pragma once

#include "file.h"

#include "topo/topo.h"

/* Merge NICs below `root` as tt_topo_join() has marked, or else as NCCL_NET_FORCE_MERGE and
 * NCCL_NET_MERGE_LEVEL say; by default none. file: name of the machine in messages.
 * Errors: ncclInvalidUsage naming the variable or the NICs; ncclSystemError when memory is short.
 */
ncclResult_t tt_topo_merge(const char *file, struct tt_xml_node *root);

/* Up to which distance NICs are merged. Errors: ncclInvalidUsage (NCCL_NET_MERGE_LEVEL). */
ncclResult_t tt_topo_merge_level(enum tt_path_type *level_out);
