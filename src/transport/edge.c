/* The calls behind which the edges of all transports look alike, and how both ends of an edge
 * notice that they do not mean the same operation. */
#include "transport/edge.h"

#include "transport/transport_state.h"

ncclResult_t tt_edge_mismatch(const struct tt_edge *edge, uint64_t expected, uint64_t found,
                              const struct tt_call *call)
{
    struct tt_transport *transport = edge->config->transport;
    int rank = edge->config->member->rank, peer = edge->key.peer;
    struct tt_call_entry own, theirs;
    if (edge->key.conn == TT_CONN_P2P) {
        return tt_transport_mismatch(
            transport,
            "send and receive do not match: rank %d receives %u bytes "
            "as message %u of rank %d, which sent %u as message %u (multiples of 4 GiB left out)",
            rank, (uint32_t)expected, (uint32_t)(expected >> 32) + 1, peer, (uint32_t)found,
            (uint32_t)(found >> 32) + 1);
    }
    if (!tt_call_log_find(transport, rank, expected >> 32, &own))
        own = (struct tt_call_entry){.match = expected};
    if (call || !tt_call_log_find(transport, peer, found >> 32, &theirs) || theirs.match != found)
        theirs = (struct tt_call_entry){.match = found};
    if (call) theirs.call = *call;
    return tt_call_log_mismatch(transport, &own, peer, &theirs);
}

void tt_edge_name(const struct tt_edge *edge, char *text, size_t text_bytes)
{
    edge->ops->name(edge, text, text_bytes);
}

int tt_edge_peer(const struct tt_edge *edge)
{
    return edge->key.peer;
}

char *tt_edge_acquire(struct tt_edge *edge, size_t bytes)
{
    return edge->ops->acquire(edge, bytes);
}

void tt_edge_post(struct tt_edge *edge, uint64_t match, size_t bytes)
{
    edge->ops->post(edge, match, bytes);
}

void tt_edge_post_small(struct tt_edge *edge, uint64_t match, const void *bytes, size_t len_bytes)
{
    edge->ops->post_small(edge, match, bytes, len_bytes);
}

bool tt_edge_post_ref(struct tt_edge *edge, uint64_t match, const void *ptr, size_t bytes)
{
    bool posted = edge->ops->post_ref(edge, match, ptr, bytes);
    if (!posted) edge->held = false;
    return posted;
}

size_t tt_edge_message_bytes(const struct tt_edge *edge)
{
    return edge->message_bytes;
}

bool tt_edge_wants_still(const struct tt_edge *edge)
{
    return edge->wants_still;
}

bool tt_edge_reads_once(const struct tt_edge *edge)
{
    return edge->reads_once;
}

bool tt_edge_holds(const struct tt_edge *edge)
{
    return edge->ops->push;
}

bool tt_edge_hold(struct tt_edge *edge)
{
    edge->held = edge->ops->push;
    return edge->held;
}

bool tt_edge_hold_long(struct tt_edge *edge)
{
    edge->held = edge->joins_long;
    return edge->held;
}

void tt_edge_push(struct tt_edge *edge)
{
    if (edge->ops->push) edge->ops->push(edge);
}

bool tt_edge_drained(struct tt_edge *edge)
{
    return edge->ops->drained(edge);
}

ncclResult_t tt_edge_peek(struct tt_edge *edge, uint64_t match, const char **payload_out,
                          size_t *bytes_out)
{
    return edge->ops->peek(edge, match, payload_out, bytes_out);
}

const struct tt_edge_small *tt_edge_small(const struct tt_edge *edge)
{
    return &edge->ops->small;
}

void tt_edge_expect(struct tt_edge *edge, uint64_t nmessages)
{
    if (edge->ops->expect) edge->ops->expect(edge, nmessages);
}

void tt_edge_land(struct tt_edge *edge, uint64_t match, char *at, size_t room)
{
    if (edge->ops->land) edge->ops->land(edge, match, at, room);
}

void tt_edge_release(struct tt_edge *edge)
{
    edge->ops->small.release(edge);
}

void tt_edge_track(struct tt_edge *edge, const struct tt_edge_track *track)
{
    if (edge->ops->track) edge->ops->track(edge, track);
}

bool tt_edge_tracks(const struct tt_edge *edge)
{
    return edge->ops->track;
}

uint32_t tt_edge_next_message(struct tt_edge *edge)
{
    _Atomic uint32_t *count =
        &edge->config->transport->messages[2 * edge->key.peer + edge->key.sending];
    uint32_t number = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, number + 1, memory_order_relaxed);
    return number;
}
