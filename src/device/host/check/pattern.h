/* The pattern that fills new memory, by which reads of unwritten memory are found. Private to
 * check/; called under the checker's lock. */
#pragma once

#include "state.h"

bool tt_check_is_unwritten(struct tt_host_check *check, const void *ptr, size_t bytes);
void tt_check_pattern_fill(void *ptr, size_t bytes);
/* How much of an allocation is filled: nobody wants all of it in memory before it is used. */
size_t tt_check_pattern_bytes(size_t bytes);
