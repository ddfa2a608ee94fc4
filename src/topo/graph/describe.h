/* Lines of NCCL's GRAPH log. Private to the room. */
#pragma once

#include "system.h"

/* The machine and its channels as text. The caller frees it; NULL: out of memory. */
char *tt_topo_describe(const struct tt_topo_system *system, const struct tt_topo_domain *domains,
                       int ndomains);
