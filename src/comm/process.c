/* What this room keeps for the process: see init.h. */
#include "comm/init.h"

struct tt_comms tt_comms = {
    .storage.lock = PTHREAD_MUTEX_INITIALIZER,
    .proofs.lock = PTHREAD_MUTEX_INITIALIZER,
    .version_once = PTHREAD_ONCE_INIT,
    .plans = {.retired.lock = PTHREAD_MUTEX_INITIALIZER, .group_end.once = PTHREAD_ONCE_INIT},
};

struct tt_plans *tt_comm_plans(void)
{
    return &tt_comms.plans;
}
