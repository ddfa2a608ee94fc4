/* Functions of edges and of the call log for small messages. A caller looks them up once and calls
 * them in every run. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Connection indices (enum tt_conn_index) for a collective's short messages, in memory that all
 * ranks share. */
enum tt_conn_short {
    TT_CONN_AHEAD = 2, /* to a rank that only takes: has more slots; TT_SLOT_INLINE_BYTES at most */
    TT_CONN_CAST,      /* written once for all others, who must all take it; key.peer: the sender */
    TT_CONN_STREAM,    /* the same from a rank that only gives: has more slots */
    TT_CONN_END_
};

#define TT_CAST_BYTES 4096 /* longest message of TT_CONN_CAST and TT_CONN_STREAM */
/* Where it holds a block for each reader: longest block. Beyond, a slot for each was faster. */
#define TT_CAST_BLOCK_BYTES 128

struct tt_call;
struct tt_edge;
struct tt_transport;

/* Several messages of consecutive operations, of one size, in one slot: together at most
 * TT_SLOT_INLINE_BYTES. A receiver that does not take a bundle as a whole peeks and releases it
 * message by message. */
struct tt_bundle {
    uint64_t match; /* of the first message */
    uint32_t bytes; /* of each */
    uint32_t count;
};
struct tt_edge_small { /* all hot */
    /* tt_edge_acquire() and tt_edge_post_small(). False: no slot is free yet. */
    bool (*send)(struct tt_edge *edge, uint64_t match, const void *bytes, size_t len_bytes);
    /* The same, of a sender that runs ahead: in no operation it waits for a message. */
    bool (*send_ahead)(struct tt_edge *edge, uint64_t match, const void *bytes, size_t len_bytes);
    /* Payload of the next full slot, if it has that match header and size; else NULL, and
     * tt_edge_peek() says why. release: free the slot. */
    const char *(*take)(struct tt_edge *edge, uint64_t match, size_t bytes);
    void (*release)(struct tt_edge *edge);
    /* Bundles; all four are NULL where the edge has none. open: where to write the messages, NULL
     * when no slot is free; close: post them. */
    char *(*open)(struct tt_edge *edge);
    void (*close)(struct tt_edge *edge, const struct tt_bundle *bundle);
    /* All messages of the bundle; NULL: it has not come, or its messages come in other slots. */
    const char *(*take_all)(struct tt_edge *edge, const struct tt_bundle *bundle);
    void (*release_all)(struct tt_edge *edge, const struct tt_bundle *bundle);
};

/* Let the next post wait for what is posted behind it, so that a network sends both at once. The
 * caller pushes before it waits or ends. False: the edge sends everything as it is posted. */
bool tt_edge_hold(struct tt_edge *edge);
/* The same for a long message, which is sent from where it lies (tt_edge_post_ref()): only where a
 * network takes less time for several in one call. */
bool tt_edge_hold_long(struct tt_edge *edge);
bool tt_edge_holds(const struct tt_edge *edge); /* what that would return, at either end */
void tt_edge_push(struct tt_edge *edge);

/* As tt_transport_begin(), for `ncalls` operations of equal calls. Returns the match header of the
 * first; that of each following one is larger by TT_MATCH_STEP. hot */
#define TT_MATCH_STEP ((uint64_t)1 << 32)
uint64_t tt_transport_begin_many(struct tt_transport *transport, uint32_t fingerprint,
                                 const struct tt_call *call, int ncalls);
