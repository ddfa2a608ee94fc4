/* RAS's command DIAGNOSTICS: differences in devices, driver and variables between the processes of
 * a job. Private to the room. */
#pragma once

#include "watch/inquiry/inquiry.h"

#include <stdint.h>
#include <stdio.h>

/* Devices, driver and NCCL_ variables of this process as they are now, in lines "NAME=value". Owned
 * by the caller; NULL: out of memory. Reads the environment: call it only in the thread of a user's
 * call. */
char *tt_diagnose_settings(void);

/* Write the report on an inquiry with TT_INQUIRY_SETTINGS that is over.
 * comm_id  of one communicator; 0: all */
void tt_diagnose_report(FILE *out, const struct tt_inquiry *inquiry, uint64_t comm_id);
/* The same as a text, owned by the caller; NULL when out of memory. */
char *tt_diagnose_text(const struct tt_inquiry *inquiry, uint64_t comm_id);
/* Print it to standard output. When the reader blocks it for a second, the rest is dropped, with a
 * warning.
 */
void tt_diagnose_print(const char *text);
