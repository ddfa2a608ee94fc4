/* Reports for `tutti doctor`. Private to the room. */
#pragma once

#include "watch/inquiry/inquiry.h"

#include <stdio.h>

/* One JSON document: processes, communicators, each with its verdict and what its ranks do. The
 * inquiry is over. */
void tt_doctor_json(FILE *out, const struct tt_inquiry *inquiry, const struct tt_watch *watches);
