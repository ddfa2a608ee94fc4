/* Hosts with equal machine files in one NVLink domain. Private to the room. */
#pragma once

#include <stdbool.h>

struct tt_xml_node;

/* Change the guids of host number `index`, so that they differ from those of the other hosts.
 * False: out of memory. */
bool tt_topo_distinct(struct tt_xml_node *node, int index);
