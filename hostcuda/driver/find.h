/* The driver interface's functions by name. */
#pragma once

#include <stdbool.h>

typedef void tt_driver_function(void);

struct tt_driver_entry {
    const char *name;
    int version; /* of CUDA that brought it */
    tt_driver_function *legacy, *per_thread;
};

/* By name, the newest of a name first; the last has no name. Made from exports/driver.txt. */
extern const struct tt_driver_entry tt_driver_entries[];

enum tt_driver_found { TT_DRIVER_FOUND = 0, TT_DRIVER_UNKNOWN = 1, TT_DRIVER_NEWER = 2 };

/* A function by its plain name, as of a CUDA version (12020 for 12.2; 0: any). *function is NULL
 * when there is none. */
enum tt_driver_found tt_driver_find(const char *name, int version, bool per_thread,
                                    void **function);
