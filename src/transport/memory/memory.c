/* Edges through mapped memory: slots in the receiver's inbox, written by the sender. What goes to
 * all ranks (a cast) is written once, in the sender's inbox, and each receiver reads it there.
 * A slot header carries its number, the match header of the operation and up to 96 bytes, so a
 * message of 32 bytes is one cache line and one of 96 two; larger bytes lie in the payload or
 * (direct) stay where they are in the sender's memory. Publication is a release store of the slot
 * number, return a release store of `head`; the sender looks at `head` only when its last look is
 * used up, the receiver stores it for every fourth small message only, since each store takes the
 * line away from the other. Small messages of following operations may share a slot (a bundle),
 * which the receiver takes as one, or message by message when it did not group its calls so. */
#include "base/arch/arch.h"
#include "base/error.h"
#include "base/log.h"
#include "transport/edge.h"
#include "transport/memory/inbox.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int)TT_CONN_END_ == (int)TT_CONN_COUNT_, "each index has an edge");

struct memory_readers { /* of what is sent to all */
    int count;
    struct {
        const _Atomic uint64_t *head; /* borrowed: the reader's inbox */
        int rank;
    } reader[];
};

struct memory_edge {
    struct tt_edge edge;
    struct tt_slot_line *line;      /* borrowed: the receiver's inbox; of a cast the sender's */
    uint64_t line_mask;             /* their number less 1 */
    _Atomic uint64_t *head;         /* borrowed: the receiver's inbox; not used with `readers` */
    struct memory_readers *readers; /* owned; NULL: this is no sender of a cast */
    char *payload;
    size_t slot_bytes;
    uint64_t next;         /* number of the next message */
    uint64_t credit;       /* sender: last `head` seen */
    uint64_t npayloads;    /* messages with a payload so far: they take the payloads in turn */
    uint64_t payload_mask; /* the payloads' number less 1 */
    uint32_t within;       /* receiver: messages of the next slot that were given back */
    uint64_t last_ref;     /* sender: messages up to the last reference; 0 none */
    char *base;            /* receiver: the sender's range as mapped here */
    size_t base_bytes;
    bool same_process;
    bool refs;                       /* references allowed */
    uint64_t user[TT_CAST_PAYLOADS]; /* sender: number + 1 of a payload's last message */
};

static struct memory_edge *memory_of(struct tt_edge *edge)
{
    return tt_container_of(edge, struct memory_edge, edge);
}

static char *next_payload(const struct memory_edge *edge)
{
    return edge->payload + (edge->npayloads & edge->payload_mask) * edge->slot_bytes;
}

/* Messages that the receiver, or each of them, has given back. */
static uint64_t look_at_heads(struct memory_edge *edge)
{
    /* pairs with the release stores in memory_release(): the reads of these slots are over */
    if (!edge->readers) return atomic_load_explicit(edge->head, memory_order_acquire);
    uint64_t least = UINT64_MAX;
    for (int k = 0; k < edge->readers->count; k++) {
        uint64_t head = atomic_load_explicit(edge->readers->reader[k].head, memory_order_acquire);
        if (head >= least) continue;
        least = head;
        edge->edge.key.peer = edge->readers->reader[k].rank;
    }
    return least;
}

static bool has_room(const struct memory_edge *edge, size_t bytes)
{
    assert(edge->edge.key.conn != TT_CONN_AHEAD || bytes <= TT_SLOT_INLINE_BYTES);
    if (edge->next - edge->credit > edge->line_mask) return false;
    return bytes <= TT_SLOT_INLINE_BYTES ||
           edge->user[edge->npayloads & edge->payload_mask] <= edge->credit;
}

static char *memory_acquire(struct tt_edge *base, size_t bytes)
{
    struct memory_edge *edge = memory_of(base);
    if (!has_room(edge, bytes)) {
        edge->credit = look_at_heads(edge);
        if (!has_room(edge, bytes)) return NULL;
    }
    return next_payload(edge);
}

static struct tt_slot_line *next_line(struct memory_edge *edge)
{
    return &edge->line[edge->next & edge->line_mask];
}

static void publish(struct memory_edge *edge, struct tt_slot_line *line)
{
    edge->next++;
    /* as in memory_send_small() */
    atomic_store_explicit(&line->seq, edge->next, memory_order_release);
}

#define LINES_AHEAD 4 /* how early a sender that runs ahead takes a line */
#define CREDIT_STEP 4 /* small messages given back at once; numbers of lines are multiples */

static bool memory_send_small(struct tt_edge *base, uint64_t match, const void *bytes,
                              size_t len_bytes);

/* The last look at `head` is used up. */
static __attribute__((noinline)) bool send_small_late(struct tt_edge *base, uint64_t match,
                                                      const void *bytes, size_t len_bytes)
{
    return memory_acquire(base, len_bytes) && memory_send_small(base, match, bytes, len_bytes);
}

/* At most 96 bytes are copied by overlapping words: no call, no loop. */
static bool memory_send_small(struct tt_edge *base, uint64_t match, const void *bytes,
                              size_t len_bytes)
{
    struct memory_edge *edge = tt_container_of(base, struct memory_edge, edge);
    struct tt_slot_line *line = &edge->line[edge->next & edge->line_mask];
    char *restrict dst = line->inline_bytes;
    const char *restrict src = bytes;
    assert(len_bytes <= TT_SLOT_INLINE_BYTES);
    if (edge->next - edge->credit > edge->line_mask)
        return send_small_late(base, match, bytes, len_bytes);
    line->match = match;
    line->bytes = (uint32_t)len_bytes;
    line->kind = TT_SLOT_INLINE;
    if (len_bytes > 32) {
        memcpy(dst, src, 32);
        if (len_bytes > 64) memcpy(dst + 32, src + 32, 32);
        memcpy(dst + len_bytes - 32, src + len_bytes - 32, 32);
    } else if (len_bytes > 16) {
        memcpy(dst, src, 16);
        memcpy(dst + len_bytes - 16, src + len_bytes - 16, 16);
    } else if (len_bytes >= 8) {
        memcpy(dst, src, 8);
        memcpy(dst + len_bytes - 8, src + len_bytes - 8, 8);
    } else if (len_bytes >= 4) {
        memcpy(dst, src, 4);
        memcpy(dst + len_bytes - 4, src + len_bytes - 4, 4);
    } else {
        for (size_t i = 0; i < len_bytes; i++)
            dst[i] = src[i];
    }
    edge->next++;
    /* pairs with the acquire loads in memory_peek() and memory_take() */
    atomic_store_explicit(&line->seq, edge->next, memory_order_release);
    return true;
}

/* The receiver had the lines last: they are on their way here before they are needed. Where both
 * send in turn that only takes lines from a receiver that looks at them. */
static bool memory_send_ahead(struct tt_edge *base, uint64_t match, const void *bytes,
                              size_t len_bytes)
{
    struct memory_edge *edge = tt_container_of(base, struct memory_edge, edge);
    const struct tt_slot_line *later = &edge->line[(edge->next + LINES_AHEAD) & edge->line_mask];
    tt_cpu_fetch_to_write(later);
    if (len_bytes > 32) tt_cpu_fetch_to_write((const char *)later + TT_LINE_BYTES);
    return memory_send_small(base, match, bytes, len_bytes);
}

static void memory_post_small(struct tt_edge *base, uint64_t match, const void *bytes,
                              size_t len_bytes)
{
    bool sent = memory_send_small(base, match, bytes, len_bytes);
    assert(sent); /* a slot was acquired */
    (void)sent;
}

static char *memory_open(struct tt_edge *base)
{
    struct memory_edge *edge = tt_container_of(base, struct memory_edge, edge);
    bool room = edge->next - edge->credit <= edge->line_mask || memory_acquire(base, 0);
    return room ? edge->line[edge->next & edge->line_mask].inline_bytes : NULL;
}

static void memory_close(struct tt_edge *base, const struct tt_bundle *bundle)
{
    struct memory_edge *edge = tt_container_of(base, struct memory_edge, edge);
    struct tt_slot_line *line = next_line(edge);
    assert(bundle->bytes * bundle->count <= TT_SLOT_INLINE_BYTES);
    line->match = bundle->match;
    line->bytes = bundle->bytes * bundle->count;
    line->kind = TT_SLOT_BUNDLE;
    line->ref = bundle->bytes;
    publish(edge, line);
}

static void memory_post(struct tt_edge *base, uint64_t match, size_t bytes)
{
    struct memory_edge *edge = memory_of(base);
    if (bytes <= TT_SLOT_INLINE_BYTES) {
        memory_post_small(base, match, next_payload(edge), bytes);
        return;
    }
    struct tt_slot_line *line = next_line(edge);
    assert(bytes <= edge->slot_bytes);
    line->match = match;
    line->bytes = (uint32_t)bytes;
    line->kind = TT_SLOT_PAYLOAD;
    edge->user[edge->npayloads++ & edge->payload_mask] = edge->next + 1;
    publish(edge, line);
}

static bool memory_post_ref(struct tt_edge *base, uint64_t match, const void *ptr, size_t bytes)
{
    struct memory_edge *edge = memory_of(base);
    const struct tt_peer_reach *self = &base->config->peers[base->config->member->rank];
    if (!edge->refs || bytes > UINT32_MAX) return false;
    const uint64_t ref =
        edge->same_process ? (uint64_t)(uintptr_t)ptr : tt_range_offset(self, ptr, bytes);
    if (!edge->same_process && ref == TT_NO_OFFSET) return false;
    struct tt_slot_line *line = next_line(edge);
    line->match = match;
    line->bytes = (uint32_t)bytes;
    line->kind = edge->same_process ? TT_SLOT_POINTER : TT_SLOT_OFFSET;
    line->ref = ref;
    publish(edge, line);
    edge->last_ref = edge->next;
    return true;
}

static bool memory_drained(struct tt_edge *base)
{
    struct memory_edge *edge = memory_of(base);
    if (edge->credit >= edge->last_ref) return true;
    edge->credit = look_at_heads(edge);
    return edge->credit >= edge->last_ref;
}

/* A reference that lies where the sender may point to, or NULL. */
static const char *referred(const struct memory_edge *edge, const struct tt_slot_line *line)
{
    if (line->kind == TT_SLOT_POINTER && edge->same_process) {
        return (const char *)(uintptr_t)line->ref;
    }
    bool fits = line->ref <= edge->base_bytes && line->bytes <= edge->base_bytes - line->ref;
    if (line->kind != TT_SLOT_OFFSET || !edge->base || !fits) return NULL;
    return edge->base + line->ref;
}

static ncclResult_t bad_slot(struct memory_edge *edge, const struct tt_slot_line *line)
{
    if (edge->edge.failed) return ncclRemoteError;
    edge->edge.failed = true;
    return tt_fail(ncclRemoteError,
                   "rank %d: slot %llu from rank %d is damaged (kind %u, %u bytes, reference %llu)",
                   edge->edge.config->member->rank, (unsigned long long)edge->next,
                   edge->edge.key.peer, line->kind, line->bytes, (unsigned long long)line->ref);
}

/* The bytes of a slot that are not in its header; NULL when it is damaged. */
static __attribute__((noinline)) const char *payload_elsewhere(const struct memory_edge *edge,
                                                               const struct tt_slot_line *line)
{
    if (line->kind == TT_SLOT_PAYLOAD)
        return line->bytes <= edge->slot_bytes ? next_payload(edge) : NULL;
    return line->kind == TT_SLOT_INLINE ? NULL : referred(edge, line);
}

/* The next message of a bundle. */
static __attribute__((noinline)) ncclResult_t
peek_bundle(struct memory_edge *edge, uint64_t match, const char **payload_out, size_t *bytes_out)
{
    struct tt_slot_line *line = next_line(edge);
    const uint64_t found = line->match + edge->within * TT_MATCH_STEP;
    const uint64_t end = (edge->within + 1) * line->ref;
    if (line->bytes > TT_SLOT_INLINE_BYTES || line->ref == 0 || end > line->bytes)
        return bad_slot(edge, line);
    if (found != match) return tt_edge_mismatch(&edge->edge, match, found, NULL);
    *bytes_out = line->ref;
    *payload_out = line->inline_bytes + edge->within * line->ref;
    return ncclSuccess;
}

static ncclResult_t memory_peek(struct tt_edge *base, uint64_t match, const char **payload_out,
                                size_t *bytes_out)
{
    struct memory_edge *edge = memory_of(base);
    struct tt_slot_line *line = next_line(edge);
    /* pairs with the release store in publish() */
    if (atomic_load_explicit(&line->seq, memory_order_acquire) != edge->next + 1) {
        __builtin_prefetch((const char *)line + TT_LINE_BYTES); /* both lines come at once then */
        return ncclInProgress;
    }
    if (line->kind == TT_SLOT_BUNDLE) return peek_bundle(edge, match, payload_out, bytes_out);
    if (line->match != match) {
        ncclResult_t rc = tt_edge_mismatch(base, match, line->match, NULL);
        if (rc) return rc;
    }
    bool near = line->kind == TT_SLOT_INLINE && line->bytes <= TT_SLOT_INLINE_BYTES;
    const char *payload = near ? line->inline_bytes : payload_elsewhere(edge, line);
    if (!payload) return bad_slot(edge, line);
    *bytes_out = line->bytes;
    *payload_out = payload;
    return ncclSuccess;
}

static const char *memory_take(struct tt_edge *base, uint64_t match, size_t bytes)
{
    const struct memory_edge *edge = tt_container_of(base, struct memory_edge, edge);
    const uint64_t next = edge->next;
    const struct tt_slot_line *line = &edge->line[next & edge->line_mask];
    /* pairs with the release store in memory_send_small() and publish() */
    if (atomic_load_explicit(&line->seq, memory_order_acquire) != next + 1 ||
        line->match != match || line->bytes != bytes)
        return NULL;
    bool near = line->kind == TT_SLOT_INLINE && bytes <= TT_SLOT_INLINE_BYTES;
    return near ? line->inline_bytes : payload_elsewhere(edge, line);
}

static const char *memory_take_all(struct tt_edge *base, const struct tt_bundle *bundle)
{
    const struct memory_edge *edge = tt_container_of(base, struct memory_edge, edge);
    const uint64_t next = edge->next;
    const struct tt_slot_line *line = &edge->line[next & edge->line_mask];
    /* pairs with the release store in publish() */
    bool there = atomic_load_explicit(&line->seq, memory_order_acquire) == next + 1 &&
                 line->match == bundle->match && line->kind == TT_SLOT_BUNDLE &&
                 line->ref == bundle->bytes && line->bytes == bundle->bytes * bundle->count;
    return there && edge->within == 0 ? line->inline_bytes : NULL;
}

/* A message that was in a slot with others, or that has bytes elsewhere. False: the slot has more.
 */
static __attribute__((noinline)) bool release_other(struct memory_edge *edge, uint32_t kind)
{
    const struct tt_slot_line *line = next_line(edge);
    if (kind == TT_SLOT_PAYLOAD) edge->npayloads++;
    if (kind != TT_SLOT_BUNDLE) return true;
    edge->within++;
    if ((edge->within + 1) * line->ref <= line->bytes) return false;
    edge->within = 0;
    return true;
}

static void memory_release(struct tt_edge *base)
{
    struct memory_edge *edge = tt_container_of(base, struct memory_edge, edge);
    const uint32_t kind = edge->line[edge->next & edge->line_mask].kind;
    if (kind != TT_SLOT_INLINE && !release_other(edge, kind)) return;
    const uint64_t next = edge->next + 1;
    edge->next = next;
    /* a sender that runs ahead has filled it */
    __builtin_prefetch(&edge->line[next & edge->line_mask]);
    if ((kind == TT_SLOT_INLINE || kind == TT_SLOT_BUNDLE) && next % CREDIT_STEP) return;
    /* pairs with the acquire loads in look_at_heads() */
    atomic_store_explicit(edge->head, next, memory_order_release);
}

static void memory_release_all(struct tt_edge *base, const struct tt_bundle *bundle)
{
    memory_of(base)->within = bundle->count - 1;
    memory_release(base);
}

static void direct_name(const struct tt_edge *edge, char *text, size_t text_bytes)
{
    bool process = edge->config->peers[edge->key.peer].reach == TT_REACH_PROCESS;
    snprintf(text, text_bytes, "%s", process ? "P2P/direct pointer" : "P2P/CUMEM");
}

static void shm_name(const struct tt_edge *edge, char *text, size_t text_bytes)
{
    (void)edge;
    snprintf(text, text_bytes, "SHM/direct");
}

static void memory_destroy(struct tt_edge *base)
{
    free(memory_of(base)->readers);
    free(memory_of(base));
}

static const struct tt_edge_ops direct_ops = {
    .acquire = memory_acquire,
    .post = memory_post,
    .post_small = memory_post_small,
    .post_ref = memory_post_ref,
    .drained = memory_drained,
    .peek = memory_peek,
    .small = {memory_send_small, memory_send_ahead, memory_take, memory_release, memory_open,
              memory_close, memory_take_all, memory_release_all},
    .name = direct_name,
    .destroy = memory_destroy,
};

static const struct tt_edge_ops shm_ops = {
    .acquire = memory_acquire,
    .post = memory_post,
    .post_small = memory_post_small,
    .post_ref = memory_post_ref, /* answers false: refs is off */
    .drained = memory_drained,
    .peek = memory_peek,
    .small = {memory_send_small, memory_send_ahead, memory_take, memory_release, memory_open,
              memory_close, memory_take_all, memory_release_all},
    .name = shm_name,
    .destroy = memory_destroy,
};

static ncclResult_t connect_memory(const struct tt_transport_config *config, void *inbox,
                                   const struct tt_edge_key *key, struct tt_edge **edge_out)
{
    const struct tt_peer_reach *peer = &config->peers[key->peer];
    struct memory_edge *edge = tt_calloc(1, sizeof(*edge));
    if (!edge) return tt_fail(ncclSystemError, "edge to rank %d: out of memory", key->peer);
    struct tt_inbox_layout layout =
        tt_inbox_layout(config->member->nranks, config->nchannels, config->slice_bytes);
    bool own = !key->sending || key->peer == config->member->rank;
    void *block = own ? inbox : peer->range_base + peer->inbox_offset;
    const bool ahead = key->conn == TT_CONN_AHEAD;
    const int sender = key->sending ? config->member->rank : key->peer;
    size_t ring = tt_inbox_ring(&layout, sender, key->channel, ahead ? TT_CONN_COLL : key->conn);
    struct tt_ring_lines *lines = tt_inbox_lines(block, ring);
    edge->line = ahead ? tt_inbox_stream(&layout, block, sender, key->channel) : lines->line;
    edge->line_mask = (ahead ? TT_STREAM_LINES : TT_LINES) - 1;
    edge->head = ahead ? &lines->ahead_head : &lines->head;
    edge->payload_mask = TT_SLOTS - 1;
    edge->payload = tt_inbox_payload(&layout, block, ring);
    edge->slot_bytes = layout.slot_bytes;
    edge->edge.message_bytes = UINT32_MAX;
    edge->base = peer->range_base;
    edge->base_bytes = peer->range_bytes;
    edge->same_process = peer->reach == TT_REACH_PROCESS;
    *edge_out = &edge->edge;
    return ncclSuccess;
}

static void log_edge(const struct tt_transport_config *config, const struct tt_edge *edge)
{
    const struct tt_edge_key *key = &edge->key;
    int rank = config->member->rank;
    char name[64];
    if (!key->sending) return; /* one line per edge, as NCCL: the sender's */
    edge->ops->name(edge, name, sizeof(name));
    if (edge->ops == &shm_ops) {
        tt_info(TT_LOG_INIT | TT_LOG_SHM, "Channel %02d : %d[%d] -> %d[%d] via %s", key->channel,
                rank, config->peers[rank].device, key->peer, config->peers[key->peer].device, name);
        return;
    }
    tt_info(TT_LOG_INIT | TT_LOG_P2P, "Channel %02d/%d : %d[%d] -> %d[%d] via %s", key->channel,
            key->conn, rank, config->peers[rank].device, key->peer, config->peers[key->peer].device,
            name);
}

static bool direct_can_connect(const struct tt_transport_config *config, int peer)
{
    return config->allow_direct && config->peers[peer].reach != TT_REACH_NET;
}

static bool shm_can_connect(const struct tt_transport_config *config, int peer)
{
    return config->allow_shm && config->peers[peer].reach != TT_REACH_NET;
}

static ncclResult_t direct_connect(const struct tt_transport_config *config, void *inbox,
                                   const struct tt_edge_key *key, struct tt_edge **edge_out)
{
    ncclResult_t rc = connect_memory(config, inbox, key, edge_out);
    if (rc) return rc;
    **edge_out = (struct tt_edge){.ops = &direct_ops, .config = config, .key = *key};
    memory_of(*edge_out)->refs = true;
    log_edge(config, *edge_out);
    return ncclSuccess;
}

static ncclResult_t shm_connect(const struct tt_transport_config *config, void *inbox,
                                const struct tt_edge_key *key, struct tt_edge **edge_out)
{
    ncclResult_t rc = connect_memory(config, inbox, key, edge_out);
    if (rc) return rc;
    **edge_out = (struct tt_edge){.ops = &shm_ops, .config = config, .key = *key};
    log_edge(config, *edge_out);
    return ncclSuccess;
}

/* ---- to all ---- */

static void *inbox_of(const struct tt_transport_config *config, void *own, int rank)
{
    const struct tt_peer_reach *peer = &config->peers[rank];
    return rank == config->member->rank ? own : peer->range_base + peer->inbox_offset;
}

static struct memory_readers *find_readers(const struct tt_transport_config *config, void *inbox,
                                           size_t ring, int cast)
{
    const int n = config->member->nranks;
    struct memory_readers *readers =
        tt_calloc(1, sizeof(*readers) + (size_t)n * sizeof(readers->reader[0]));
    for (int rank = 0; readers && rank < n; rank++) {
        if (rank == config->member->rank) continue;
        struct tt_ring_lines *lines = tt_inbox_lines(inbox_of(config, inbox, rank), ring);
        readers->reader[readers->count].head = &lines->cast_head[cast];
        readers->reader[readers->count++].rank = rank;
    }
    return readers;
}

/* Where the sender has its slots. Messages are short, so the room of an edge's payloads has more of
 * them. */
static void place_cast(struct memory_edge *edge, const struct tt_inbox_layout *layout, void *inbox,
                       const struct tt_edge_key *key)
{
    const bool stream = key->conn == TT_CONN_STREAM;
    const size_t ring = tt_inbox_ring(layout, key->peer, key->channel, key->conn - TT_CONN_CAST);
    edge->line = stream ? tt_inbox_stream(layout, inbox, key->peer, key->channel)
                        : tt_inbox_lines(inbox, ring)->line;
    edge->line_mask = (stream ? TT_STREAM_LINES : TT_LINES) - 1;
    edge->payload = tt_inbox_payload(layout, inbox, ring);
    edge->slot_bytes = tt_min_size(layout->slot_bytes, TT_CAST_BYTES);
    while (edge->payload_mask + 1 < TT_CAST_PAYLOADS &&
           2 * (edge->payload_mask + 1) * edge->slot_bytes <= layout->ring_bytes)
        edge->payload_mask = 2 * edge->payload_mask + 1;
}

ncclResult_t tt_memory_cast(const struct tt_transport_config *config, void *inbox,
                            const struct tt_edge_key *key, struct tt_edge **edge_out)
{
    const struct tt_edge_key ring_key = {
        .peer = key->peer, .channel = key->channel, .conn = TT_CONN_COLL};
    const struct tt_inbox_layout layout =
        tt_inbox_layout(config->member->nranks, config->nchannels, config->slice_bytes);
    const size_t ring = tt_inbox_ring(&layout, key->peer, key->channel, TT_CONN_COLL);
    const int cast = key->conn - TT_CONN_CAST;
    struct tt_edge *base = NULL;
    ncclResult_t rc = connect_memory(config, inbox, &ring_key, &base);
    if (rc) return rc;
    struct memory_edge *edge = memory_of(base);
    edge->edge.ops = config->allow_direct ? &direct_ops : &shm_ops;
    edge->edge.config = config;
    edge->edge.key = *key;
    edge->head = &tt_inbox_lines(inbox, ring)->cast_head[cast];
    place_cast(edge, &layout, inbox_of(config, inbox, key->peer), key);
    if (key->sending && !(edge->readers = find_readers(config, inbox, ring, cast))) {
        memory_destroy(base);
        return tt_fail(ncclSystemError, "edge to all ranks: out of memory");
    }
    for (int k = 0; key->sending && k < edge->readers->count; k++) {
        edge->edge.key.peer = edge->readers->reader[k].rank;
        log_edge(config, base);
    }
    *edge_out = base;
    return ncclSuccess;
}

const struct tt_transport_ops tt_transport_direct = {
    .name = "direct",
    .can_connect = direct_can_connect,
    .connect = direct_connect,
};

const struct tt_transport_ops tt_transport_shm = {
    .name = "shm",
    .can_connect = shm_can_connect,
    .connect = shm_connect,
};
