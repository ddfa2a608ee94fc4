/* How a membership ends. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* Look whether a goodbye is due; a neighbour's; the end without further messages. */
void tt_leave_step(struct tt_bootstrap *bootstrap);
void tt_leave_bye(struct tt_bootstrap *bootstrap, struct tt_conn *conn);
void tt_leave_finish(struct tt_bootstrap *bootstrap);
