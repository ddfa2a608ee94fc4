/* Network edges, mover's side: slots are handed to the network step by step, by whichever thread
 * comes along (the proxy, or an executor that waits); one at a time, the others go away at once. */
#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/member.h"
#include "bootstrap/bootstrap.h"
#include "transport/net.h"
#include "transport/serve.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ACCEPT_PATIENCE_NSEC 2000000000ull /* packets of the proof may be sent again and again */
#define DATA_PATIENCE_NSEC 10000000000ull
enum { LOCK_TRIES = 1000, FEW_EDGES = 16, CAUSE_LOOKS = 100, CAUSE_LOOK_USEC = 2000 };

/* Who closes a connection has often lost another rank and left. When one died its neighbours in the
 * bootstrap's tree learn it at once, so a moment later this rank knows as well whom to blame. */
static void await_cause(const struct tt_transport_config *config)
{
    for (int look = 0; look < CAUSE_LOOKS; look++) {
        if (tt_member_aborted(config->member) || tt_bootstrap_error(config->bootstrap, NULL))
            return;
        tt_sleep_usec(CAUSE_LOOK_USEC);
    }
}

void tt_net_broke(struct net_edge *edge, ncclResult_t rc, const char *what)
{
    const struct tt_transport_config *config = edge->edge.config;
    struct tt_net_edges *edges = edge->transport->net_edges;
    char sentence[256];
    edge->phase = NET_BROKEN;
    if (atomic_load_explicit(&edges->error, memory_order_relaxed)) {
        atomic_store_explicit(&edge->error, (int)rc, memory_order_release);
        return;
    }
    if (rc == ncclRemoteError) await_cause(config);
    snprintf(sentence, sizeof(sentence), "rank %d: %s %s rank %d over NET/%.64s failed: %s",
             config->member->rank, what, edge->edge.key.sending ? "to" : "from",
             edge->edge.key.peer, config->net->name, tt_result_text(rc));
    tt_fail(rc, "%s", sentence);
    /* every rank hears the cause, not only that somebody gave up; after an abort it is none */
    if (!tt_member_aborted(config->member)) tt_bootstrap_fail(config->bootstrap, rc, sentence);
    atomic_store_explicit(&edges->error, (int)rc, memory_order_relaxed);
    /* last: calls that see it say what is known by now */
    atomic_store_explicit(&edge->error, (int)rc, memory_order_release);
}

/* ---- one edge ---- */

/* Full slots of the same operation behind the one to issue. */
static uint32_t count_behind(const struct net_edge *edge)
{
    uint64_t filled = atomic_load_explicit(&edge->filled, memory_order_acquire);
    uint64_t stamp = net_slot_at(edge, edge->issued)->stamp;
    uint32_t count = 0;
    for (uint64_t k = edge->issued + 1; k < filled; k++, count++) {
        if (net_slot_at(edge, k)->stamp != stamp) break;
    }
    return count;
}

static ncclResult_t issue_send(struct net_edge *edge, struct net_step *step)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    struct net_slot *slot = net_slot_at(edge, edge->issued);
    void *seen = step->seen.event ? &step->seen : NULL;
    slot->more = count_behind(edge);
    tt_net_watch_state(edge, edge->issued, ncclProfilerProxyStepSendPeerWait_v4, slot->bytes);
    ncclResult_t rc =
        table->isend(edge->comm, slot, sizeof(*slot) + slot->bytes, edge->edge.config->member->rank,
                     edge->mhandle, seen, &step->request);
    if (!rc && step->request)
        tt_net_watch_state(edge, edge->issued, ncclProfilerProxyStepSendWait, slot->bytes);
    return rc;
}

static ncclResult_t issue_recv(struct net_edge *edge, struct net_step *step)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    void *slot = net_slot_at(edge, edge->issued);
    size_t size = sizeof(struct net_slot) + edge->edge.config->slice_bytes;
    int tag = edge->edge.key.peer;
    if (!step->op) tt_net_watch_start(edge, edge->issued, ncclProfilerProxyStepRecvWait);
    void *seen = step->seen.event ? &step->seen : NULL;
    return table->irecv(edge->comm, 1, &slot, &size, &tag, &edge->mhandle, &seen, &step->request);
}

/* How many messages may be under way by now. */
static uint64_t issue_limit(const struct net_edge *edge)
{
    /* pair with the release stores in net.c */
    if (edge->edge.key.sending) return atomic_load_explicit(&edge->filled, memory_order_acquire);
    uint64_t limit = atomic_load_explicit(&edge->wanted, memory_order_acquire);
    uint64_t room = atomic_load_explicit(&edge->emptied, memory_order_acquire) + TT_SLOTS;
    if (limit < edge->promised) limit = edge->promised;
    return limit < room ? limit : room;
}

static bool issue_step(struct net_edge *edge)
{
    bool moved = false;
    bool sending = edge->edge.key.sending;
    for (uint64_t limit = issue_limit(edge); edge->issued < limit; edge->issued++) {
        struct net_step *step = net_step_at(edge, edge->issued);
        step->request = NULL;
        ncclResult_t rc = sending ? issue_send(edge, step) : issue_recv(edge, step);
        if (rc) tt_net_broke(edge, rc, sending ? "sending" : "receiving");
        if (rc || !step->request) return moved || rc != ncclSuccess;
        moved = true;
    }
    return moved;
}

/* A message came: look at its header before anybody else does. `size` < 0: the network said
 * nothing. */
static ncclResult_t check_slot(struct net_edge *edge, int size)
{
    const struct net_slot *slot = net_slot_at(edge, edge->tested);
    const struct tt_transport_config *config = edge->edge.config;
    bool fits = slot->bytes <= config->slice_bytes && slot->more < TT_SLOTS &&
                (size < 0 || (size_t)size == sizeof(*slot) + slot->bytes);
    if (fits) {
        uint64_t promised = edge->tested + 1 + slot->more;
        if (promised > edge->promised) edge->promised = promised;
        return ncclSuccess;
    }
    return tt_fail(ncclRemoteError,
                   "rank %d: message %llu from rank %d is damaged: %d bytes came, its header says "
                   "%u and %u more messages",
                   config->member->rank, (unsigned long long)edge->tested, edge->edge.key.peer,
                   size, slot->bytes, slot->more);
}

static ncclResult_t test_one(struct net_edge *edge, bool *done_out)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    int done = 0;
    int size = -1;
    ncclResult_t rc = table->test(net_step_at(edge, edge->tested)->request, &done, &size);
    *done_out = done != 0;
    if (rc || !done) return rc;
    if (edge->edge.key.sending) {
        tt_net_watch_stop(edge, edge->tested);
        return ncclSuccess;
    }
    rc = check_slot(edge, size);
    size_t bytes = net_slot_at(edge, edge->tested)->bytes;
    tt_net_watch_state(edge, edge->tested, ncclProfilerProxyStepRecvFlushWait, bytes);
    tt_net_watch_state(edge, edge->tested, ncclProfilerProxyStepRecvGPUWait, bytes);
    return rc;
}

static bool test_step(struct net_edge *edge)
{
    bool sending = edge->edge.key.sending;
    bool moved = false;
    while (edge->tested < edge->issued) {
        bool done = false;
        ncclResult_t rc = test_one(edge, &done);
        if (rc) tt_net_broke(edge, rc, sending ? "sending" : "receiving");
        if (rc || !done) return moved || rc != ncclSuccess;
        edge->tested++;
        moved = true;
        /* pairs with the acquire loads in net.c */
        atomic_store_explicit(sending ? &edge->emptied : &edge->filled, edge->tested,
                              memory_order_release);
    }
    return moved;
}

/* Networks that ask for it learn which receives the executor is done with. */
static void consume_step(struct net_edge *edge)
{
    const ncclNet_v12_t *table = edge->edge.config->net->table;
    uint64_t emptied = atomic_load_explicit(&edge->emptied, memory_order_acquire);
    for (; edge->consumed < emptied; edge->consumed++) {
        if (!table->irecvConsumed) continue;
        table->irecvConsumed(edge->comm, 1, net_step_at(edge, edge->consumed)->request);
    }
}

bool tt_net_step(struct net_edge *edge)
{
    if (!edge->edge.key.sending) consume_step(edge);
    bool moved = issue_step(edge);
    if (edge->phase == NET_READY && test_step(edge)) {
        moved = true;
        if (edge->phase == NET_READY)
            issue_step(edge); /* what the test promised or made room for */
    }
    return moved;
}

bool tt_net_step_pending(const struct net_edge *edge)
{
    return edge->phase != NET_BROKEN && edge->edge.key.sending &&
           edge->tested != atomic_load_explicit(&edge->filled, memory_order_acquire);
}

/* ---- all edges ---- */

struct run { /* one look at all edges */
    bool moved, pending, joining;
};

static struct run run_edges(struct tt_net_edges *edges, bool proxy)
{
    struct run run = {false, false, false};
    for (struct net_edge *edge = edges->first; edge; edge = edge->next) {
        if (edge->phase == NET_READY) {
            run.moved |= tt_net_step(edge);
        } else if (edge->phase != NET_BROKEN && proxy) {
            run.moved |= tt_net_join(edge);
            run.joining |= edge->phase != NET_READY && edge->phase != NET_BROKEN;
        }
        run.pending |= tt_net_step_pending(edge);
    }
    return run;
}

static ncclResult_t first_error(struct tt_net_edges *edges)
{
    return (ncclResult_t)atomic_load_explicit(&edges->error, memory_order_relaxed);
}

/* True when something that was posted here is left to do; lock held. */
static bool run_for(struct tt_net_edges *edges, struct net_edge *edge)
{
    if (edges->count <= FEW_EDGES || ++edges->turn % (edges->count / 2) == 0)
        return run_edges(edges, false).pending;
    if (edge->phase == NET_READY) tt_net_step(edge);
    return tt_net_step_pending(edge);
}

void tt_net_drive(struct net_edge *edge)
{
    struct tt_net_edges *edges = edge->transport->net_edges;
    if (atomic_load_explicit(&edges->wanted, memory_order_relaxed)) return;
    if (pthread_mutex_trylock(&edges->lock)) return;
    run_for(edges, edge);
    pthread_mutex_unlock(&edges->lock);
    atomic_fetch_add_explicit(&edges->drives, 1, memory_order_relaxed);
    bool asleep = atomic_load_explicit(&edges->asleep, memory_order_relaxed);
    if (asleep && first_error(edges)) tt_net_ring(edges); /* the proxy spreads errors */
}

void tt_net_drive_posted(struct net_edge *edge)
{
    struct tt_net_edges *edges = edge->transport->net_edges;
    bool left = true;
    if (pthread_mutex_trylock(&edges->lock)) {
        /* whoever holds it may have passed our edge; pairs with the loads in tt_transport_serve()
         */
        atomic_fetch_add_explicit(&edges->knocks, 1, memory_order_seq_cst);
    } else {
        left = run_for(edges, edge);
        pthread_mutex_unlock(&edges->lock);
        atomic_fetch_add_explicit(&edges->drives, 1, memory_order_relaxed);
    }
    if ((left || first_error(edges)) && atomic_load_explicit(&edges->asleep, memory_order_seq_cst))
        tt_net_ring(edges);
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
    uint64_t knocks = atomic_load_explicit(&edges->knocks, memory_order_seq_cst);
    *rc_out = first_error(edges);
    if (!proxy_lock(edges)) return TT_NET_BUSY;
    struct run run = run_edges(edges, true);
    atomic_store_explicit(&edges->joining, run.joining, memory_order_relaxed);
    bool idle = !run.moved && !run.pending && !run.joining;
    if (idle) {
        /* pairs with tt_net_drive_posted(): either it sees us asleep or we see its knock */
        atomic_store_explicit(&edges->asleep, true, memory_order_seq_cst);
        idle = atomic_load_explicit(&edges->knocks, memory_order_seq_cst) == knocks;
        if (!idle) atomic_store_explicit(&edges->asleep, false, memory_order_relaxed);
    }
    pthread_mutex_unlock(&edges->lock);
    *rc_out = first_error(edges);
    if (idle) return TT_NET_IDLE;
    return run.moved ? TT_NET_MOVED : TT_NET_BUSY;
}

bool tt_transport_pending(struct tt_transport *transport)
{
    struct tt_net_edges *edges = transport->net_edges;
    bool pending = false;
    pthread_mutex_lock(&edges->lock);
    for (struct net_edge *edge = edges->first; edge && !pending; edge = edge->next) {
        pending = tt_net_step_pending(edge);
    }
    pthread_mutex_unlock(&edges->lock);
    return pending;
}

uint64_t tt_transport_drives(const struct tt_transport *transport)
{
    return atomic_load_explicit(&transport->net_edges->drives, memory_order_relaxed);
}

/* ---- the bell ---- */

void tt_net_ring(struct tt_net_edges *edges)
{
    pthread_mutex_lock(&edges->bell_lock);
    edges->rung = true;
    atomic_store_explicit(&edges->asleep, false, memory_order_relaxed);
    pthread_cond_signal(&edges->bell);
    pthread_mutex_unlock(&edges->bell_lock);
}

void tt_transport_ring(struct tt_transport *transport)
{
    tt_net_ring(transport->net_edges);
}

void tt_transport_sleep(struct tt_transport *transport, uint64_t timeout_usec)
{
    struct tt_net_edges *edges = transport->net_edges;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t nsec = (uint64_t)until.tv_nsec + timeout_usec % 1000000 * 1000;
    until.tv_sec += (time_t)(timeout_usec / 1000000 + nsec / 1000000000);
    until.tv_nsec = (int64_t)(nsec % 1000000000);
    pthread_mutex_lock(&edges->bell_lock);
    int err = 0;
    while (!edges->rung && !err) {
        err = timeout_usec ? pthread_cond_timedwait(&edges->bell, &edges->bell_lock, &until)
                           : pthread_cond_wait(&edges->bell, &edges->bell_lock);
    }
    edges->rung = false;
    atomic_store_explicit(&edges->asleep, false, memory_order_relaxed);
    pthread_mutex_unlock(&edges->bell_lock);
}

/* ---- the table ---- */

struct tt_net_edges *tt_net_edges_create(void)
{
    struct tt_net_edges *edges = tt_calloc(1, sizeof(*edges));
    pthread_condattr_t clock;
    if (!edges) return NULL;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_mutex_init(&edges->lock, NULL);
    pthread_mutex_init(&edges->bell_lock, NULL);
    pthread_cond_init(&edges->bell, &clock);
    pthread_condattr_destroy(&clock);
    return edges;
}

/* A sender may have connected and gone before this side has seen it; a network of others need not
 * tell that a connection ended. */
static uint64_t edge_patience(const struct net_edge *edge)
{
    if (edge->phase == NET_ACCEPTING) return ACCEPT_PATIENCE_NSEC;
    if (edge->phase != NET_READY) return 0;
    return edge->edge.config->net->table == &tt_net_socket ? UINT64_MAX : DATA_PATIENCE_NSEC;
}

uint64_t tt_net_edges_patience(struct tt_net_edges *edges, int rank)
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
        uint64_t patience = edge_patience(edge);
        if (patience > most) most = patience;
    }
    pthread_mutex_unlock(&edges->lock);
    return most;
}

void tt_net_edges_destroy(struct tt_net_edges *edges)
{
    if (!edges) return;
    pthread_cond_destroy(&edges->bell);
    pthread_mutex_destroy(&edges->bell_lock);
    pthread_mutex_destroy(&edges->lock);
    free(edges);
}
