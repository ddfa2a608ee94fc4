/* Copies and fills under the race checker. Private to the room. */
#pragma once

#include "op.h"

/* Do all of a copy or a fill of registered memory, whether its pages are protected or not. False:
 * nothing was done, because it is of other memory, or /proc/self/mem cannot be used. */
bool tt_host_step_by_file(const struct tt_host_op *op);
