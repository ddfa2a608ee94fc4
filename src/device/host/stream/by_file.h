/* Copies and fills under the race checker. Private to the room. */
#pragma once

#include "op.h"

/* All of a copy or a fill of registered memory, closed or not. False: nothing was done, as it is of
 * other memory, or there is no such way. */
bool tt_host_step_by_file(const struct tt_host_op *op);
