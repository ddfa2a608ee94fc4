/* See process.h. */
#include "mem/process.h"

struct tt_mem tt_mem = {
    .registries.lock = PTHREAD_MUTEX_INITIALIZER,
    .segments.lock = PTHREAD_MUTEX_INITIALIZER,
};
