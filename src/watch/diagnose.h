/* RAS's diagnostics: do the processes of a job have the same devices, driver and variables? Private
 * to the room. */
#pragma once

#include "watch/inquiry.h"

#include <stdint.h>
#include <stdio.h>

/* What others compare of this process, lines "NAME=value": devices, driver, and its NCCL_ variables
 * as they are now. Owned by the caller; NULL: out of memory. Reads the environment, so it belongs
 * into a call of the user's. */
char *tt_diagnose_settings(void);

/* The report on an inquiry with TT_INQUIRY_SETTINGS that is over.
 * comm_id  of one communicator; 0: all */
void tt_diagnose_report(FILE *out, const struct tt_inquiry *inquiry, uint64_t comm_id);
/* The same as a text, owned by the caller; NULL when out of memory. */
char *tt_diagnose_text(const struct tt_inquiry *inquiry, uint64_t comm_id);
/* To standard output. Where nobody reads it for a second the rest is left out, with a warning. */
void tt_diagnose_print(const char *text);
