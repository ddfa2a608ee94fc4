/* The one service thread of a process: an epoll loop over all bootstrap sockets. It runs while the
 * service has users and ends by itself with the last of them. */
#pragma once

#include "nccl.h"

struct tt_service_client;

/* Count a user; the first one starts the thread. The loop calls `client` (static; may be NULL) at
 * its events from now on. Lock held. Errors: ncclInvalidUsage when the process is exiting. */
ncclResult_t tt_service_acquire(const struct tt_service_client *client);
/* Lock held. The thread ends by itself when the last user is gone. */
void tt_service_release(void);
/* Wait until the thread has ended if there are no users (at most 1 s). Lock not held. */
void tt_service_wait_idle(void);
