/* The one object of this room, and how its parts begin: see process.h. All zeros in the file. */
#include "base/process.h"

struct tt_base tt_base = {
    .log.lock = PTHREAD_MUTEX_INITIALIZER,
    .error.lock = PTHREAD_MUTEX_INITIALIZER,
    .params.lock = PTHREAD_MUTEX_INITIALIZER,
    .files.lock = PTHREAD_MUTEX_INITIALIZER,
    .environment = PTHREAD_ONCE_INIT,
};
