/* Where in the program a call was made. Private to check/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

const void *tt_check_call_site(void);      /* behind the call into the library; NULL: not known */
bool tt_check_is_system(const char *file); /* a library of the system or of Tutti */
/* In a signal handler: a byte behind the instruction's first, or behind the program's call that led
 * to it. */
const void *tt_check_fault_site(const void *instruction);
void tt_check_site_write(const void *site, char *out, size_t out_bytes); /* "" if not known */
