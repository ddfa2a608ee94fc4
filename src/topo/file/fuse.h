/* The element order of a running communicator. Private to the room. */
#pragma once

struct tt_xml_node;

/* The elements in the order that NCCL gets when each rank contributes its GPU and all NICs and the
 * parts are merged rank by rank. NULL: out of memory. */
struct tt_xml_node *tt_topo_fuse(const struct tt_xml_node *root);
