/* Launch attributes of CUDA's that are kept for whoever asks: values by number. Private to the
 * room. The owner of a list guards it. */
#pragma once

#include "device/host/host_stream.h"

#include <stdbool.h>

struct host_attribute {
    struct host_attribute *next; /* owned */
    int id;
    unsigned char value[TT_ATTRIBUTE_BYTES];
};

bool host_attributes_set(struct host_attribute **list, int id, const void *value);
/* The kept value, or NULL. */
const void *host_attributes_get(const struct host_attribute *list, int id);
bool host_attributes_copy(struct host_attribute **to, const struct host_attribute *from);
void host_attributes_free(struct host_attribute *list);
