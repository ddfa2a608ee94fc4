/* The edge to a network that reduces, executor's side: slots of this rank go to the network, slots
 * that come from it hold what all of the group gave. Both ends are this rank's, and share a lane: a
 * ring of slots for what is given and one for what comes back, registered with the group's
 * connection. Sums follow each other in the order of the posts, at all ranks of the group: a lane
 * is used by one program at a time and by one channel of it. Where a call
 * takes or leaves a message for each rank of the group, these lie side by side in a slot. */
#include "transport/net/collnet.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "plugin/net/collnet.h"
#include "transport/net/net.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lane_edge { /* one end, on one channel */
    struct tt_edge edge;
    struct tt_collnet_lane *lane; /* borrowed: the transport's */
    int channel;
};

static struct tt_collnet_lane *lane_of(const struct tt_edge *edge)
{
    return tt_container_of((struct tt_edge *)(uintptr_t)edge, struct lane_edge, edge)->lane;
}

/* ---- the executor, giving ---- */

static bool has_room(const struct tt_collnet_lane *lane, uint64_t posted)
{
    return posted - atomic_load_explicit(&lane->released, memory_order_acquire) < TT_SLOTS;
}

static char *lane_acquire(struct tt_edge *edge, size_t bytes)
{
    struct tt_collnet_lane *lane = lane_of(edge);
    uint64_t posted = atomic_load_explicit(&lane->posted, memory_order_relaxed);
    if (!has_room(lane, posted)) return NULL;
    return tt_lane_payload(lane, lane->given, posted) + (size_t)lane->given_at * bytes;
}

static void lane_post(struct tt_edge *edge, uint64_t match, size_t bytes)
{
    struct tt_collnet_lane *lane = lane_of(edge);
    uint64_t posted = atomic_load_explicit(&lane->posted, memory_order_relaxed);
    if (++lane->given_at == lane->type.gives) lane->given_at = 0;
    if (lane->given_at != lane->given_first) return;
    *tt_lane_slot(lane, posted) =
        (struct lane_slot){.match = match, .bytes = bytes, .type = lane->type};
    /* pairs with the acquire load in issue() */
    atomic_store_explicit(&lane->posted, posted + 1, memory_order_release);
    tt_net_drive(lane->config->transport->net_edges, NULL, true);
}

static void lane_post_small(struct tt_edge *edge, uint64_t match, const void *bytes,
                            size_t len_bytes)
{
    if (len_bytes) memcpy(lane_acquire(edge, len_bytes), bytes, len_bytes); /* it has room */
    lane_post(edge, match, len_bytes);
}

static bool lane_post_ref(struct tt_edge *edge, uint64_t match, const void *ptr, size_t bytes)
{
    (void)edge, (void)match, (void)ptr, (void)bytes; /* what is given is reduced: a copy */
    return false;
}

static bool lane_send_small(struct tt_edge *edge, uint64_t match, const void *bytes,
                            size_t len_bytes)
{
    if (!lane_acquire(edge, len_bytes)) return false;
    lane_post_small(edge, match, bytes, len_bytes);
    return true;
}

static bool lane_drained(struct tt_edge *edge)
{
    (void)edge; /* nothing is referred to */
    return true;
}

/* ---- the executor, taking ---- */

static bool is_summed(const struct tt_collnet_lane *lane, uint64_t number)
{
    /* pairs with the release store in collect() */
    return atomic_load_explicit(&lane->summed, memory_order_acquire) != number;
}

static ncclResult_t lane_peek(struct tt_edge *edge, uint64_t match, const char **payload_out,
                              size_t *bytes_out)
{
    struct tt_collnet_lane *lane = lane_of(edge);
    uint64_t released = atomic_load_explicit(&lane->released, memory_order_relaxed);
    if (!is_summed(lane, released)) {
        tt_net_drive(lane->config->transport->net_edges, NULL, false);
        if (!is_summed(lane, released)) {
            int error = atomic_load_explicit(&lane->error, memory_order_acquire);
            return error ? (ncclResult_t)error : ncclInProgress;
        }
    }
    const struct lane_slot *slot = tt_lane_slot(lane, released);
    if (slot->match != match) { /* left by an operation that was given up */
        return tt_fail(ncclInternalError,
                       "rank %d: a sum of another operation came from COLLNET/%s",
                       lane->config->member->rank, lane->config->group->collnet->name);
    }
    *payload_out =
        tt_lane_payload(lane, lane->sums, released) + (size_t)lane->taken_at * slot->bytes;
    *bytes_out = slot->bytes;
    return ncclSuccess;
}

static const char *lane_take(struct tt_edge *edge, uint64_t match, size_t bytes)
{
    const char *payload = NULL;
    size_t got = 0;
    ncclResult_t rc = lane_peek(edge, match, &payload, &got);
    return rc == ncclSuccess && got == bytes ? payload : NULL;
}

static void lane_release(struct tt_edge *edge)
{
    struct tt_collnet_lane *lane = lane_of(edge);
    uint64_t released = atomic_load_explicit(&lane->released, memory_order_relaxed);
    if (++lane->taken_at == lane->type.takes) lane->taken_at = 0;
    if (lane->taken_at != lane->taken_first) return;
    atomic_store_explicit(&lane->released, released + 1, memory_order_release);
}

/* ---- life ---- */

static void lane_name(const struct tt_edge *edge, char *text, size_t text_bytes)
{
    const struct tt_transport_config *config = edge->config;
    snprintf(text, text_bytes, "COLLNET/%s/%d", config->group->collnet->name, config->group->dev);
}

static void lane_edge_free(struct tt_edge *edge)
{
    free(tt_container_of(edge, struct lane_edge, edge));
}

static const struct tt_edge_ops lane_ops = {
    .acquire = lane_acquire,
    .post = lane_post,
    .post_small = lane_post_small,
    .post_ref = lane_post_ref,
    .drained = lane_drained,
    .peek = lane_peek,
    .small = {.send = lane_send_small,
              .send_ahead = lane_send_small,
              .take = lane_take,
              .release = lane_release},
    .name = lane_name,
    .destroy = lane_edge_free,
};

ncclResult_t tt_collnet_edge(struct tt_collnet_lane *lane, const struct tt_edge_key *key,
                             struct tt_edge **edge_out)
{
    const struct tt_transport_config *config = lane->config;
    struct lane_edge *edge = tt_calloc(1, sizeof(*edge));
    if (!edge) return tt_fail(ncclSystemError, "collnet: out of memory");
    edge->edge = (struct tt_edge){.ops = &lane_ops, .config = config, .key = *key};
    edge->edge.key.peer = -1; /* it is several */
    edge->lane = lane;
    tt_info(TT_LOG_INIT | TT_LOG_NET, "CollNet %02d/%d : %d [%s] via COLLNET/%s/%d", key->channel,
            key->conn, config->member->rank, key->sending ? "send" : "receive",
            config->group->collnet->name, config->group->dev);
    *edge_out = &edge->edge;
    return ncclSuccess;
}

void tt_transport_reduces(struct tt_transport *transport, const struct tt_collnet_type *type)
{
    struct tt_collnet_lane *lane = transport->net_edges ? transport->net_edges->lane : NULL;
    if (!lane) return;
    lane->type = *type;
    lane->given_at = lane->given_first = type->gives > 1 ? lane->config->group->rank : 0;
    lane->taken_at = lane->taken_first = type->takes > 1 ? lane->config->group->rank : 0;
}
