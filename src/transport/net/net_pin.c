/* Memory that the user registered, and its registrations with the network, one for each direct line
 * that used it: the handle of one is not known to be good for another, and its line may end first,
 * when an operation fails. They end when the user takes the memory back, and with the line. */
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "transport/net/net.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- what the user registered ---- */

static bool lies_in(const void *at, size_t bytes, const char *base, size_t room)
{
    uintptr_t first = (uintptr_t)at, from = (uintptr_t)base;
    return first >= from && bytes <= room && first - from <= room - bytes;
}

/* The lock of the regions is held. */
static struct net_region *region_of(const struct tt_net_edges *edges, const void *at, size_t bytes)
{
    struct net_region *region = edges->regions;
    while (region && !lies_in(at, bytes, region->base, region->bytes))
        region = region->next;
    return region;
}

bool tt_net_registered(struct tt_net_edges *edges, const void *at, size_t bytes)
{
    if (atomic_load_explicit(&edges->nregions, memory_order_relaxed) == 0) return false;
    pthread_mutex_lock(&edges->region_lock);
    bool found = region_of(edges, at, bytes) != NULL;
    pthread_mutex_unlock(&edges->region_lock);
    return found;
}

/* The built-in network takes any memory; in a child of fork there is no mover. */
static bool is_reported(const struct tt_transport *transport)
{
    const struct tt_net_edges *edges = transport ? transport->net_edges : NULL;
    return edges && !transport->config.net->plugin->ops.gathers && edges->process == getpid();
}

void tt_transport_register(struct tt_transport *transport, const void *key, void *base,
                           size_t bytes)
{
    if (!is_reported(transport)) return;
    struct tt_net_edges *edges = transport->net_edges;
    pthread_mutex_lock(&edges->region_lock);
    struct net_region *region = edges->regions;
    while (region && region->key != key)
        region = region->next;
    if (!region && (region = tt_calloc(1, sizeof(*region)))) {
        *region =
            (struct net_region){.next = edges->regions, .key = key, .base = base, .bytes = bytes};
        edges->regions = region;
        atomic_fetch_add_explicit(&edges->nregions, 1, memory_order_relaxed);
    }
    if (region) region->uses++; /* without memory it is sent as any other */
    pthread_mutex_unlock(&edges->region_lock);
}

/* ---- registrations with the network; the lock of the edges is held ---- */

static void pin_free(struct net_edge *edge, struct net_pin *pin)
{
    struct tt_net_plugin *net = edge->edge.config->net->plugin;
    if (!pin->refused) net->ops.dereg_mr(net, edge->direct.comm, pin->mhandle);
    free(pin);
}

void tt_net_unpin(struct net_edge *edge)
{
    while (edge->pins) {
        struct net_pin *pin = edge->pins;
        edge->pins = pin->next;
        pin_free(edge, pin);
    }
}

static void unpin_region(struct net_edge *edge, const void *key)
{
    for (struct net_pin **at = &edge->pins; *at;) {
        struct net_pin *pin = *at;
        if (pin->key != key) {
            at = &pin->next;
            continue;
        }
        *at = pin->next;
        pin_free(edge, pin);
    }
}

void tt_transport_forget(struct tt_transport *transport, const void *key)
{
    if (!is_reported(transport)) return;
    struct tt_net_edges *edges = transport->net_edges;
    pthread_mutex_lock(&edges->region_lock);
    struct net_region **link = &edges->regions;
    while (*link && (*link)->key != key)
        link = &(*link)->next;
    struct net_region *gone = *link && --(*link)->uses == 0 ? *link : NULL;
    if (gone) {
        *link = gone->next;
        atomic_fetch_sub_explicit(&edges->nregions, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&edges->region_lock);
    if (!gone) return;
    free(gone);
    pthread_mutex_lock(&edges->lock);
    for (struct net_edge *edge = edges->first; edge; edge = edge->next) {
        unpin_region(edge, key);
    }
    pthread_mutex_unlock(&edges->lock);
}

static void pin_make(struct net_edge *edge, struct net_pin *pin)
{
    const struct tt_net *net = edge->edge.config->net;
    ncclResult_t rc = net->plugin->ops.reg_mr(
        net->plugin, edge->direct.comm, (char *)(uintptr_t)pin->base, pin->bytes, &pin->mhandle);
    pin->refused = rc != ncclSuccess;
    if (rc) {
        tt_info(TT_LOG_NET | TT_LOG_REG,
                "rank %d: NET/%s does not register %zu bytes at %p (result %d): they are copied",
                edge->edge.config->member->rank, net->name, pin->bytes, (const void *)pin->base,
                (int)rc);
    }
}

const struct net_pin *tt_net_pin(struct net_edge *edge, const void *at, size_t bytes)
{
    struct tt_net_edges *edges = edge->transport->net_edges;
    struct net_pin *pin = edge->pins;
    while (pin && !lies_in(at, bytes, pin->base, pin->bytes))
        pin = pin->next;
    if (pin) return pin->refused ? NULL : pin;
    pin = tt_calloc(1, sizeof(*pin));
    if (!pin) return NULL;
    pthread_mutex_lock(&edges->region_lock);
    const struct net_region *region = region_of(edges, at, bytes);
    if (region) *pin = (struct net_pin){.key = region->key};
    if (region) pin->base = region->base, pin->bytes = region->bytes;
    pthread_mutex_unlock(&edges->region_lock);
    if (!region) {
        free(pin);
        return NULL;
    }
    pin_make(edge, pin);
    pin->next = edge->pins;
    edge->pins = pin;
    return pin->refused ? NULL : pin;
}
