/* Launch attributes: values by number. None of them changes how work runs. */
#include "attributes.h"

#include <stdlib.h>
#include <string.h>

static struct tt_host_attribute *find(struct tt_host_attribute *list, int id)
{
    while (list && list->id != id) {
        list = list->next;
    }
    return list;
}

bool tt_host_attributes_set(struct tt_host_attribute **list, int id, const void *value)
{
    struct tt_host_attribute *one = find(*list, id);
    if (!one) {
        one = calloc(1, sizeof(*one));
        if (!one) return false;
        one->id = id;
        one->next = *list;
        *list = one;
    }
    memcpy(one->value, value, sizeof(one->value));
    return true;
}

const void *tt_host_attributes_get(const struct tt_host_attribute *list, int id)
{
    while (list && list->id != id) {
        list = list->next;
    }
    return list ? list->value : NULL;
}

bool tt_host_attributes_copy(struct tt_host_attribute **to, const struct tt_host_attribute *from)
{
    bool good = true;
    for (; from && good; from = from->next) {
        good = tt_host_attributes_set(to, from->id, from->value);
    }
    return good;
}

void tt_host_attributes_free(struct tt_host_attribute *list)
{
    while (list) {
        struct tt_host_attribute *next = list->next;
        free(list);
        list = next;
    }
}
