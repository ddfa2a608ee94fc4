/* Copies of a machine in one NVLink domain. Private to the room. */
#pragma once

#include <stdbool.h>

struct tt_xml_node;

/* Make host number `index` of an NVLink domain distinct: guids of equal files differ by host.
 * False when memory is short. */
bool tt_topo_distinct(struct tt_xml_node *node, int index);
