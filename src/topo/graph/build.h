/* Make the nodes of a graph from the elements of a machine file. Private to the room. */
#pragma once

#include "system.h"

struct tt_xml_node;
/* GB/s of one NVLink, by compute capability. */
float tt_topo_nvlink_bw(int cc);
ncclResult_t tt_topo_build(struct tt_topo_system *system, const struct tt_xml_node *root);
