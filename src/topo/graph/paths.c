/* The best path from every node to every CPU, device, GPU, NIC and NVSwitch: breadth first from
 * each of them, then the diversions that transports force. Better is: a smaller type, then more
 * bandwidth, then fewer hops; ties go to what was found first, hence to the order of links.
 * Source: spec topology, sections 3.2 to 3.6. */
#include "paths.h"

#include "access.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const enum tt_topo_type bases[] = {TT_NODE_CPU, TT_NODE_DEV, TT_NODE_GPU, TT_NODE_NET,
                                          TT_NODE_GIN, TT_NODE_RMA, TT_NODE_NVS};

/* ---- storage ---- */

static bool node_reserve(const struct tt_topo_system *system, struct tt_topo_node *node)
{
    for (size_t b = 0; b < TT_LEN(bases); b++) {
        int count = system->list[bases[b]].count;
        if (count == 0) continue;
        struct tt_topo_path *paths = calloc((size_t)count, sizeof(*paths));
        if (!paths) return false;
        for (int k = 0; k < count; k++)
            paths[k].type = TT_PATH_DIS;
        node->paths[bases[b]] = paths;
    }
    return true;
}

static bool paths_reserve(struct tt_topo_system *system)
{
    for (int type = 0; type < TT_NODE_COUNT_; type++) {
        for (int k = 0; k < system->list[type].count; k++) {
            if (!node_reserve(system, system->list[type].node[k])) return false;
        }
    }
    return true;
}

/* path = first ++ rest. False when memory is short. */
static bool set_links(struct tt_topo_path *path, struct tt_topo_link *const *first, int nfirst,
                      const struct tt_topo_path *rest)
{
    size_t count = (size_t)nfirst + (size_t)rest->hops;
    struct tt_topo_link **links = calloc(count + 1, sizeof(struct tt_topo_link *));
    if (!links) return false;
    if (nfirst) memcpy(links, first, (size_t)nfirst * sizeof(*links));
    if (rest->hops) memcpy(links + nfirst, rest->links, (size_t)rest->hops * sizeof(*links));
    free(path->links);
    path->links = links;
    path->hops = (int)count;
    return true;
}

/* ---- search from one base ---- */

struct wave {                   /* one level of the search */
    struct tt_topo_node **node; /* owned */
    int count;
};

struct spread {
    struct tt_topo_system *system;
    struct tt_topo_node *base;
    struct wave now, next;
    ncclResult_t rc;
};

static bool may_cross(const struct spread *spread, const struct tt_topo_node *node,
                      const struct tt_topo_link *link, int hops)
{
    const struct tt_topo_node *base = spread->base;
    const struct tt_topo_node *own = base->type == TT_NODE_GPU ? base->dev : base;
    int most = base->type == TT_NODE_GPU ? 2 : 1;
    if (node->type != TT_NODE_DEV || node == own) return true;
    if (link->type == TT_PATH_LOC && link->peer->type == TT_NODE_GPU) return true;
    bool relay = link->type == TT_PATH_NVL && link->peer->type == TT_NODE_DEV;
    return relay && !spread->system->env.nvb_disable && hops <= most;
}

static enum tt_path_type step_type(const struct spread *spread, const struct tt_topo_node *node,
                                   const struct tt_topo_link *link, const struct tt_topo_path *path)
{
    const struct tt_topo_node *peer = link->peer;
    int most = spread->base->type == TT_NODE_GPU ? 2 : 1;
    enum tt_path_type type = link->type == TT_PATH_NET ? TT_PATH_LOC : link->type;
    bool cpu = node->type == TT_NODE_CPU || peer->type == TT_NODE_CPU;
    if (node->type == TT_NODE_PCI && peer->type == TT_NODE_PCI) {
        type = TT_PATH_PXB;
    } else if (link->type == TT_PATH_PIX && cpu) {
        type = TT_PATH_PHB;
    }
    bool second = node->type == TT_NODE_DEV && path->type == TT_PATH_NVL && path->hops == most;
    if (second && type == TT_PATH_NVL) type = TT_PATH_NVB;
    return type > path->type ? type : path->type;
}

static bool is_better(const struct tt_topo_path *old, const struct tt_topo_path *new)
{
    if (new->type != old->type) return new->type < old->type;
    if (new->bw != old->bw) return new->bw > old->bw;
    return new->hops < old->hops;
}

static void try_link(struct spread *spread, struct tt_topo_node *node,
                     const struct tt_topo_link *link)
{
    struct tt_topo_node *peer = link->peer;
    const struct tt_topo_path *path = tt_topo_path(node, spread->base);
    if (!may_cross(spread, node, link, path->hops)) return;
    struct tt_topo_link *back = tt_topo_link_back(node, link);
    if (!back) {
        spread->rc = tt_fail(ncclInvalidUsage, "topology: %s link from %s %d to %s %d: no way back",
                             tt_path_type_name(link->type), tt_topo_type_name(node->type),
                             node->index, tt_topo_type_name(peer->type), peer->index);
        return;
    }
    struct tt_topo_path found = {.type = step_type(spread, node, link, path),
                                 .bw = path->bw < link->bw ? path->bw : link->bw,
                                 .hops = path->hops + 1};
    struct tt_topo_path *old = tt_topo_path(peer, spread->base);
    if (!is_better(old, &found)) return;
    if (!set_links(old, &back, 1, path)) {
        spread->rc = tt_fail(ncclSystemError, "topology: out of memory for paths");
        return;
    }
    old->type = found.type;
    old->bw = found.bw;
    if (peer->wave == spread->system->waves) return; /* is in the list */
    peer->wave = spread->system->waves;
    spread->next.node[spread->next.count++] = peer;
}

static int count_nodes(const struct tt_topo_system *system)
{
    int count = 0;
    for (int type = 0; type < TT_NODE_COUNT_; type++)
        count += system->list[type].count;
    return count;
}

static void run_waves(struct spread *spread)
{
    spread->now.node[0] = spread->base;
    spread->now.count = 1;
    while (spread->now.count && !spread->rc) {
        spread->next.count = 0;
        spread->system->waves++;
        for (int k = 0; k < spread->now.count; k++) {
            struct tt_topo_node *node = spread->now.node[k];
            for (int l = 0; l < node->nlinks && !spread->rc; l++)
                try_link(spread, node, &node->links[l]);
        }
        struct wave done = spread->now;
        spread->now = spread->next;
        spread->next = done;
    }
}

static ncclResult_t spread_from(struct tt_topo_system *system, struct tt_topo_node *base)
{
    size_t room = (size_t)count_nodes(system);
    struct spread spread = {.system = system, .base = base};
    spread.now.node = calloc(room, sizeof(struct tt_topo_node *));
    spread.next.node = calloc(room, sizeof(struct tt_topo_node *));
    if (spread.now.node && spread.next.node) {
        struct tt_topo_path *self = tt_topo_path(base, base);
        self->type = TT_PATH_LOC;
        self->bw = TT_TOPO_LOC_BW;
        run_waves(&spread);
    } else {
        spread.rc = tt_fail(ncclSystemError, "topology: out of memory for paths");
    }
    free(spread.now.node);
    free(spread.next.node);
    return spread.rc;
}

/* ---- diversions ---- */

/* The larger type; but from a GPU over its C2C link and then PCI is a kind of its own. */
static enum tt_path_type merge_types(enum tt_path_type a, enum tt_path_type b)
{
    bool mixed = (a == TT_PATH_C2C && b == TT_PATH_PHB) || (a == TT_PATH_PHB && b == TT_PATH_C2C);
    if (mixed) return TT_PATH_P2C;
    return a > b ? a : b;
}

/* from -> over -> to becomes the path from -> to. */
static ncclResult_t divert(struct tt_topo_system *system, struct tt_topo_node *from,
                           struct tt_topo_node *over, struct tt_topo_node *to)
{
    system->changes++;
    const struct tt_topo_path *one = tt_topo_path(from, over);
    const struct tt_topo_path *two = tt_topo_path(over, to);
    struct tt_topo_path *path = tt_topo_path(from, to);
    enum tt_path_type type = merge_types(one->type, two->type);
    float bw = one->bw < two->bw ? one->bw : two->bw;
    if (!set_links(path, one->links, one->hops, two)) {
        return tt_fail(ncclSystemError, "topology: out of memory for paths");
    }
    path->type = type;
    path->bw = bw;
    return ncclSuccess;
}

static bool connects_locally(const struct tt_topo_system *system, const struct tt_topo_node *from,
                             const struct tt_topo_node *to)
{
    struct tt_topo_p2p p2p = tt_topo_p2p_check(system, from, to);
    if (p2p.allowed && p2p.relay) return true;
    bool prefers_net = tt_topo_prefers_net(system, from, to);
    bool same_host = tt_topo_host(from) == tt_topo_host(to);
    bool shm = same_host && !system->env.shm_disable;
    return !prefers_net && (p2p.allowed || shm);
}

/* Pairs without direct access go through the receiver's CPU; pairs that nothing on the host joins
 * are marked as the network's. */
static ncclResult_t divert_gpus(struct tt_topo_system *system, struct tt_topo_node *to)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    ncclResult_t rc = ncclSuccess;
    for (int k = 0; k < gpus->count && !rc; k++) {
        struct tt_topo_node *from = gpus->node[k];
        struct tt_topo_node *cpu = tt_topo_local_cpu(system, to);
        bool direct = tt_topo_p2p_check(system, from, to).allowed;
        if (!direct && cpu) rc = divert(system, from, cpu, to);
    }
    for (int k = 0; k < gpus->count && !rc; k++) {
        struct tt_topo_node *from = gpus->node[k];
        if (from == to || connects_locally(system, from, to)) continue;
        tt_topo_path(from, to)->type = TT_PATH_NET;
    }
    return rc;
}

/* A NIC behind the CPU that a GPU reaches by C2C. */
static void mark_c2c_nets(struct tt_topo_system *system, struct tt_topo_node *gpu)
{
    struct tt_topo_node *nets[TT_TOPO_NODES];
    int count = tt_topo_local(system, gpu, TT_NODE_NET, nets);
    struct tt_topo_node *cpu = tt_topo_local_cpu(system, gpu);
    for (int k = 0; k < count && cpu; k++) {
        enum tt_path_type merged =
            merge_types(tt_topo_path(gpu, cpu)->type, tt_topo_path(nets[k], cpu)->type);
        if (merged != TT_PATH_P2C) continue;
        struct tt_topo_path *both[] = {tt_topo_path(gpu, nets[k]), tt_topo_path(nets[k], gpu)};
        for (int w = 0; w < 2; w++) {
            if (both[w]->type > TT_PATH_P2C) both[w]->type = TT_PATH_P2C;
        }
    }
}

/* Would another GPU, near to the NIC and joined by NVLink, serve it better? */
static bool worth_relay(const struct tt_topo_system *system, const struct tt_topo_node *relay,
                        const struct tt_topo_node *gpu, const struct tt_topo_node *net)
{
    enum tt_path_type most = system->env.pxn_c2c ? TT_PATH_P2C : TT_PATH_PXB;
    if (system->env.pxn_disable || !relay || relay == gpu) return false;
    const struct tt_topo_path *its = tt_topo_path(relay, net);
    const struct tt_topo_path *own = tt_topo_path(gpu, net);
    if (its->type > most || tt_topo_path(relay, gpu)->type > TT_PATH_NVL) return false;
    if (tt_topo_host(relay) != tt_topo_host(gpu)) return false;
    if (!tt_topo_gdr_check(system, relay, net, true)) return false;
    return its->bw > own->bw || own->type > TT_PATH_PXN;
}

/* The GPU that a NIC prefers, as paths are now. */
static struct tt_topo_node *preferred_gpu(const struct tt_topo_system *system,
                                          struct tt_topo_node *net)
{
    if (net->local_as_of == system->changes) return net->local_gpu;
    net->local_gpu = tt_topo_gpu_of(system, net);
    net->local_as_of = system->changes;
    return net->local_gpu;
}

static ncclResult_t divert_net(struct tt_topo_system *system, struct tt_topo_node *gpu,
                               struct tt_topo_node *net)
{
    struct tt_topo_node *relay = preferred_gpu(system, net);
    ncclResult_t rc = ncclSuccess;
    if (worth_relay(system, relay, gpu, net)) {
        rc = divert(system, gpu, relay, net);
        tt_topo_path(gpu, net)->type = TT_PATH_PXN;
    }
    if (rc || tt_topo_path(gpu, net)->type >= TT_PATH_PHB) return rc;
    if (tt_topo_gdr_check(system, gpu, net, false)) return ncclSuccess;
    struct tt_topo_node *cpu = tt_topo_local_cpu(system, gpu);
    if (!cpu) return ncclSuccess;
    rc = divert(system, net, cpu, gpu);
    return rc ? rc : divert(system, gpu, cpu, net);
}

static ncclResult_t divert_nets(struct tt_topo_system *system)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    const struct tt_topo_list *nets = &system->list[TT_NODE_NET];
    ncclResult_t rc = ncclSuccess;
    for (int g = 0; g < gpus->count; g++)
        mark_c2c_nets(system, gpus->node[g]);
    system->changes++;
    for (int n = 0; n < nets->count; n++) {
        for (int g = 0; g < gpus->count && !rc; g++) {
            rc = divert_net(system, gpus->node[g], nets->node[n]);
        }
    }
    for (int n = 0; n < nets->count && !rc; n++) {
        (void)preferred_gpu(system, nets->node[n]);
    }
    return rc;
}

/* A hundred megabytes: more than the largest NVLink domain that NCCL's 640 nodes of a type allow.
 */
enum { MOST_PATHS = 4 << 20 };

static bool too_many(const struct tt_topo_system *system)
{
    long paths = 0;
    for (size_t b = 0; b < TT_LEN(bases); b++)
        paths += system->list[bases[b]].count;
    return paths * count_nodes(system) > MOST_PATHS;
}

ncclResult_t tt_topo_paths_make(struct tt_topo_system *system)
{
    tt_topo_paths_drop(system);
    if (too_many(system)) {
        return tt_fail(ncclInvalidUsage,
                       "topology: too large: %d parts (GPUs, ports, CPUs, switches) have more than "
                       "%d paths between them",
                       count_nodes(system), (int)MOST_PATHS);
    }
    if (!paths_reserve(system)) {
        return tt_fail(ncclSystemError, "topology: out of memory for paths");
    }
    ncclResult_t rc = ncclSuccess;
    for (size_t b = 0; b < TT_LEN(bases) && !rc; b++) {
        const struct tt_topo_list *list = &system->list[bases[b]];
        for (int k = 0; k < list->count && !rc; k++)
            rc = spread_from(system, list->node[k]);
    }
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    for (int g = 0; g < gpus->count && !rc; g++)
        rc = divert_gpus(system, gpus->node[g]);
    return rc ? rc : divert_nets(system);
}
