/* The end of a membership. Service's lock held. */
#pragma once

#include "bootstrap/tree/tree.h"

/* Send DONE or BYE when it is due. */
void tt_leave_step(struct tt_bootstrap *bootstrap);
/* Handle a BYE frame of a neighbour. */
void tt_leave_bye(struct tt_bootstrap *bootstrap, struct tt_conn *conn);
/* True when all memberships of the process are leaving, and ranks that have not left are neighbours
 * of one of them on different sides: what they send to each other comes this way. */
bool tt_leave_needed(void);
/* End without further messages. */
void tt_leave_finish(struct tt_bootstrap *bootstrap);
