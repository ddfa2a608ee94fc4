/* Lines of NCCL's GRAPH log. Private to the room. */
#pragma once

#include "system.h"

/* The machine and the channels found, as text. The caller frees; NULL when memory is short. */
char *tt_topo_describe(const struct tt_topo_system *system, const struct tt_topo_domain *domains,
                       int ndomains);
