/* Network edges, executor's side: slots are filled and emptied in memory that the network has
 * registered; nothing here waits. An executor that finds no slot ready moves the network itself. */
#include "transport/net/net.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "transport/net/pool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* Where slices are shorter: a MAC is made and compared of what is in the second cache, and of a
 * message while the next one comes. */
#define PROVED_BYTES ((size_t)256 << 10)
#define COLL_BYTES ((size_t)32 << 20)
enum { TREE_PEERS = 3, PLUGIN_SLICE_LEAST = 65536 };

static struct net_edge *own(struct tt_edge *edge)
{
    return tt_container_of(edge, struct net_edge, edge);
}

/* ---- sending ---- */

static char *net_acquire(struct tt_edge *base, size_t bytes)
{
    struct net_edge *edge = own(base);
    bool driven = false;
    (void)bytes;
    uint64_t filled = atomic_load_explicit(&edge->filled, memory_order_relaxed);
    /* pairs with the release store in finish_step() */
    while (filled - atomic_load_explicit(&edge->emptied, memory_order_acquire) > edge->slot_mask) {
        if (driven) return NULL;
        tt_net_drive(edge->transport->net_edges, edge, false);
        driven = true;
    }
    return (char *)(net_slot_at(edge, filled) + 1);
}

static void post(struct net_edge *edge, uint64_t match, size_t bytes, const void *memory)
{
    uint64_t filled = atomic_load_explicit(&edge->filled, memory_order_relaxed);
    struct net_slot *slot = net_slot_at(edge, filled);
    struct net_op *op = atomic_load_explicit(&edge->op, memory_order_acquire);
    struct tt_call_entry begun;
    *slot = (struct net_slot){.match = match, .bytes = (uint32_t)bytes};
    edge->memory[filled % TT_SLOTS].at = (char *)(uintptr_t)memory;
    if (edge->edge.key.conn == TT_CONN_COLL &&
        tt_call_log_find(edge->transport, edge->edge.config->member->rank, match >> 32, &begun))
        slot->call = begun.call; /* for a rank that made another one */
    if (op) tt_net_watch_start(op, edge, filled, ncclProfilerProxyStepSendGPUWait);
    /* pairs with the acquire load in issue_step() */
    atomic_store_explicit(&edge->filled, filled + 1, memory_order_release);
    bool held = edge->edge.held;
    edge->edge.held = false;
    if (!held) tt_net_drive(edge->transport->net_edges, edge, true);
}

static void net_push(struct tt_edge *base)
{
    tt_net_drive(own(base)->transport->net_edges, own(base), true);
}

static void net_post(struct tt_edge *base, uint64_t match, size_t bytes)
{
    post(own(base), match, bytes, NULL);
}

static void net_post_small(struct tt_edge *base, uint64_t match, const void *bytes,
                           size_t len_bytes)
{
    struct net_edge *edge = own(base);
    uint64_t filled = atomic_load_explicit(&edge->filled, memory_order_relaxed);
    if (len_bytes) memcpy(net_slot_at(edge, filled) + 1, bytes, len_bytes);
    post(edge, match, len_bytes, NULL);
}

static bool net_send_small(struct tt_edge *base, uint64_t match, const void *bytes,
                           size_t len_bytes)
{
    char *payload = net_acquire(base, len_bytes);
    if (!payload) return false;
    if (len_bytes) memcpy(payload, bytes, len_bytes);
    post(own(base), match, len_bytes, NULL);
    return true;
}

/* There is a direct line, or from now on one is requested, if the user registered the memory. */
static bool goes_direct(struct net_edge *edge, const void *ptr, size_t bytes)
{
    int none = NET_DIRECT_NONE;
    if (!tt_net_registered(edge->transport->net_edges, ptr, bytes)) return false;
    /* pairs with the release store in ready_step() */
    if (atomic_load_explicit(&edge->direct_state, memory_order_acquire) == NET_DIRECT_READY)
        return true;
    atomic_compare_exchange_strong_explicit(&edge->direct_state, &none, NET_DIRECT_ASKED,
                                            memory_order_relaxed, memory_order_relaxed);
    return false;
}

/* Larger than a slot it may be where the receiver names memory for all of a message: where the
 * network gathers. A profiler expects a step per slice. */
static bool net_post_ref(struct tt_edge *base, uint64_t match, const void *ptr, size_t bytes)
{
    struct net_edge *edge = own(base);
    size_t most = tt_max_size(base->message_bytes, base->config->slice_bytes);
    if (atomic_load_explicit(&edge->op, memory_order_relaxed)) most = base->config->slice_bytes;
    if (bytes > most || (!edge->gathers && !goes_direct(edge, ptr, bytes))) return false;
    post(edge, match, bytes, ptr);
    return true;
}

static bool net_drained(struct tt_edge *base)
{
    struct net_edge *edge = own(base);
    uint64_t filled = atomic_load_explicit(&edge->filled, memory_order_relaxed);
    if (atomic_load_explicit(&edge->emptied, memory_order_acquire) == filled) return true;
    tt_net_drive(edge->transport->net_edges, edge, false);
    return atomic_load_explicit(&edge->emptied, memory_order_acquire) == filled;
}

/* ---- receiving ---- */

static ncclResult_t too_long(struct tt_edge *edge, uint64_t number, uint32_t bytes)
{
    if (edge->failed) return ncclRemoteError;
    edge->failed = true;
    return tt_fail(ncclRemoteError,
                   "rank %d: message %llu from rank %d is damaged: %u bytes, a slot has %zu",
                   edge->config->member->rank, (unsigned long long)number, edge->key.peer, bytes,
                   edge->config->slice_bytes);
}

/* Receives are posted for messages that a work waits for, or that the program says will come: so
 * none is outstanding when the communicator ends. */
static ncclResult_t net_peek(struct tt_edge *base, uint64_t match, const char **payload_out,
                             size_t *bytes_out)
{
    struct net_edge *edge = own(base);
    uint64_t emptied = atomic_load_explicit(&edge->emptied, memory_order_relaxed);
    /* these loads pair with the release store in finish_step() */
    if (atomic_load_explicit(&edge->filled, memory_order_acquire) == emptied) {
        /* pairs with the acquire loads in net_step.c */
        if (atomic_load_explicit(&edge->wanted, memory_order_relaxed) <= emptied) {
            atomic_store_explicit(&edge->wanted, emptied + 1, memory_order_release);
            net_look_now(edge->transport->net_edges);
        }
        tt_net_drive(edge->transport->net_edges, edge, false);
        if (atomic_load_explicit(&edge->filled, memory_order_acquire) == emptied) {
            int error = atomic_load_explicit(&edge->error, memory_order_acquire);
            return error ? (ncclResult_t)error : ncclInProgress;
        }
    }
    struct net_slot *slot = net_slot_at(edge, emptied);
    bool landed = edge->steps[emptied % TT_SLOTS].landed;
    if (slot->match != match) {
        ncclResult_t rc = tt_edge_mismatch(base, match, slot->match, &slot->call);
        if (rc) return rc;
    }
    if (!landed && slot->bytes > base->config->slice_bytes)
        return too_long(base, emptied, slot->bytes);
    *payload_out = landed ? edge->memory[emptied % TT_SLOTS].at : (char *)(slot + 1);
    *bytes_out = slot->bytes;
    return ncclSuccess;
}

static const char *net_take(struct tt_edge *base, uint64_t match, size_t bytes)
{
    const char *payload = NULL;
    size_t got = 0;
    ncclResult_t rc = net_peek(base, match, &payload, &got);
    return rc == ncclSuccess && got == bytes ? payload : NULL;
}

/* What was expected before and did not come yet still will. */
static void net_expect(struct tt_edge *base, uint64_t nmessages)
{
    struct net_edge *edge = own(base);
    uint64_t emptied = atomic_load_explicit(&edge->emptied, memory_order_relaxed);
    uint64_t expected = atomic_load_explicit(&edge->expected, memory_order_relaxed);
    if (edge->gathers) return; /* it has one slot */
    if (expected < emptied) expected = emptied;
    /* pairs with the acquire load in issue_limit() */
    atomic_store_explicit(&edge->expected, expected + nmessages, memory_order_release);
    net_look_now(edge->transport->net_edges);
    tt_net_drive(edge->transport->net_edges, edge, false);
}

/* A message that was asked for already keeps its destination. A network that gathers has one slot;
 * others hear of the messages that follow in full slots as well. */
/* NOLINTNEXTLINE(readability-non-const-parameter): it is written through later */
static void net_land(struct tt_edge *base, uint64_t match, char *at, size_t room)
{
    struct net_edge *edge = own(base);
    uint64_t emptied = atomic_load_explicit(&edge->emptied, memory_order_relaxed);
    uint64_t wanted = atomic_load_explicit(&edge->wanted, memory_order_relaxed);
    size_t slice_bytes = base->config->slice_bytes;
    if (edge->gathers) {
        /* of a transfer in several messages each is as long as a sender makes it */
        size_t most = tt_max_size(base->message_bytes / slice_bytes * slice_bytes, slice_bytes);
        if (wanted > emptied) return;
        if (atomic_load_explicit(&edge->op, memory_order_relaxed)) most = slice_bytes;
        edge->memory[emptied % TT_SLOTS] =
            (struct tt_net_landing){match, at, at ? room : 0, tt_min_size(room, most)};
        return;
    }
    if (!at) return;
    uint64_t end = emptied + (room + slice_bytes - 1) / slice_bytes;
    if (atomic_load_explicit(&edge->transfer_end, memory_order_relaxed) <= emptied) {
        /* pair with the loads in group_size() */
        atomic_store_explicit(&edge->transfer_first, emptied, memory_order_relaxed);
        atomic_store_explicit(&edge->transfer_end, end, memory_order_release);
    }
    if (end > emptied + edge->slot_mask + 1) end = emptied + edge->slot_mask + 1;
    for (uint64_t k = wanted > emptied ? wanted : emptied; k < end; k++) {
        size_t skip = (k - emptied) * slice_bytes;
        edge->memory[k % TT_SLOTS] =
            (struct tt_net_landing){match, at + skip, tt_min_size(slice_bytes, room - skip), 0};
    }
    /* pairs with the acquire loads in net_step.c */
    if (end > wanted) {
        atomic_store_explicit(&edge->wanted, end, memory_order_release);
        net_look_now(edge->transport->net_edges);
    }
}

static void net_release(struct tt_edge *base)
{
    struct net_edge *edge = own(base);
    uint64_t emptied = atomic_load_explicit(&edge->emptied, memory_order_relaxed);
    struct net_step *step = &edge->steps[emptied % TT_SLOTS];
    if (step->op) tt_net_watch_stop(step);
    edge->memory[emptied % TT_SLOTS] = (struct tt_net_landing){0};
    /* pairs with the acquire load in issue_step() */
    atomic_store_explicit(&edge->emptied, emptied + 1, memory_order_release);
}

/* ---- both ---- */

/* The first operation that began ends first. The lock: the mover of a receiving edge takes uses of
 * operations. */
static void net_track(struct tt_edge *base, const struct tt_edge_track *track)
{
    struct net_edge *edge = own(base);
    struct net_op *op = track ? tt_net_op_create(edge, track) : NULL;
    pthread_mutex_lock(&edge->transport->net_edges->lock);
    struct net_op *ended = NULL, *last = atomic_load_explicit(&edge->op, memory_order_relaxed);
    while (op && last && last->next)
        last = last->next;
    if (op && last) {
        last->next = op;
    } else if (op) {
        atomic_store_explicit(&edge->op, op, memory_order_release);
    } else if (!track && last) {
        ended = last;
        atomic_store_explicit(&edge->op, ended->next, memory_order_release);
    }
    pthread_mutex_unlock(&edge->transport->net_edges->lock);
    tt_net_op_release(ended);
    if (track && !base->key.sending) base->ops->expect(base, (uint64_t)track->nsteps);
}

static void net_name(const struct tt_edge *base, char *text, size_t text_bytes)
{
    const struct net_edge *edge = own((struct tt_edge *)(uintptr_t)base);
    snprintf(text, text_bytes, "NET/%s/%d", base->config->net->name, edge->dev);
}

static void edge_free(struct net_edge *edge)
{
    if (!edge) return;
    for (uint64_t i = 0; i < TT_SLOTS; i++)
        if (edge->steps[i].op) tt_net_watch_stop(&edge->steps[i]); /* of an aborted operation */
    struct net_op *op = atomic_load_explicit(&edge->op, memory_order_relaxed);
    while (op) {
        struct net_op *ended = op;
        op = op->next;
        tt_net_op_release(ended);
    }
    if (edge->pooled) tt_net_pool_leave(edge);
    if (edge->fifo) munmap(edge->fifo, edge->fifo_bytes);
    free(edge);
}

static void net_destroy(struct tt_edge *base)
{
    struct net_edge *edge = own(base);
    tt_net_edges_remove(edge->transport->net_edges, edge);
    edge_free(edge);
}

static const struct tt_edge_ops net_ops = {
    .acquire = net_acquire,
    .post = net_post,
    .post_small = net_post_small,
    .post_ref = net_post_ref,
    .drained = net_drained,
    .peek = net_peek,
    .land = net_land,
    .expect = net_expect,
    .push = net_push,
    .small = {.send = net_send_small,
              .send_ahead = net_send_small,
              .take = net_take,
              .release = net_release},
    .track = net_track,
    .name = net_name,
    .destroy = net_destroy,
};

/* ---- with slots of the pool ---- */

static bool has_slots(struct net_edge *edge)
{
    return edge->fifo || tt_net_pool_take(edge);
}

static char *pooled_acquire(struct tt_edge *base, size_t bytes)
{
    struct net_edge *edge = own(base);
    char *payload = has_slots(edge) ? net_acquire(base, bytes) : NULL;
    edge->filling = payload != NULL;
    return payload;
}

static void pooled_post(struct tt_edge *base, uint64_t match, size_t bytes)
{
    net_post(base, match, bytes);
    own(base)->filling = false;
}

static void pooled_post_small(struct tt_edge *base, uint64_t match, const void *bytes,
                              size_t len_bytes)
{
    net_post_small(base, match, bytes, len_bytes);
    own(base)->filling = false;
}

static bool pooled_post_ref(struct tt_edge *base, uint64_t match, const void *ptr, size_t bytes)
{
    bool posted = net_post_ref(base, match, ptr, bytes);
    if (posted) own(base)->filling = false;
    return posted;
}

static bool pooled_send_small(struct tt_edge *base, uint64_t match, const void *bytes,
                              size_t len_bytes)
{
    return has_slots(own(base)) && net_send_small(base, match, bytes, len_bytes);
}

static ncclResult_t pooled_peek(struct tt_edge *base, uint64_t match, const char **payload_out,
                                size_t *bytes_out)
{
    int error = atomic_load_explicit(&own(base)->error, memory_order_acquire);
    if (has_slots(own(base))) return net_peek(base, match, payload_out, bytes_out);
    return error ? (ncclResult_t)error : ncclInProgress;
}

static const char *pooled_take(struct tt_edge *base, uint64_t match, size_t bytes)
{
    return has_slots(own(base)) ? net_take(base, match, bytes) : NULL;
}

/* What is not expected now is asked for when it is wanted. */
static void pooled_expect(struct tt_edge *base, uint64_t nmessages)
{
    if (has_slots(own(base))) net_expect(base, nmessages);
}

static void pooled_land(struct tt_edge *base, uint64_t match, char *at, size_t room)
{
    if (has_slots(own(base))) net_land(base, match, at, room);
}

static const struct tt_edge_ops pooled_ops = {
    .acquire = pooled_acquire,
    .post = pooled_post,
    .post_small = pooled_post_small,
    .post_ref = pooled_post_ref,
    .drained = net_drained,
    .peek = pooled_peek,
    .land = pooled_land,
    .expect = pooled_expect,
    .push = net_push,
    .small = {.send = pooled_send_small,
              .send_ahead = pooled_send_small,
              .take = pooled_take,
              .release = net_release},
    .track = net_track,
    .name = net_name,
    .destroy = net_destroy,
};

/* ---- making ---- */

static bool net_can_connect(const struct tt_transport_config *config, int peer)
{
    (void)peer;
    return config->net != NULL;
}

static void log_edge(const struct net_edge *edge)
{
    const struct tt_transport_config *config = edge->edge.config;
    const struct tt_edge_key *key = &edge->edge.key;
    int me = config->member->rank;
    int from = key->sending ? me : key->peer;
    int to = key->sending ? key->peer : me;
    tt_info(TT_LOG_INIT | TT_LOG_NET, "Channel %02d/%d : %d[%d] -> %d[%d] [%s] via NET/%s/%d",
            key->channel, key->conn, from, config->peers[from].device, to, config->peers[to].device,
            key->sending ? "send" : "receive", config->net->name, edge->dev);
}

size_t tt_transport_slice_most(int nranks, int nchannels, size_t slice_bytes)
{
    int npeers = nranks - 1 < TREE_PEERS ? nranks - 1 : TREE_PEERS;
    size_t nedges = (size_t)nchannels * (size_t)(2 + 2 * npeers); /* a ring goes one way */
    while (nedges * TT_SLOTS * slice_bytes > COLL_BYTES && slice_bytes > PLUGIN_SLICE_LEAST)
        slice_bytes /= 2;
    return slice_bytes;
}

/* Pages of the slots exist once they are used. */
static ncclResult_t map_slots(struct net_edge *edge, size_t slice_bytes)
{
    edge->stride = TT_LINE_BYTES + tt_round_up(slice_bytes, TT_LINE_BYTES);
    edge->pooled = tt_net_pool_serves(edge->transport->net_edges, edge);
    if (edge->pooled) {
        edge->edge.ops = &pooled_ops;
        edge->slot_mask = NET_POOL_SLOTS - 1;
        if (edge->group_most > NET_POOL_SLOTS / 2) edge->group_most = NET_POOL_SLOTS / 2;
        return tt_net_pool_create(edge->transport->net_edges, edge->edge.config->pool_bytes,
                                  edge->stride);
    }
    edge->slot_mask = edge->gathers && !edge->edge.key.sending ? 0 : TT_SLOTS - 1;
    edge->fifo_bytes = (edge->slot_mask + 1) * edge->stride;
    char *fifo =
        mmap(NULL, edge->fifo_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (fifo == MAP_FAILED)
        return tt_fail(ncclSystemError, "slots of %zu bytes: %m", edge->fifo_bytes);
    edge->fifo = fifo;
    return ncclSuccess;
}

/* As the machine says, where it says so. */
static int device_for(const struct tt_transport_config *config, const struct tt_edge_key *key)
{
    const struct tt_transport_nics *nics = config->nics;
    int dev = -1, c = key->channel, number = config->peers[key->peer].device;
    bool usual = c < TT_NIC_CHANNELS && number >= 0 && number < TT_NIC_DEVICES;
    if (nics && usual && key->conn == 0) {
        bool along = key->peer == (key->sending ? nics->next[c] : nics->prev[c]);
        dev = along ? nics->along[c] : nics->across[c];
    } else if (nics && usual) {
        dev = key->sending ? nics->toward[number][c] : nics->from[c];
    }
    if (dev >= 0 && dev < config->net->nopen) return dev;
    return tt_net_device(config->net, config->member->rank, key->peer, c);
}

/* Several connections with a sender share none: what is received together are messages of one. */
static int group_most(const struct tt_net *net, int dev)
{
    ncclNetProperties_v12_t props;
    struct tt_net_plugin *plugin = net->plugin;
    if (!plugin->ops.irecv_group || !tt_param_bool("NCCL_NET_SHARED_COMMS")) return 1;
    if (plugin->ops.properties(plugin, dev, &props) || props.maxRecvs < 1) return 1;
    return props.maxRecvs < TT_SLOTS / 2 ? props.maxRecvs : TT_SLOTS / 2;
}

static ncclResult_t net_connect(const struct tt_transport_config *config, void *inbox,
                                const struct tt_edge_key *key, struct tt_edge **edge_out)
{
    struct net_edge *edge = tt_calloc(1, sizeof(*edge));
    (void)inbox;
    if (!edge) return tt_fail(ncclSystemError, "edge to rank %d: out of memory", key->peer);
    edge->edge = (struct tt_edge){.ops = &net_ops, .config = config, .key = *key};
    edge->dev = device_for(config, key);
    edge->transport = config->transport;
    edge->gathers = config->net->plugin->ops.gathers;
    edge->first_tag = (int)((uint32_t)(key->sending ? config->member->rank : key->peer) * TT_SLOTS);
    edge->group_most =
        key->sending || key->conn != TT_CONN_P2P ? 1 : group_most(config->net, edge->dev);
    edge->proves = edge->gathers && tt_param_bool("TUTTI_NET_INTEGRITY");
    edge->edge.wants_still = edge->proves || !edge->gathers; /* plugins may look again */
    if (edge->gathers && key->conn == TT_CONN_P2P)
        edge->edge.message_bytes = edge->proves ? PROVED_BYTES : MAX_NET_SIZE / 2;
    edge->edge.joins_long = edge->gathers;
    edge->edge.reads_once = edge->gathers; /* plugins want it as it is until they are asked */
    edge->slots.phase = key->sending ? NET_WAITING_HANDLE : NET_LISTENING;
    ncclResult_t rc = map_slots(edge, config->slice_bytes);
    if (rc) goto out;
    log_edge(edge);
    tt_net_edges_add(edge->transport->net_edges, edge);
    *edge_out = &edge->edge;
    edge = NULL;
out:
    edge_free(edge);
    return rc;
}

const struct tt_transport_ops tt_transport_net = {
    .name = "net",
    .can_connect = net_can_connect,
    .connect = net_connect,
};
