/* The one object of this room, and how its parts begin: see process.h. All zeros in the file. */
#include "base/process.h"

struct tt_base tt_base = {
    .log = {.lock = PTHREAD_MUTEX_INITIALIZER, .threads_once = PTHREAD_ONCE_INIT},
    .error.lock = PTHREAD_MUTEX_INITIALIZER,
    .params.lock = PTHREAD_MUTEX_INITIALIZER,
    .files.lock = PTHREAD_MUTEX_INITIALIZER,
    .networks = {.interfaces.once = PTHREAD_ONCE_INIT, .ib_once = PTHREAD_ONCE_INIT},
    .environment = PTHREAD_ONCE_INIT,
};

struct tt_networks *tt_networks(void)
{
    return &tt_base.networks;
}
