/* Shared by the transports of this room: the base of every edge, and the tables of functions of an
 * edge and of a transport. One thread at a time uses an edge. */
#pragma once

#include "base/member.h"
#include "program/program.h"
#include "transport/small.h"
#include "transport/transport.h"

/* Slots of one edge. All callbacks but `track`, `land`, `expect` and `push` are required and none
 * blocks (contracts: tt_edge_* in transport.h). Sending edges get acquire, post, post_small,
 * post_ref, drained and small.send; receiving edges get peek, land, small.take and small.release.
 */
struct tt_edge_ops {
    char *(*acquire)(struct tt_edge *edge, size_t bytes);
    void (*post)(struct tt_edge *edge, uint64_t match, size_t bytes);
    void (*post_small)(struct tt_edge *edge, uint64_t match, const void *bytes, size_t len_bytes);
    bool (*post_ref)(struct tt_edge *edge, uint64_t match, const void *ptr, size_t bytes);
    bool (*drained)(struct tt_edge *edge);
    ncclResult_t (*peek)(struct tt_edge *edge, uint64_t match, const char **payload_out,
                         size_t *bytes_out);
    void (*land)(struct tt_edge *edge, uint64_t match, char *at, size_t room); /* NULL: cannot */
    void (*expect)(struct tt_edge *edge, uint64_t nmessages);                  /* NULL: no use */
    void (*push)(struct tt_edge *edge); /* NULL: a post is sent at once, tt_edge_hold() or not */
    struct tt_edge_small small;
    /* NULL: no events for a profiler. Not on the hot path. */
    void (*track)(struct tt_edge *edge, const struct tt_edge_track *track);
    void (*name)(const struct tt_edge *edge, char *text, size_t text_bytes);
    void (*destroy)(struct tt_edge *edge); /* frees the edge itself */
};

/* Base of every edge; a transport puts it first in its own struct (tt_container_of). */
struct tt_edge {
    const struct tt_edge_ops *ops;
    const struct tt_transport_config *config; /* borrowed: the transport's copy */
    struct tt_edge_key key;
    size_t message_bytes; /* tt_edge_message_bytes(); 0: a slice */
    bool reads_once;      /* tt_edge_reads_once() */
    bool joins_long;      /* tt_edge_hold_long() */
    bool wants_still;     /* tt_edge_wants_still() */
    bool held;            /* the next post stays until tt_edge_push() or one that is not held */
    bool failed;          /* damage was reported; later such slots are returned without a message */
};

/* A transport. */
struct tt_transport_ops {
    const char *name;
    /* True when this communicator may use it towards the peer. Equal at both ends of an edge. */
    bool (*can_connect)(const struct tt_transport_config *config, int peer);
    /* Make one end. Never waits for the peer: an edge that is not connected yet answers "not ready"
     * (acquire NULL, peek ncclInProgress). `inbox` is this rank's control block. */
    ncclResult_t (*connect)(const struct tt_transport_config *config, void *inbox,
                            const struct tt_edge_key *key, struct tt_edge **edge_out);
};

extern const struct tt_transport_ops tt_transport_direct; /* memory.c */
extern const struct tt_transport_ops tt_transport_shm;    /* memory.c */
extern const struct tt_transport_ops tt_transport_net;    /* net.c */

/* An end of TT_CONN_CAST. memory.c */
ncclResult_t tt_memory_cast(const struct tt_transport_config *config, void *inbox,
                            const struct tt_edge_key *key, struct tt_edge **edge_out);

/* ---- edge.c ---- */

/* The match headers of a slot and of its receiver differ: report both calls to all ranks, once, and
 * return ncclInvalidUsage; or success for messages that differ in type alone. `call` is the
 * sender's; NULL: look for it in the sender's call log. */
ncclResult_t tt_edge_mismatch(const struct tt_edge *edge, uint64_t expected, uint64_t found,
                              const struct tt_call *call);

/* ---- call_log.c ---- */

struct tt_call_entry {
    uint64_t match, history;
    struct tt_call call;
};
/* Report to all ranks that this rank and `peer` are in different operations. */
ncclResult_t tt_call_log_mismatch(struct tt_transport *transport, const struct tt_call_entry *own,
                                  int peer, const struct tt_call_entry *theirs);
/* Find the operation with that number of this rank, or of `rank` if its memory is mapped here.
 * False when it has not begun it, or began it too long ago. */
bool tt_call_log_find(const struct tt_transport *transport, int rank, uint64_t number,
                      struct tt_call_entry *entry_out);
/* Report to all ranks that `ender` ends the communicator after operation `number`, while `rank` is
 * in the next one. */
ncclResult_t tt_call_log_ended(struct tt_transport *transport, int ender, uint64_t number, int rank,
                               const struct tt_call *call);
/* Report to all ranks that this rank and `rank` agree in that operation, but not in all before it.
 */
ncclResult_t tt_call_log_history(struct tt_transport *transport, int rank, uint64_t number);
