/* Small numbers that every element type holds exactly, so that results can be compared bit by bit.
 */
#pragma once

#include "nccl.h"

#include <stddef.h>

size_t value_bytes(ncclDataType_t type);
const char *value_type_name(ncclDataType_t type);
/* Store `value` as element `index`; it must be exact in that type. */
void value_put(void *buffer, size_t index, ncclDataType_t type, double value);
double value_get(const void *buffer, size_t index, ncclDataType_t type);
