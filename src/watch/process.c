/* See process.h. */
#include "watch/process.h"

struct tt_watches tt_watches = {
    .watchdog = {.lock = PTHREAD_MUTEX_INITIALIZER,
                 .changed = PTHREAD_COND_INITIALIZER,
                 .event_fd = -1},
};
