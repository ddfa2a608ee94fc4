/* All network edges of a transport: any thread that comes moves them (the proxy, or an executor
 * that waits); one at a time, the others go away at once. The proxy alone connects them, and sleeps
 * here while nothing is left to do. */
#include "base/mem.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "transport/net/collnet.h"
#include "transport/net/net.h"
#include "transport/serve.h"
#include "transport/uses.h"

#include <sched.h>
#include <sodium.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ACCEPT_TIMEOUT_NSEC 2000000000ull /* packets of the proof may be sent again and again */
#define DATA_TIMEOUT_NSEC 10000000000ull
#define TEND_NSEC 1000000000ull
enum { LOCK_TRIES = 1000, FEW_EDGES = 16, PAUSE_PART = 8 };
enum { MOMENT_NSEC = 4000, EAGER_NSEC = 16000, PAUSE_MOST_NSEC = 50000 };

struct run { /* one look at all edges */
    bool moved, pending, joining;
};

static void join_lines(struct net_edge *edge, struct run *run)
{
    struct net_line *line = net_is_joining(&edge->slots) ? &edge->slots : &edge->direct;
    if (edge->slots.phase == NET_BROKEN || !net_is_joining(line)) return;
    run->moved |= tt_net_join(edge, line);
    run->joining |= net_is_joining(line);
}

/* Before messages of another kind than those before; hints of connections come first. */
static void report_uses(struct tt_net_edges *edges)
{
    uint64_t uses = atomic_load_explicit(&edges->uses, memory_order_relaxed);
    if (uses == edges->announced || !edges->hinted) return;
    edges->announced = uses;
    tt_net_give_hints(edges->first, uses);
}

void tt_transport_uses(struct tt_transport *transport, struct tt_net_uses uses)
{
    uint64_t packed =
        (uint64_t)uses.protocols << 32 | (uint64_t)uses.algorithms << 16 | uses.functions;
    atomic_store_explicit(&transport->net_edges->uses, packed, memory_order_relaxed);
}

/* Receivers of which nothing is asked: their senders may come anew. The proxy's thread. */
static void tend_edges(struct tt_net_edges *edges)
{
    const uint64_t now_nsec = tt_now_nsec();
    if (!edges->first || now_nsec < edges->tend_nsec) return;
    struct tt_net_plugin *net = edges->first->edge.config->net->plugin;
    edges->tends = net->ops.tend && !net->ops.tend(net, NULL);
    edges->tend_nsec = now_nsec + TEND_NSEC;
    for (struct net_edge *edge = edges->first; edge && edges->tends; edge = edge->next) {
        if (edge->edge.key.sending || edge->slots.phase != NET_READY) continue;
        ncclResult_t rc = net->ops.tend(net, edge->slots.comm);
        if (rc) tt_net_broke(edge, rc, "receiving");
    }
}

static struct run run_edges(struct tt_net_edges *edges, bool proxy)
{
    struct run run = {false, false, false};
    if (edges->first) report_uses(edges);
    for (struct net_edge *edge = edges->first; edge; edge = edge->next) {
        if (edge->slots.phase == NET_READY) run.moved |= tt_net_step(edge);
        if (proxy) join_lines(edge, &run);
        run.pending |= tt_net_step_pending(edge);
    }
    if (edges->lane) {
        run.moved |= tt_collnet_step(edges->lane);
        run.pending |= tt_collnet_pending(edges->lane);
    }
    return run;
}

static ncclResult_t first_error(struct tt_net_edges *edges)
{
    return (ncclResult_t)atomic_load_explicit(&edges->error, memory_order_relaxed);
}

/* Nothing moved. A question costs a system call or several, and the processor may be what the
 * sender lacks: who has waited a moment gives way after each, and who has waited longer asks again
 * after an eighth of the time that it has waited. True: give way. The lock is held. */
static bool pace(struct tt_net_edges *edges)
{
    uint64_t now_nsec = tt_now_nsec();
    if (!atomic_load_explicit(&edges->look_nsec, memory_order_relaxed))
        edges->waits_nsec = now_nsec;
    uint64_t waited_nsec = now_nsec - edges->waits_nsec;
    uint64_t pause_nsec = waited_nsec < EAGER_NSEC ? 0 : waited_nsec / PAUSE_PART;
    if (pause_nsec > PAUSE_MOST_NSEC) pause_nsec = PAUSE_MOST_NSEC;
    atomic_store_explicit(&edges->look_nsec, now_nsec + pause_nsec, memory_order_relaxed);
    return waited_nsec > MOMENT_NSEC;
}

/* NOLINTNEXTLINE(readability-function-cognitive-complexity): on the way of each message, in one */
void tt_net_drive(struct tt_net_edges *edges, struct net_edge *edge, bool posted)
{
    bool left = posted; /* something that was posted here is left to do */
    bool moved = false, gives_way = false;
    if (!posted && atomic_load_explicit(&edges->wanted, memory_order_relaxed)) return;
    const uint64_t look_nsec = atomic_load_explicit(&edges->look_nsec, memory_order_relaxed);
    if (!posted && look_nsec && tt_now_nsec() < look_nsec) {
        sched_yield(); /* a turn of who waits takes as long as with a question */
        return;
    }
    if (pthread_mutex_trylock(&edges->lock)) {
        if (!posted) return;
        /* its holder may have passed our edge; pairs with the loads in tt_transport_serve()
         */
        atomic_fetch_add_explicit(&edges->missed, 1, memory_order_seq_cst);
    } else {
        if (!edge) {
            moved = tt_collnet_step(edges->lane);
        } else if (edges->count <= FEW_EDGES || ++edges->turn % (edges->count / 2) == 0) {
            struct run run = run_edges(edges, false);
            left = run.pending;
            moved = run.moved;
        } else {
            report_uses(edges);
            if (edge->slots.phase == NET_READY) moved = tt_net_step(edge);
            left = tt_net_step_pending(edge);
        }
        if (moved || posted) {
            atomic_store_explicit(&edges->look_nsec, 0, memory_order_relaxed);
        } else {
            gives_way = pace(edges);
        }
        pthread_mutex_unlock(&edges->lock);
        atomic_fetch_add_explicit(&edges->drives, 1, memory_order_relaxed);
        if (gives_way) sched_yield();
    }
    /* errors are spread by the proxy, and lines joined */
    if (atomic_load_explicit(&edges->asleep, memory_order_seq_cst) &&
        ((posted && left) || atomic_load_explicit(&edges->error, memory_order_relaxed) ||
         atomic_load_explicit(&edges->joining, memory_order_relaxed))) {
        tt_net_wake(edges);
    }
}

ncclResult_t tt_net_edges_lane(struct tt_transport *transport, struct tt_collnet_lane **lane_out)
{
    struct tt_net_edges *edges = transport->net_edges;
    struct tt_collnet_lane *lane = edges->lane;
    ncclResult_t rc = lane ? ncclSuccess : tt_collnet_lane_create(&transport->config, &lane);
    if (rc) return rc;
    pthread_mutex_lock(&edges->lock);
    edges->lane = lane;
    pthread_mutex_unlock(&edges->lock);
    *lane_out = lane;
    return ncclSuccess;
}

ncclResult_t tt_transport_progress(struct tt_transport *transport, bool *moved_out)
{
    struct tt_net_edges *edges = transport->net_edges;
    *moved_out = false;
    if (!edges) return ncclSuccess;
    if (!pthread_mutex_trylock(&edges->lock)) {
        *moved_out = run_edges(edges, false).moved;
        pthread_mutex_unlock(&edges->lock);
    }
    return first_error(edges);
}

/* Threads that wait hold the lock most of the time; the proxy asks them to let it in while only it
 * can go on. */
static bool proxy_lock(struct tt_net_edges *edges)
{
    bool locked = !pthread_mutex_trylock(&edges->lock);
    if (locked || !atomic_load_explicit(&edges->joining, memory_order_relaxed)) return locked;
    atomic_store_explicit(&edges->wanted, true, memory_order_relaxed);
    for (int tries = 0; !locked && tries < LOCK_TRIES; tries++) {
        sched_yield();
        locked = !pthread_mutex_trylock(&edges->lock);
    }
    atomic_store_explicit(&edges->wanted, false, memory_order_relaxed);
    return locked;
}

enum tt_net_state tt_transport_serve(struct tt_transport *transport, ncclResult_t *rc_out)
{
    struct tt_net_edges *edges = transport->net_edges;
    uint64_t missed = atomic_load_explicit(&edges->missed, memory_order_seq_cst);
    *rc_out = first_error(edges);
    if (!proxy_lock(edges)) return TT_NET_BUSY;
    tend_edges(edges);
    struct run run = run_edges(edges, true);
    atomic_store_explicit(&edges->joining, run.joining, memory_order_relaxed);
    if (run.moved) net_look_now(edges);
    bool idle = !run.moved && !run.pending && !run.joining;
    if (idle) {
        /* pairs with tt_net_drive(): either it sees us asleep or we see that its post was
         * missed */
        atomic_store_explicit(&edges->asleep, true, memory_order_seq_cst);
        idle = atomic_load_explicit(&edges->missed, memory_order_seq_cst) == missed;
        if (!idle) atomic_store_explicit(&edges->asleep, false, memory_order_relaxed);
    }
    pthread_mutex_unlock(&edges->lock);
    *rc_out = first_error(edges);
    if (idle) return TT_NET_IDLE;
    return run.moved ? TT_NET_MOVED : TT_NET_BUSY;
}

bool tt_transport_pending(struct tt_transport *transport, bool *gone_out)
{
    struct tt_net_edges *edges = transport->net_edges;
    bool pending = false, gone = true;
    pthread_mutex_lock(&edges->lock);
    for (struct net_edge *edge = edges->first; edge; edge = edge->next) {
        if (!tt_net_step_pending(edge)) continue;
        pending = true;
        gone = gone && tt_bootstrap_rank_ended(edge->edge.config->bootstrap, edge->edge.key.peer);
    }
    if (edges->lane && tt_collnet_pending(edges->lane)) {
        pending = true;
        gone = false;
    }
    pthread_mutex_unlock(&edges->lock);
    *gone_out = gone;
    return pending;
}

uint64_t tt_transport_drives(const struct tt_transport *transport)
{
    return atomic_load_explicit(&transport->net_edges->drives, memory_order_relaxed);
}

/* ---- the sleep of the proxy ---- */

void tt_net_wake(struct tt_net_edges *edges)
{
    pthread_mutex_lock(&edges->wake_lock);
    edges->woken = true;
    atomic_store_explicit(&edges->asleep, false, memory_order_relaxed);
    pthread_cond_signal(&edges->wake_up);
    pthread_mutex_unlock(&edges->wake_lock);
}

void tt_transport_wake(struct tt_transport *transport)
{
    tt_net_wake(transport->net_edges);
}

void tt_transport_sleep(struct tt_transport *transport, uint64_t timeout_usec)
{
    struct tt_net_edges *edges = transport->net_edges;
    if (!timeout_usec && edges->tends) timeout_usec = TEND_NSEC / 1000;
    const struct timespec until = tt_clock_at(tt_now_nsec() + timeout_usec * 1000);
    pthread_mutex_lock(&edges->wake_lock);
    int err = 0;
    while (!edges->woken && !err) {
        err = timeout_usec ? pthread_cond_clockwait(&edges->wake_up, &edges->wake_lock,
                                                    CLOCK_MONOTONIC, &until)
                           : pthread_cond_wait(&edges->wake_up, &edges->wake_lock);
    }
    edges->woken = false;
    atomic_store_explicit(&edges->asleep, false, memory_order_relaxed);
    pthread_mutex_unlock(&edges->wake_lock);
}

/* ---- the table ---- */

struct tt_net_edges *tt_net_edges_create(const struct tt_bootstrap *bootstrap)
{
    unsigned char seed[TT_MAC_SEED_BYTES];
    struct tt_net_edges *edges = tt_calloc(1, sizeof(*edges));
    if (!edges) return NULL;
    pthread_mutex_init(&edges->lock, NULL);
    pthread_mutex_init(&edges->wake_lock, NULL);
    pthread_mutex_init(&edges->region_lock, NULL);
    pthread_cond_init(&edges->wake_up, NULL);
    edges->process = getpid();
    tt_bootstrap_key(bootstrap, "net messages", seed);
    tt_mac_key_init(&edges->mac_key, seed);
    sodium_memzero(seed, sizeof(seed));
    return edges;
}

void tt_net_edges_add(struct tt_net_edges *edges, struct net_edge *edge)
{
    pthread_mutex_lock(&edges->lock);
    edge->next = edges->first;
    if (edge->next) edge->next->prev = edge;
    edges->first = edge;
    edges->count++;
    atomic_store_explicit(&edges->joining, true, memory_order_relaxed);
    pthread_mutex_unlock(&edges->lock);
    tt_net_wake(edges); /* the proxy connects it */
}

void tt_net_edges_remove(struct tt_net_edges *edges, struct net_edge *edge)
{
    pthread_mutex_lock(&edges->lock);
    if (edge->next) edge->next->prev = edge->prev;
    *(edge->prev ? &edge->prev->next : &edges->first) = edge->next;
    edges->count--;
    if (!edges->inherited) tt_net_edge_close(edge);
    pthread_mutex_unlock(&edges->lock);
}

/* Memory that the executor named and the network may still touch. */
static bool touches_memory(const struct net_edge *edge)
{
    bool sending = edge->edge.key.sending;
    uint64_t first = edge->tested;
    uint64_t end =
        atomic_load_explicit(sending ? &edge->filled : &edge->wanted, memory_order_acquire);
    for (uint64_t k = first; k < end; k++) {
        if (edge->memory[k % TT_SLOTS].at) return true;
    }
    return false;
}

void tt_transport_release_memory(struct tt_transport *transport)
{
    struct tt_net_edges *edges = transport->net_edges;
    if (!edges || edges->process != getpid()) return;
    pthread_mutex_lock(&edges->lock);
    for (struct net_edge *edge = edges->first; edge; edge = edge->next) {
        if (!touches_memory(edge)) continue;
        struct tt_net_plugin *net = edge->edge.config->net->plugin;
        edge->slots.phase = NET_BROKEN;
        if (edge->slots.comm && net->ops.stop) net->ops.stop(net, edge->slots.comm);
        tt_net_direct_close(edge);
        atomic_store_explicit(&edge->error, (int)ncclRemoteError, memory_order_release);
    }
    pthread_mutex_unlock(&edges->lock);
}

/* A sender may have connected and gone before this side has seen it; a network of others need not
 * tell that a connection ended, and ours tells it only where a message is wanted. */
static uint64_t edge_in_flight_nsec(const struct net_edge *edge)
{
    if (edge->slots.phase == NET_ACCEPTING) return ACCEPT_TIMEOUT_NSEC;
    if (edge->slots.phase != NET_READY) return 0;
    if (atomic_load_explicit(&edge->wanted, memory_order_relaxed) <=
        atomic_load_explicit(&edge->emptied, memory_order_relaxed))
        return 0;
    return edge->edge.config->net->plugin->builtin ? UINT64_MAX : DATA_TIMEOUT_NSEC;
}

uint64_t tt_net_edges_in_flight_nsec(struct tt_net_edges *edges, int rank)
{
    uint64_t most = 0;
    if (!edges) return 0;
    int tries = 0;
    while (pthread_mutex_trylock(&edges->lock)) {
        if (++tries == LOCK_TRIES) return UINT64_MAX;
        sched_yield();
    }
    for (struct net_edge *edge = edges->first; edge; edge = edge->next) {
        const struct tt_edge_key *key = &edge->edge.key;
        if (key->peer != rank || key->sending) continue;
        uint64_t in_flight_nsec = edge_in_flight_nsec(edge);
        if (in_flight_nsec > most) most = in_flight_nsec;
    }
    pthread_mutex_unlock(&edges->lock);
    return most;
}

void tt_net_edges_end(struct tt_net_edges *edges)
{
    if (!edges || edges->process == getpid()) return;
    edges->process = getpid();
    edges->inherited = true;
    pthread_mutex_init(&edges->lock, NULL);
    pthread_mutex_init(&edges->wake_lock, NULL);
    pthread_cond_init(&edges->wake_up, NULL);
}

void tt_net_edges_destroy(struct tt_net_edges *edges)
{
    if (!edges) return;
    tt_collnet_lane_destroy(edges->lane, edges->inherited);
    while (edges->regions) {
        struct net_region *region = edges->regions;
        edges->regions = region->next;
        free(region);
    }
    pthread_mutex_destroy(&edges->region_lock);
    pthread_cond_destroy(&edges->wake_up);
    pthread_mutex_destroy(&edges->wake_lock);
    pthread_mutex_destroy(&edges->lock);
    tt_net_pool_destroy(edges->pool);
    sodium_memzero(&edges->mac_key, sizeof(edges->mac_key));
    free(edges);
}
