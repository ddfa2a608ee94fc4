/* What the way of small messages needs of edges and of the call log, by calls that who makes them
 * looks up once. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_call;
struct tt_edge;
struct tt_transport;

/* For who looks up once what every run does. All hot. send: tt_edge_acquire() and
 * tt_edge_post_small(), false when no slot is free yet. take: the payload of the next full slot if
 * it is the expected one and has just so many bytes; NULL: tt_edge_peek() says why not.
 * A bundle is several messages of following operations and of one size in one slot, together at
 * most TT_SLOT_INLINE_BYTES. open: where they go, NULL when no slot is free; close: post them.
 * take_all: where all of them lie; NULL: it is not there, or the messages come otherwise;
 * release_all gives it back. A bundle that is not taken so is peeked and released message by
 * message. */
struct tt_bundle {
    uint64_t match; /* of the first message */
    uint32_t bytes; /* of each */
    uint32_t count;
};
struct tt_edge_small {
    bool (*send)(struct tt_edge *edge, uint64_t match, const void *bytes, size_t len_bytes);
    const char *(*take)(struct tt_edge *edge, uint64_t match, size_t bytes);
    void (*release)(struct tt_edge *edge);
    char *(*open)(struct tt_edge *edge); /* NULL: no bundles, as the next three are */
    void (*close)(struct tt_edge *edge, const struct tt_bundle *bundle);
    const char *(*take_all)(struct tt_edge *edge, const struct tt_bundle *bundle);
    void (*release_all)(struct tt_edge *edge, const struct tt_bundle *bundle);
};

/* The same for several operations of one call. Returns the first one's match header; that of each
 * following one is a step larger. hot */
#define TT_MATCH_STEP ((uint64_t)1 << 32)
uint64_t tt_transport_begin_many(struct tt_transport *transport, uint32_t fingerprint,
                                 const struct tt_call *call, int ncalls);
