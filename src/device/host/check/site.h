/* Where in the program a call was made. Private to check/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

const void *tt_check_call_site(void);      /* NULL: not known */
bool tt_check_is_system(const char *file); /* a library that comes with the system, or ours */
/* From inside a signal handler: of the instruction, or of the call that led there. */
const void *tt_check_fault_site(const void *instruction);
void tt_check_site_write(const void *site, char *out, size_t out_bytes); /* ", called at ..." */
