/* What the cost model makes of a layout, as the member "tuning" of a scenario. */
#include "machine.h"

json_t *export_tuning(const struct tt_topo_layout *layout)
{
    (void)layout;
    return NULL;
}
