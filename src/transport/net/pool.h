/* Slots that the messages' edges of many peers share (net_pool.c). */
#pragma once

#include "transport/net/net.h"

/* Slots of an edge that takes them from the pool. */
enum { NET_POOL_SLOTS = 4 };
_Static_assert(NET_POOL_SLOTS >= TT_SLOTS / 2, "a request for several messages has so many");

/* True when that edge, which has no slots yet, shall take them from the pool. */
bool tt_net_pool_serves(struct tt_net_edges *edges, const struct net_edge *edge);
/* Make the pool, of slots of that size, if it is not there. */
ncclResult_t tt_net_pool_create(struct tt_net_edges *edges, size_t pool_bytes, size_t stride);
/* Give slots to a pooled edge that has none. False: not now. The executor's thread. */
bool tt_net_pool_take(struct net_edge *edge);
/* The edge ends; its connections are closed. */
void tt_net_pool_leave(struct net_edge *edge);
/* What a connection of the edge registers. */
void tt_net_pool_memory(const struct net_edge *edge, void **at_out, size_t *bytes_out);
/* Set `mhandle` of a line of a pooled edge to that of the slots that it has now. Lock held. */
ncclResult_t tt_net_pool_register(struct net_edge *edge, struct net_line *line);
