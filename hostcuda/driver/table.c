/* Functions of the driver interface by name and by the CUDA version that brought them: the first
 * of a name that is not newer than what is asked for is the answer. */
#include "find.h"

#include <stddef.h>
#include <string.h>

enum tt_driver_found tt_driver_find(const char *name, int version, bool per_thread, void **function)
{
    bool known = false;
    for (const struct tt_driver_entry *entry = tt_driver_entries; entry->name; entry++) {
        if (strcmp(entry->name, name) != 0) continue;
        known = true;
        if (version && entry->version > version) continue;
        tt_driver_function *found = per_thread ? entry->per_thread : entry->legacy;
        memcpy(function, &found, sizeof(found));
        return TT_DRIVER_FOUND;
    }
    *function = NULL;
    return known ? TT_DRIVER_NEWER : TT_DRIVER_UNKNOWN;
}
