/* The proxy: a thread per communicator that connects network edges, and moves their slots when no
 * other thread does. */
#pragma once

#include "nccl.h"

struct tt_member;
struct tt_transport;
struct tt_profiler;
struct tt_proxy; /* opaque */

/* Start the thread (signals blocked, NCCL_PROXY_CPUSET obeyed). member: its abort is set to the
 * first error of a network edge, so that waits end. All are borrowed until tt_proxy_destroy(); the
 * transport has a network; profiler may be NULL. Errors: ncclSystemError (no thread). */
ncclResult_t tt_proxy_create(struct tt_member *member, struct tt_transport *transport,
                             struct tt_profiler *profiler, struct tt_proxy **proxy_out);
/* Hand over what was posted, stop and join. Gives up on the abort flag, an error, or after 10 s in
 * which nothing moved. Accepts NULL. */
void tt_proxy_destroy(struct tt_proxy *proxy);
