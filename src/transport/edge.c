/* The calls behind which the edges of all transports look alike, and how both ends of an edge
 * notice that they do not mean the same operation. */
#include "transport/edge.h"

#include "base/mem.h"
#include "net/net.h"
#include "transport/transport_state.h"

/* The match header of a message: the low bits of its number between type and bytes. Ends that
 * differ in the type alone match, as with NCCL. */
enum { BYTES_BITS = 40, NUMBER_BITS = 64 - BYTES_BITS - TT_NET_KEY_FREE_BITS };
#define NUMBER_MASK ((1u << NUMBER_BITS) - 1)

/* The number with those low bits that is nearest to `near`, counted from 1. */
static uint32_t number_of(uint64_t match, uint32_t near)
{
    const uint32_t from = near - NUMBER_MASK / 2;
    const uint32_t low = (uint32_t)(match >> BYTES_BITS);
    return from + ((low - from) & NUMBER_MASK) + 1;
}

/* "Send(count 2, double, to rank 1)" */
static void message_text(uint64_t match, enum tt_func func, int peer, char text_out[TT_CALL_BYTES])
{
    const uint32_t type = (uint32_t)(match >> (BYTES_BITS + NUMBER_BITS));
    const uint64_t bytes = match & (((uint64_t)1 << BYTES_BITS) - 1);
    const struct tt_call call = {
        .count = bytes / tt_max_size(tt_type_bytes((ncclDataType_t)type), 1),
        .root = peer,
        .func = (uint8_t)func,
        .type = (uint8_t)type,
        .known = 1,
    };
    tt_call_text(&call, false, text_out);
}

static ncclResult_t message_mismatch(const struct tt_edge *edge, uint64_t expected, uint64_t found)
{
    struct tt_transport *transport = edge->config->transport;
    int rank = edge->config->member->rank, peer = edge->key.peer;
    const uint32_t near = tt_transport_messages(transport, peer, false);
    char own[TT_CALL_BYTES], theirs[TT_CALL_BYTES];
    if ((expected ^ found) << TT_NET_KEY_FREE_BITS == 0) return ncclSuccess;
    message_text(expected, TT_FUNC_RECV, peer, own);
    message_text(found, TT_FUNC_SEND, rank, theirs);
    return tt_transport_mismatch(transport,
                                 "send and receive do not match: rank %d called %s as message %u "
                                 "of rank %d, which called %s as message %u",
                                 rank, own, number_of(expected, near), peer, theirs,
                                 number_of(found, near));
}

ncclResult_t tt_edge_mismatch(const struct tt_edge *edge, uint64_t expected, uint64_t found,
                              const struct tt_call *call)
{
    struct tt_transport *transport = edge->config->transport;
    int rank = edge->config->member->rank, peer = edge->key.peer;
    struct tt_call_entry own, theirs;
    if (edge->key.conn == TT_CONN_P2P) return message_mismatch(edge, expected, found);
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

uint64_t tt_edge_next_message(struct tt_edge *edge, uint64_t bytes, uint32_t type)
{
    _Atomic uint32_t *count =
        &edge->config->transport->messages[2 * edge->key.peer + edge->key.sending];
    uint32_t number = atomic_load_explicit(count, memory_order_relaxed);
    atomic_store_explicit(count, number + 1, memory_order_relaxed);
    return (uint64_t)(type << NUMBER_BITS | (number & NUMBER_MASK)) << BYTES_BITS ^ bytes;
}
