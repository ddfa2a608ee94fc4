/* The calls behind which the edges of all transports look alike, and how both ends of an edge
 * notice that they do not mean the same operation. */
#include "transport/edge.h"

#include "base/error.h"

ncclResult_t tt_match_fail(int rank, uint64_t match, int peer, uint64_t found)
{
    return tt_fail(ncclInvalidUsage,
                   "ranks called different operations: rank %d is in operation %u with fingerprint "
                   "%08x, rank %d in operation %u with fingerprint %08x",
                   rank, (uint32_t)(match >> 32), (uint32_t)match, peer, (uint32_t)(found >> 32),
                   (uint32_t)found);
}

ncclResult_t tt_edge_check(struct tt_edge *edge, uint64_t expected, uint64_t found)
{
    if (expected == found) return ncclSuccess;
    if (edge->failed) return ncclInvalidUsage;
    edge->failed = true;
    int rank = edge->config->member->rank;
    if (edge->key.conn == TT_CONN_P2P) {
        return tt_fail(
            ncclInvalidUsage,
            "rank %d receives message %u of rank %d with %u bytes (mod 2^32), but it was "
            "sent as message %u with %u: send and receive do not match",
            rank, (uint32_t)(expected >> 32), edge->key.peer, (uint32_t)expected,
            (uint32_t)(found >> 32), (uint32_t)found);
    }
    return tt_match_fail(rank, expected, edge->key.peer, found);
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
    return edge->ops->post_ref(edge, match, ptr, bytes);
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

void tt_edge_release(struct tt_edge *edge)
{
    edge->ops->release(edge);
}

void tt_edge_track(struct tt_edge *edge, const struct tt_edge_track *track)
{
    if (edge->ops->track) edge->ops->track(edge, track);
}

uint32_t tt_edge_next_message(struct tt_edge *edge)
{
    return edge->count++;
}
