/* See process.h. */
#include "net/process.h"

struct tt_nets tt_nets = {
    .sockets.once = PTHREAD_ONCE_INIT,
    .ib_once = PTHREAD_ONCE_INIT,
};
