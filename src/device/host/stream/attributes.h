/* Launch attributes of CUDA's that are kept to be asked for: values by number. Private to the
 * room. The owner of a list guards it. */
#pragma once

#include "device/host/host_stream.h"

#include <stdbool.h>

struct tt_host_attribute {
    struct tt_host_attribute *next; /* owned */
    int id;
    unsigned char value[TT_ATTRIBUTE_BYTES];
};

bool tt_host_attributes_set(struct tt_host_attribute **list, int id, const void *value);
/* The kept value, or NULL. */
const void *tt_host_attributes_get(const struct tt_host_attribute *list, int id);
bool tt_host_attributes_copy(struct tt_host_attribute **to, const struct tt_host_attribute *from);
void tt_host_attributes_free(struct tt_host_attribute *list);
