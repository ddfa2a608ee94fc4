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
#define TT_SLOT_INLINE_BYTES 96 /* payload that rides with a slot's header */

enum tt_reach {                   /* what a probe proved about a peer */
                TT_REACH_PROCESS, /* same process: every pointer is good */
                TT_REACH_MAPPED,  /* its range is mapped here: range memory is good */
                TT_REACH_NET,     /* only the network */
};

/* What the transport must know of each peer; filled by comm/ from the exchanged records. */
struct tt_peer_reach {
    enum tt_reach reach;
    char *range_base; /* its range as mapped here (PROCESS: own range); NULL for NET */
    size_t range_bytes;
    uint64_t inbox_offset; /* its control block inside its range */
    int device;            /* its device number, for logs */
    bool same_pids;        /* its process has the number here that it has there */
};

enum { TT_NIC_CHANNELS = 64, TT_NIC_DEVICES = 64 };
struct tt_transport_nics { /* which device of the network an edge takes; -1: they take turns */
    int next[TT_NIC_CHANNELS], prev[TT_NIC_CHANNELS];    /* peers along a channel */
    int along[TT_NIC_CHANNELS], across[TT_NIC_CHANNELS]; /* to them, and to other peers */
    int from[TT_NIC_CHANNELS];                           /* messages (conn 1) that come */
    int toward[TT_NIC_DEVICES][TT_NIC_CHANNELS];         /* by the peer's device number */
};

struct tt_transport_config {
    struct tt_transport
        *transport; /* set by tt_transport_create(): what the configuration belongs to */
    const struct tt_member *member;         /* borrowed */
    const struct tt_peer_reach *peers;      /* nranks; borrowed for the transport's life */
    struct tt_bootstrap *bootstrap;         /* borrowed; carries network handles */
    struct tt_net *net;                     /* borrowed; NULL when no peer needs it */
    const struct tt_transport_nics *nics;   /* borrowed; NULL: devices take turns */
    const struct tt_transport_group *group; /* copied; NULL: no network that reduces */
    int nchannels;                          /* edges per peer and direction and connection index */
    size_t slice_bytes;                     /* payload of a slot, equal on all ranks */
    bool allow_direct, allow_shm;           /* NCCL_P2P_DISABLE, NCCL_SHM_DISABLE */
    bool oversubscribed;                    /* more local ranks than cores */
};

/* Bytes of control memory that a rank needs (inbox slots of all peers, shared barrier). Sparse. */
size_t tt_transport_inbox_bytes(int nranks, int nchannels, size_t slice_bytes);

/* Make the transport of one communicator; no edge is made yet and nobody is waited for.
 * config         copied; what it points to is borrowed
 * inbox          this rank's zeroed control block of that size, already published to the peers;
 *                borrowed
 * *transport_out owned by the caller
 * Errors: ncclSystemError (out of memory), ncclInternalError (sizes). */
ncclResult_t tt_transport_create(const struct tt_transport_config *config, void *inbox,
                                 struct tt_transport **transport_out);
/* Close all edges; nobody uses one any more and the proxy has stopped. Accepts NULL. */
void tt_transport_destroy(struct tt_transport *transport);

/* Edges of collectives and of sends and receives never meet: a connection index each, with NCCL's
 * numbers. */
enum tt_conn_index { TT_CONN_COLL, TT_CONN_P2P, TT_CONN_COUNT_ };

struct tt_edge_key {
    int peer, channel;
    int conn; /* enum tt_conn_index */
    bool sending;
};

/* The edge, made on first use (memory edges are ready at once; network edges connect in the
 * background and answer "not ready" until then). Logs the "Channel .. via .." line once.
 * To this rank itself: the network that reduces (TT_CONN_COLL). One thread at a time per
 * communicator. The edge lives as long as the transport.
 * Errors: ncclSystemError (out of memory, or no transport reaches the peer). */
ncclResult_t tt_transport_edge(struct tt_transport *transport, const struct tt_edge_key *key,
                               struct tt_edge **edge_out);

/* True when every rank's mapped user memory can be addressed by every other (programs with ENTER).
 */
bool tt_transport_all_direct(const struct tt_transport *transport);
size_t tt_transport_slice(const struct tt_transport *transport); /* payload bytes of a slot */

/* "P2P/direct pointer", "P2P/CUMEM", "SHM/direct", "NET/Socket/0" for logs and reports. */
void tt_edge_name(const struct tt_edge *edge, char *text, size_t text_bytes);

int tt_edge_peer(const struct tt_edge *edge);

/* ---- slots: never block; called by one thread at a time per edge ----
 * match: the match header, (operation number << 32) | fingerprint; it differs at the two ends only
 * when the ranks called different operations. */

/* Payload of the next free slot for a message of that many bytes (slice_bytes at most), or NULL
 * when none is free yet. Up to TT_SLOT_INLINE_BYTES only tt_edge_post_small() may follow, and the
 * payload must not be written: more small messages may be under way than there are payloads. */
char *tt_edge_acquire(struct tt_edge *edge, size_t bytes); /* hot */
/* Hand the acquired slot over with that many bytes (0 is a message too). */
void tt_edge_post(struct tt_edge *edge, uint64_t match, size_t bytes); /* hot */
/* The same with `len_bytes` <= TT_SLOT_INLINE_BYTES copied from `bytes` (not from the acquired
 * payload): one cache line in memory edges up to 32 bytes, else two. Needs a prior acquire. */
void tt_edge_post_small(struct tt_edge *edge, uint64_t match, const void *bytes,
                        size_t len_bytes); /* hot */
/* Hand a free slot over that refers to `bytes` at `ptr` in this rank's memory; false when the edge
 * or the memory cannot (then copy). The memory must stay until tt_edge_drained(). Needs a prior
 * acquire. */
bool tt_edge_post_ref(struct tt_edge *edge, uint64_t match, const void *ptr, size_t bytes);
size_t tt_edge_message_bytes(const struct tt_edge *edge); /* of a Send, by one slot; 0: a slice */
/* Memory must not change meanwhile (MACs, plugins); of others one gets the one or the other. */
bool tt_edge_wants_still(const struct tt_edge *edge);
bool tt_edge_reads_once(const struct tt_edge *edge); /* it may change once the peer took it */
/* An operation failed: from now on no edge reads or writes the user's memory that it was given for
 * one. Edges that had something under way there are broken. Any thread; waits for the thread that
 * moves the network just now. */
void tt_transport_release_memory(struct tt_transport *transport);
/* The user registered that memory, and will not free it before it is forgotten or the transport is
 * gone: networks may take and put payloads there. `key` stands for it; the same key may come again,
 * and is forgotten as often. Any thread. Both accept a `transport` of NULL. */
void tt_transport_register(struct tt_transport *transport, const void *key, void *base,
                           size_t bytes);
/* From now on no network has it registered; nothing is under way there. Waits for the thread that
 * moves the network just now. */
void tt_transport_forget(struct tt_transport *transport, const void *key);
/* True when the peer has consumed every posted reference (net: every posted byte was handed over).
 */
bool tt_edge_drained(struct tt_edge *edge);

/* The network wants hints of the messages that will come: tt_edge_expect(). */
bool tt_transport_expects(const struct tt_transport *transport);
/* The operation that begins will peek so many messages more: the network is asked for them before
 * they are waited for, as many at a time as there are slots. */
void tt_edge_expect(struct tt_edge *edge, uint64_t nmessages);

/* Next full slot: *payload_out set (readable here) and *bytes_out, or ncclInProgress.
 * Errors: ncclInvalidUsage when the match header differs (reported once, naming both),
 * ncclRemoteError when the connection broke. */
ncclResult_t tt_edge_peek(struct tt_edge *edge, uint64_t match, const char **payload_out,
                          size_t *bytes_out); /* hot */
/* Before the next message is peeked: the first `room` bytes at `at` are free for its payload, or,
 * where it is shorter, for those of the messages after it, until they were peeked or the operation
 * failed (tt_transport_release_memory()). Then the payload may lie there already; the caller
 * looks where it lies. at NULL: nowhere, but the next message has `room` bytes. */
void tt_edge_land(struct tt_edge *edge, uint64_t match, char *at, size_t room);
void tt_edge_release(struct tt_edge *edge); /* give the peeked slot back; hot */
struct tt_edge_small;                       /* small.h */
const struct tt_edge_small *tt_edge_small(const struct tt_edge *edge);

struct tt_edge_track { /* what the profiler wants to know of an operation's use of an edge */
    struct tt_profiler *profiler; /* borrowed */
    void *parent;                 /* Coll or P2p event */
    uint32_t mask;                /* sampled with the operation */
    int nsteps;                   /* slots that will be moved; 0 unknown */
};
/* The operation that begins (NULL: ends) to use the edge, which then expects its messages. Only
 * with a profiler; memory edges have no events. */
void tt_edge_track(struct tt_edge *edge, const struct tt_edge_track *track);

/* TT_CONN_P2P: number of the next message over this end, counted from 0. The k-th send of a pair
 * meets its k-th receive, so both ends count alike. */
uint32_t tt_edge_next_message(struct tt_edge *edge);

/* ---- which call every rank is in (call_log.c) ---- */

/* Match header of this communicator's next collective operation, whose number counts from 1; all
 * ranks count alike. Called when the operation starts, in issue order. Publishes it with the call
 * for the peers. hot */
uint64_t tt_transport_begin(struct tt_transport *transport, uint32_t fingerprint,
                            const struct tt_call *call);
/* Counts the collective operations that began. Lives as the transport; any thread may read it. */
const _Atomic uint64_t *tt_transport_begun(const struct tt_transport *transport);
/* How long what `rank` sent before its process ended may still be on its way, in nanoseconds: 0 in
 * memory and without a connection; UINT64_MAX when the network will report its end, or just now
 * nobody can say. Never blocks. */
uint64_t tt_transport_in_flight_nsec(struct tt_transport *transport, int rank);
/* ncclInvalidUsage (reported to all ranks, naming both) when `rank`, in reach of this host's
 * memory, is in an operation of the same number with another fingerprint; for long waits. */
ncclResult_t tt_transport_compare(struct tt_transport *transport, uint64_t match, int rank);

#define TT_CALL_LOG_LEN 64 /* the last operations that a rank remembers */
#define TT_CALL_ENTRY_WORDS 5
#define TT_CALL_LOG_WORDS (1 + TT_SLOTS * TT_CALL_ENTRY_WORDS)
/* This rank's last operations, packed for another rank. Any thread. */
void tt_call_log_pack(const struct tt_transport *transport, uint64_t words_out[TT_CALL_LOG_WORDS]);
/* Compare them with what `rank` packed: ncclInvalidUsage (reported to all ranks) when one of the
 * operations that both know, or anything before it, differs. Any thread. */
ncclResult_t tt_call_log_compare(struct tt_transport *transport, int rank,
                                 const uint64_t words[TT_CALL_LOG_WORDS]);
/* Of all ranks in the operations up to `number`, this rank's last: the greatest. Any thread. */
enum tt_calls_match { TT_CALLS_AGREE, TT_CALLS_UNSEEN, TT_CALLS_LATE, TT_CALLS_DIFFER };
enum tt_calls_match tt_transport_agree(struct tt_transport *transport, uint64_t number);
/* The call of the operation with that number; false when it is too long ago. Any thread. */
bool tt_call_log_get(const struct tt_transport *transport, uint64_t number,
                     struct tt_call *call_out);
/* Messages that this rank has begun to send to `rank`, or to receive from it. Any thread. */
uint32_t tt_transport_messages(const struct tt_transport *transport, int rank, bool sending);
/* Fail with ncclInvalidUsage and that sentence at all ranks, unless the communicator has failed.
 * Any thread. */
ncclResult_t tt_transport_accuse(struct tt_transport *transport, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

/* Move network steps and connections of this communicator on; called by the proxy and by executors
 * that wait. Never blocks; one thread works, others return at once. *moved_out true when something
 * happened. Errors: the first failure of a network edge (reported once). */
ncclResult_t tt_transport_progress(struct tt_transport *transport, bool *moved_out);

/* ---- shared barrier: one cell per rank, readable by all; only when tt_transport_all_direct() ----
 */

struct tt_arrival { /* what a rank publishes when it enters an operation; addresses valid HERE */
    const char *in;
    char *out;
    uint64_t word; /* the rank's own, unchanged */
};

/* Publish own buffers and word for the operation. in/out must be reachable by the peers (the caller
 * stages foreign memory). The barrier counts entered operations itself. ncclInProgress: a rank is
 * still TT_SLOTS operations behind, call again. */
ncclResult_t tt_barrier_enter(struct tt_transport *transport, uint64_t match,
                              const struct tt_arrival *own);
/* ncclSuccess when `rank` entered the same operation (own rank: always), ncclInProgress before,
 * ncclInvalidUsage when it entered another one. */
ncclResult_t tt_barrier_arrived(struct tt_transport *transport, uint64_t match, int rank,
                                struct tt_arrival *arrival_out);
/* Say: I shall not touch the others' buffers of this operation any more. */
void tt_barrier_leave(struct tt_transport *transport);
/* True when `rank` has left the operation that this rank is in or has just left. */
bool tt_barrier_left(struct tt_transport *transport, int rank);

/* Can all local peers read and write this memory where it lies? (range memory: yes; foreign memory:
 * only when every peer is in this process.) */
bool tt_transport_reachable(const struct tt_transport *transport, const void *ptr, size_t bytes);
