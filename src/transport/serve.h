/* Functions for the proxy: move the network edges of a transport, sleep, be woken. Only for
 * transports with a network. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_transport;

enum tt_net_state {
    TT_NET_MOVED, /* something moved: serve again */
    TT_NET_BUSY,  /* transfers are in flight, or another thread moves them: call again soon */
    TT_NET_IDLE,  /* nothing to do: tt_transport_sleep() until it is woken */
};

/* Connect edges and move slots, once. Always call it in the same thread: some networks bind
 * connections to the thread that makes them. Never blocks. *rc_out: the first error of an edge
 * (reported). */
enum tt_net_state tt_transport_serve(struct tt_transport *transport, ncclResult_t *rc_out);

/* True when slots were posted that the network has not taken yet. Waits for the thread that moves
 * them. *gone_out: all of them are for ranks that have ended the communicator. */
bool tt_transport_pending(struct tt_transport *transport, bool *gone_out);

/* How often threads other than the proxy have moved the network; while it grows, the proxy is not
 * needed. */
uint64_t tt_transport_drives(const struct tt_transport *transport);

/* Sleep until woken, or for `timeout_usec` (0: no limit, but where connections may come anew).
 * Returns at once when it was woken since the last sleep. wake: any thread. */
void tt_transport_sleep(struct tt_transport *transport, uint64_t timeout_usec);
void tt_transport_wake(struct tt_transport *transport);
