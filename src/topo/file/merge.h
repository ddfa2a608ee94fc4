/* Virtual NICs: several NICs of a machine as one. Private to the room. */
#pragma once

#include "file.h"

/* Join NICs below `root` as NCCL_NET_FORCE_MERGE and NCCL_NET_MERGE_LEVEL ask; nothing when neither
 * is set, or as tt_topo_join() has remarked in it. `file` stands for the machine in messages.
 * Errors: ncclInvalidUsage naming the variable or the NICs; ncclSystemError when memory is short.
 */
ncclResult_t tt_topo_merge(const char *file, struct tt_xml_node *root);
