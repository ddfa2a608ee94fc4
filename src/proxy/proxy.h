/* The proxy: a thread per communicator that moves its network steps when nobody else does. */
#pragma once

#include "nccl.h"

struct tt_member;
struct tt_transport;
struct tt_proxy; /* opaque */

/* Start the thread (signals blocked). member: its abort is set to the first error of a network
 * edge, so that whoever waits ends. Both are borrowed until tt_proxy_destroy(). */
ncclResult_t tt_proxy_create(struct tt_member *member, struct tt_transport *transport,
                             struct tt_proxy **proxy_out);
/* Stop and join. Accepts NULL. */
void tt_proxy_destroy(struct tt_proxy *proxy);
