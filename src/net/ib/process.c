/* What the verbs network keeps for the process: see device.h. */
#include "net/ib/device.h"

struct tt_ib tt_ib = {.once = PTHREAD_ONCE_INIT};
