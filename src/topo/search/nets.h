/* NICs at which channels begin and end. Private to the room. */
#pragma once

#include "topo/graph/system.h"

struct tt_net_lists { /* NICs to begin and to end at, by preference, for one limit of types */
    struct tt_topo_node **net; /* owned; row g: those of GPU g, last row: of all GPUs */
    int *count;                /* owned; of each row */
    int rows, width;
    int type; /* largest path type in the lists; -1: not filled */
};

bool tt_net_lists_init(struct tt_net_lists *lists, const struct tt_topo_system *system);
void tt_net_lists_fini(struct tt_net_lists *lists);
/* Fill the lists with NICs up to a path type, unless they are filled for it. */
void tt_net_lists_fill(struct tt_net_lists *lists, const struct tt_topo_system *system,
                       enum tt_path_type type);
