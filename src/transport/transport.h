/* Edges: directed connections to a peer, made of slots. Below the interpreter, above networks.
 *
 * An edge has K = 8 slots. The sender fills a slot and posts it, the receiver consumes and frees
 * it, in order. Three transports, best first: direct (peer's memory is mapped here and
 * NCCL_P2P_DISABLE is off: a slot may carry a reference to the sender's user memory in place of the
 * bytes), shm (bytes through slots in mapped memory), net (slots moved by the proxy through a
 * network plugin). Nothing in here knows what the bytes mean. */
#pragma once

#include "nccl.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tt_call;
struct tt_member;
struct tt_bootstrap;
struct tt_net;
struct tt_transport_group;
struct tt_profiler;
struct tt_transport; /* all edges of one communicator; opaque */
struct tt_edge;

#define TT_SLOTS 8              /* messages under way per edge; memory edges take more small ones */
#define TT_SLOT_INLINE_BYTES 96 /* most payload that is sent within a slot's header */

/* What a probe proved about a peer. */
enum tt_reach {
    TT_REACH_PROCESS, /* same process: every pointer is good */
    TT_REACH_MAPPED,  /* its range is mapped here: range memory is good */
    TT_REACH_NET,     /* only the network */
};

/* What the transport must know of each peer; filled by comm/ from the exchanged records. */
struct tt_peer_reach {
    enum tt_reach reach;
    char *range_base; /* its range as mapped here (PROCESS: own range); NULL for NET */
    size_t range_bytes;
    const char *view; /* of the own range, once more: the bytes from view_offset on; or NULL */
    size_t view_offset;
    uint64_t inbox_offset; /* its control block inside its range */
    int device;            /* its device number, for logs */
    bool same_pids;        /* its pid namespace is this process's */
};

enum { TT_NIC_CHANNELS = 64, TT_NIC_DEVICES = 64 };
struct tt_transport_nics { /* which device of the network an edge uses; -1: in turn */
    int next[TT_NIC_CHANNELS], prev[TT_NIC_CHANNELS];    /* peers along a channel */
    int along[TT_NIC_CHANNELS], across[TT_NIC_CHANNELS]; /* to these, and to other peers */
    int from[TT_NIC_CHANNELS];                           /* received messages (conn 1) */
    int toward[TT_NIC_DEVICES][TT_NIC_CHANNELS];         /* by the peer's device number */
};

struct tt_transport_config {
    struct tt_transport *transport;         /* whose it is; set by tt_transport_create() */
    struct tt_member *member;               /* borrowed */
    const struct tt_peer_reach *peers;      /* nranks; borrowed for the transport's life */
    struct tt_bootstrap *bootstrap;         /* borrowed; carries network handles */
    struct tt_net *net;                     /* borrowed; NULL when no peer needs it */
    const struct tt_transport_nics *nics;   /* borrowed; NULL: devices take turns */
    const struct tt_transport_group *group; /* copied; NULL: no network that reduces */
    int nchannels;                          /* edges per peer and direction and connection index */
    size_t slice_bytes;                     /* payload of a slot, equal on all ranks */
    size_t pool_bytes;            /* slots that messages share over plugins, at most; 0: 12 MiB */
    bool allow_direct, allow_shm; /* NCCL_P2P_DISABLE, NCCL_SHM_DISABLE */
    bool oversubscribed;          /* more local ranks than cores */
};

/* The largest half, quarter and so on of `slice_bytes`, or all of it, with which the slots that a
 * rank's edges of a ring and a tree take over a plugin's network are no more than 32 MiB. */
size_t tt_transport_slice_most(int nranks, int nchannels, size_t slice_bytes);
/* Bytes of control memory that a rank needs (inbox slots of all peers, shared barrier). Sparse. */
size_t tt_transport_inbox_bytes(int nranks, int nchannels, size_t slice_bytes);

/* Make the transport of one communicator; no edge is made yet. Waits for no other rank.
 * config         copied; what it points to is borrowed
 * inbox          this rank's zeroed control block of that size, already published to the peers;
 *                borrowed
 * *transport_out owned by the caller
 * Errors: ncclSystemError (out of memory), ncclInternalError (sizes). */
ncclResult_t tt_transport_create(const struct tt_transport_config *config, void *inbox,
                                 struct tt_transport **transport_out);
/* Close all edges, which must not be in use; the proxy has stopped. Accepts NULL. */
void tt_transport_destroy(struct tt_transport *transport);

/* Connection index: collectives, and sends and receives, have edges of their own. NCCL's numbers.
 * The others are for short messages: enum tt_conn_short in small.h. */
enum tt_conn_index { TT_CONN_COLL, TT_CONN_P2P, TT_CONN_COUNT_ = 5 };

struct tt_edge_key {
    int peer, channel, conn; /* conn: enum tt_conn_index */
    bool sending;
};

/* The edge, made on first use (memory edges are ready at once; network edges connect in the
 * background and answer "not ready" until then). Logs the "Channel .. via .." line once.
 * To this rank itself: the network that reduces (TT_CONN_COLL). One thread at a time per
 * communicator. The edge lives as long as the transport.
 * Errors: ncclSystemError (out of memory, or no transport reaches the peer). */
ncclResult_t tt_transport_edge(struct tt_transport *transport, const struct tt_edge_key *key,
                               struct tt_edge **edge_out);

bool tt_transport_over_net(const struct tt_transport *transport, int peer); /* equal at both ends */
size_t tt_transport_slice(const struct tt_transport *transport); /* payload bytes of a slot */

/* "P2P/direct pointer", "P2P/CUMEM", "SHM/direct", "NET/Socket/0" for logs and reports. */
void tt_edge_name(const struct tt_edge *edge, char *text, size_t text_bytes);

int tt_edge_peer(const struct tt_edge *edge); /* sending a cast: the slowest, as last seen */

/* ---- slots: never block; called by one thread at a time per edge ----
 * match: the match header, (operation number << 32) | fingerprint; it differs at the two ends only
 * when the ranks called different operations. */

/* Payload of the next free slot for a message of `bytes` bytes (slice_bytes at most), or NULL when
 * no slot is free yet. For a message of up to TT_SLOT_INLINE_BYTES call tt_edge_post_small() next
 * and do not write the payload: more small messages may be in flight than there are payloads. */
char *tt_edge_acquire(struct tt_edge *edge, size_t bytes); /* hot */
/* Send the acquired slot with `bytes` bytes of payload (0 is allowed: a message without one). */
void tt_edge_post(struct tt_edge *edge, uint64_t match, size_t bytes); /* hot */
/* Send the acquired slot with `len_bytes` <= TT_SLOT_INLINE_BYTES copied from `bytes`, not from its
 * payload. In memory edges that is one cache line up to 32 bytes, else two. */
void tt_edge_post_small(struct tt_edge *edge, uint64_t match, const void *bytes,
                        size_t len_bytes); /* hot */
/* Send the acquired slot as a reference to `bytes` bytes at `ptr` in this rank's memory, which must
 * stay valid until tt_edge_drained(). False when the edge or the memory does not allow references:
 * nothing was sent, copy instead. */
bool tt_edge_post_ref(struct tt_edge *edge, uint64_t match, const void *ptr, size_t bytes);
/* Bytes of a Send that go into one slot; 0: slice_bytes. */
size_t tt_edge_message_bytes(const struct tt_edge *edge);
/* True when memory that a slot refers to must not change before the edge has drained (it is read
 * twice: MACs, plugins). On other edges the peer then gets old or new bytes. */
bool tt_edge_wants_still(const struct tt_edge *edge);
/* True when that memory may change as soon as the peer has taken the slot. */
bool tt_edge_reads_once(const struct tt_edge *edge);
/* After an operation has failed: no edge reads or writes memory of the user any more. Edges with
 * transfers in flight there are broken. Any thread; waits for the thread that moves the network. */
void tt_transport_release_memory(struct tt_transport *transport);
/* Let networks read and write payloads in memory that the user has registered. The user frees it
 * only after tt_transport_forget() or the transport's end. `key` names it; a key that is registered
 * n times must be forgotten n times. Any thread. Both functions accept a `transport` of NULL. */
void tt_transport_register(struct tt_transport *transport, const void *key, void *base,
                           size_t bytes);
/* Undo that; no transfer may be in flight. Waits for the thread that moves the network. */
void tt_transport_forget(struct tt_transport *transport, const void *key);
/* True when the peer has consumed every posted reference (net: every posted byte was handed over).
 */
bool tt_edge_drained(struct tt_edge *edge);

/* True when the network benefits from receives that are posted in advance, by tt_edge_expect(). */
bool tt_transport_expects(const struct tt_transport *transport);
/* Announce that the operation that begins will peek `nmessages` more messages: their receives are
 * posted to the network before a thread waits for them, as many at a time as there are slots. */
void tt_edge_expect(struct tt_edge *edge, uint64_t nmessages);

/* Next full slot: *payload_out set (readable here) and *bytes_out, or ncclInProgress.
 * Errors: ncclInvalidUsage when the match header differs (reported once, naming both),
 * ncclRemoteError when the connection broke. */
ncclResult_t tt_edge_peek(struct tt_edge *edge, uint64_t match, const char **payload_out,
                          size_t *bytes_out); /* hot */
/* Offer `room` bytes at `at` for the payloads of the next messages, before the first of them is
 * peeked. tt_edge_peek() then returns a payload there or elsewhere; the caller compares addresses.
 * The offer ends when the messages were peeked, or with tt_transport_release_memory().
 * at  NULL: no memory is offered, but the next message has `room` bytes */
void tt_edge_land(struct tt_edge *edge, uint64_t match, char *at, size_t room);
void tt_edge_release(struct tt_edge *edge); /* free the peeked slot for the sender; hot */
struct tt_edge_small;                       /* small.h */
const struct tt_edge_small *tt_edge_small(const struct tt_edge *edge);

struct tt_edge_track {            /* an operation's use of an edge, for the profiler */
    struct tt_profiler *profiler; /* borrowed */
    void *parent;                 /* Coll or P2p event; NULL: it has no handle */
    uint32_t mask;                /* sampled with the operation */
    int nsteps;                   /* slots that will be moved; 0 unknown */
};
/* Report the edge's steps to the profiler, for the operation that begins to use the edge; NULL: the
 * operation ends. Only where tt_edge_tracks(), which edges in memory do not, anything happens. */
void tt_edge_track(struct tt_edge *edge, const struct tt_edge_track *track);
bool tt_edge_tracks(const struct tt_edge *edge);

/* TT_CONN_P2P: begin the next message over this end and return its match header. The k-th send of a
 * pair matches its k-th receive, so both ends have the same numbers.
 * type  ncclDataType_t, for the report of a mismatch: ends of equal size may differ in it */
uint64_t tt_edge_next_message(struct tt_edge *edge, uint64_t bytes, uint32_t type);

/* ---- which call every rank is in (call_log.c) ---- */

/* Begin the communicator's next collective operation and return its match header. Operations are
 * numbered from 1, equally on all ranks. Call it when the operation starts, in issue order. The
 * call is published for the peers. hot */
uint64_t tt_transport_begin(struct tt_transport *transport, uint32_t fingerprint,
                            const struct tt_call *call);
/* Counter of the collective operations begun. Valid as long as the transport. Any thread. */
const _Atomic uint64_t *tt_transport_begun(const struct tt_transport *transport);
/* How long bytes that `rank` sent before its process ended may still be in flight, in nanoseconds.
 * 0: memory, or no connection. UINT64_MAX: the network itself will report the end, or this cannot
 * be looked up now. Never blocks. */
uint64_t tt_transport_in_flight_nsec(struct tt_transport *transport, int rank);
/* Compare this rank's operation with that of `rank`, if its memory is mapped here. Errors:
 * ncclInvalidUsage (reported to all ranks) for one number with different fingerprints. */
ncclResult_t tt_transport_compare(struct tt_transport *transport, uint64_t match, int rank);

#define TT_CALL_LOG_LEN 64 /* the last operations that a rank remembers */
#define TT_CALL_ENTRY_WORDS 5
#define TT_CALL_LOG_WORDS (1 + TT_SLOTS * TT_CALL_ENTRY_WORDS)
/* This rank's last operations, packed for another rank. Any thread. */
void tt_call_log_pack(const struct tt_transport *transport, uint64_t words_out[TT_CALL_LOG_WORDS]);
/* Compare this rank's operations with those that `rank` packed. Any thread. Errors:
 * ncclInvalidUsage (reported to all ranks) when an operation that both still know differs, or an
 * earlier one did. */
ncclResult_t tt_call_log_compare(struct tt_transport *transport, int rank,
                                 const uint64_t words[TT_CALL_LOG_WORDS]);
/* UNSEEN: the other rank's memory is not mapped here. LATE: it has not begun the operation. */
enum tt_calls_match { TT_CALLS_AGREE, TT_CALLS_UNSEEN, TT_CALLS_LATE, TT_CALLS_DIFFER };
/* Compare the operations up to `number` with each other rank's; the greatest result. Any thread. */
enum tt_calls_match tt_transport_agree(struct tt_transport *transport, uint64_t number);
/* The call of the operation with that number; false when it is no longer in the log. Any thread. */
bool tt_call_log_get(const struct tt_transport *transport, uint64_t number,
                     struct tt_call *call_out);
/* Messages that this rank has begun to send to `rank`, or to receive from it. Any thread. */
uint32_t tt_transport_messages(const struct tt_transport *transport, int rank, bool sending);
/* Fail with ncclInvalidUsage and that sentence at all ranks, unless it has failed. Any thread. */
ncclResult_t tt_transport_mismatch(struct tt_transport *transport, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Advance network transfers and connections once, for a caller without a proxy. Never blocks.
 * *moved_out  true when something advanced
 * Errors: the first failure of a network edge (reported once). */
ncclResult_t tt_transport_progress(struct tt_transport *transport, bool *moved_out);

/* True when all local peers can read and write this memory directly: device memory always, other
 * memory only when every peer is in this process. */
bool tt_transport_reachable(const struct tt_transport *transport, const void *ptr, size_t bytes);
