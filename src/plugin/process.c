/* The one object of this room, and how its parts begin: see process.h. All zeros in the file. */
#include "plugin/process.h"

struct tt_plugins tt_plugins = {
    .nets.lock = PTHREAD_MUTEX_INITIALIZER,
    .tuner = {.slot.lock = PTHREAD_MUTEX_INITIALIZER, .single.lock = PTHREAD_MUTEX_INITIALIZER},
    .profiler = {.slot.lock = PTHREAD_MUTEX_INITIALIZER, .init_lock = PTHREAD_MUTEX_INITIALIZER},
    .env = {.slot.lock = PTHREAD_MUTEX_INITIALIZER,
            .once = PTHREAD_ONCE_INIT,
            .lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP},
    .nvtx.once = PTHREAD_ONCE_INIT,
};
