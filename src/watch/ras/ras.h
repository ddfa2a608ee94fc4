/* Reports in the formats of NCCL's RAS service (its user guide, chapter "RAS"). Private to the
 * room. */
#pragma once

#include "watch/inquiry/inquiry.h"

#include <stdbool.h>
#include <stdio.h>

/* The inquiry is over. */
void tt_ras_json(FILE *out, const struct tt_inquiry *inquiry, const struct tt_watch *watches);
void tt_ras_text(FILE *out, const struct tt_inquiry *inquiry, const struct tt_watch *watches,
                 bool verbose);
