/* See process.h. */
#include "plan/process.h"

struct tt_plans tt_plans = {
    .retired.lock = PTHREAD_MUTEX_INITIALIZER,
    .group_end.once = PTHREAD_ONCE_INIT,
};
