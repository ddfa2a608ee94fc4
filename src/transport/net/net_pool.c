/* Slots that the edges of messages share, over plugins: a rank that talks to many peers has few of
 * them at work at a time, and what a plugin gets is registered, so it takes memory whether it is
 * used or not.
 *
 * The pool is cut into shares of POOL_SLOTS slots, half of them for sending. An edge takes a share
 * when it begins to move something, from an edge that has nothing under way. Where all are in use
 * it waits. Calls on both ends begin in the same order (plan/launch/messages.c), so what has a
 * share usually finds its peer ready. Where that is not so, ranks might wait for each other: after
 * 20 ms in which no share could be given an edge gets slots of its own, and each further one 20 ms
 * later.
 *
 * Shares are taken by the executor's thread, of which a communicator has one at a time. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "transport/net/net.h"
#include "transport/net/pool.h"

#include <stdlib.h>
#include <sys/mman.h>

#define POOL_BYTES ((size_t)12 << 20)
#define OWN_BYTES ((size_t)8 << 20) /* for edges of messages that are made first */
#define STALL_NSEC 20000000ull
enum { SHARES_LEAST = 4, LOOKS = 4 };

struct net_pool {
    char *slots; /* owned mapping */
    size_t bytes, share_bytes;
    int nhalf;              /* shares for each direction, first those for sending */
    int hands[2];           /* where the next look begins, by direction */
    uint64_t stall_nsec[2]; /* since when none could be given; 0: the last one who asked got one */
    int nspares;            /* edges that got slots of their own */
    struct net_edge **holder; /* owned; by share; NULL: no edge took it yet */
};

bool tt_net_pool_serves(struct tt_net_edges *edges, const struct net_edge *edge)
{
    size_t bytes = TT_SLOTS * edge->stride;
    int64_t shares = tt_param_int("NCCL_NET_SHARED_BUFFERS");
    if (edge->gathers || edge->edge.key.conn != TT_CONN_P2P || shares == 0) return false;
    if (shares == 1 || edges->own_bytes + bytes > OWN_BYTES) return true;
    edges->own_bytes += bytes;
    return false;
}

ncclResult_t tt_net_pool_create(struct tt_net_edges *edges, size_t pool_bytes, size_t stride)
{
    if (edges->pool) return ncclSuccess;
    struct net_pool *pool = tt_calloc(1, sizeof(*pool));
    if (!pool_bytes) pool_bytes = POOL_BYTES;
    size_t nshares = pool_bytes / (NET_POOL_SLOTS * (stride - TT_LINE_BYTES)) / 2 * 2;
    if (!pool) return tt_fail(ncclSystemError, "slots for messages: out of memory");
    if (nshares < SHARES_LEAST) nshares = SHARES_LEAST;
    pool->nhalf = (int)nshares / 2;
    pool->share_bytes = NET_POOL_SLOTS * stride;
    pool->bytes = nshares * pool->share_bytes;
    pool->holder = tt_calloc(nshares, sizeof(struct net_edge *));
    void *slots = pool->holder ? mmap(NULL, pool->bytes, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                               : MAP_FAILED;
    if (slots == MAP_FAILED) {
        free(pool->holder);
        free(pool);
        return tt_fail(ncclSystemError, "slots for messages: %zu bytes: %m",
                       nshares * NET_POOL_SLOTS * stride);
    }
    pool->slots = slots;
    edges->pool = pool;
    tt_info(TT_LOG_NET, "messages to further peers share %zu times %d slots of %zu bytes", nshares,
            NET_POOL_SLOTS, stride);
    return ncclSuccess;
}

void tt_net_pool_destroy(struct net_pool *pool)
{
    if (!pool) return;
    munmap(pool->slots, pool->bytes);
    free(pool->holder);
    free(pool);
}

/* Nothing of it is with the network, or with the executor. */
static bool is_idle(const struct net_edge *edge)
{
    uint64_t filled = atomic_load_explicit(&edge->filled, memory_order_acquire);
    uint64_t emptied = atomic_load_explicit(&edge->emptied, memory_order_acquire);
    return filled == emptied && !edge->filling &&
           atomic_load_explicit(&edge->wanted, memory_order_relaxed) <= emptied &&
           atomic_load_explicit(&edge->expected, memory_order_relaxed) <= emptied;
}

/* Slots of its own, which it keeps. */
static char *spare_of(struct net_edge *edge)
{
    edge->fifo_bytes = NET_POOL_SLOTS * edge->stride;
    void *spare =
        mmap(NULL, edge->fifo_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (spare != MAP_FAILED) edge->spare = spare;
    return edge->spare;
}

bool tt_net_pool_take(struct net_edge *edge)
{
    struct net_pool *pool = edge->transport->net_edges->pool;
    int half = edge->edge.key.sending ? 0 : 1, share = -1;
    for (int look = 0; look < LOOKS && share < 0; look++) {
        int at = half * pool->nhalf + pool->hands[half];
        pool->hands[half] = (pool->hands[half] + 1) % pool->nhalf;
        if (!pool->holder[at] || is_idle(pool->holder[at])) share = at;
    }
    if (share >= 0) {
        if (pool->holder[share]) pool->holder[share]->fifo = NULL;
        pool->holder[share] = edge;
        edge->fifo = pool->slots + (size_t)share * pool->share_bytes;
        pool->stall_nsec[half] = 0;
        return true;
    }
    uint64_t now_nsec = tt_now_nsec();
    if (!pool->stall_nsec[half]) pool->stall_nsec[half] = now_nsec;
    if (now_nsec - pool->stall_nsec[half] < STALL_NSEC * (uint64_t)(1 + pool->nspares))
        return false;
    pool->stall_nsec[half] = now_nsec;
    edge->fifo = spare_of(edge);
    if (edge->fifo) pool->nspares++;
    return edge->fifo != NULL;
}

void tt_net_pool_leave(struct net_edge *edge)
{
    struct net_pool *pool = edge->transport->net_edges->pool;
    for (int k = 0; pool && k < 2 * pool->nhalf; k++) {
        if (pool->holder[k] == edge) pool->holder[k] = NULL;
    }
    if (edge->spare) munmap(edge->spare, edge->fifo_bytes);
    edge->spare = edge->fifo = NULL;
}

void tt_net_pool_memory(const struct net_edge *edge, void **at_out, size_t *bytes_out)
{
    const struct net_pool *pool = edge->transport->net_edges->pool;
    *at_out = edge->pooled ? pool->slots : edge->fifo;
    *bytes_out = edge->pooled ? pool->bytes : edge->fifo_bytes;
}

ncclResult_t tt_net_pool_register(struct net_edge *edge, struct net_line *line)
{
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    line->mhandle = line->kept_mhandle;
    if (!edge->spare || edge->fifo != edge->spare) return ncclSuccess;
    if (!line->spare_registered) {
        ncclResult_t rc =
            net->ops.reg_mr(net, line->comm, edge->spare, edge->fifo_bytes, &line->spare_mhandle);
        if (rc) return rc;
        line->spare_registered = true;
    }
    line->mhandle = line->spare_mhandle;
    return ncclSuccess;
}
