/* The element order of a running communicator. Private to the room. */
#pragma once

struct tt_xml_node;

/* What a run with one process per GPU has after all ranks gave their part: rank by rank, own GPU
 * and all NICs, merged. NULL when memory is short. */
struct tt_xml_node *tt_topo_fuse(const struct tt_xml_node *root);
