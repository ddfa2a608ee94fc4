/* The pattern that fills new memory, by which reads of unwritten memory are found. Private to
 * check/; called under the checker's lock. */
#pragma once

#include "device/host/check/state.h"

bool tt_check_is_unwritten(struct tt_host_check *check, const void *ptr, size_t bytes);
void tt_check_pattern_fill(void *ptr, size_t bytes);
/* How many bytes of an allocation are filled: all would take memory for pages that are never used.
 */
size_t tt_check_pattern_bytes(size_t bytes);
