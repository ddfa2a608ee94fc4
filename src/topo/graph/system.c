/* Nodes and links. A node's links stay sorted by falling bandwidth, ties in order of arrival, and
 * nodes never move in memory: paths point to links once the graph is complete. */
#include "system.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

static const char *const type_names[TT_NODE_COUNT_] = {"GPU", "PCI", "NVS", "CPU", "NIC",
                                                       "NET", "GIN", "RMA", "DEV", "CXB"};
const char *tt_topo_type_name(enum tt_topo_type type)
{
    return type_names[type];
}

static bool list_grow(struct tt_topo_list *list)
{
    if (list->count < list->capacity) return true;
    int capacity = list->capacity ? 2 * list->capacity : 8;
    struct tt_topo_node **grown =
        realloc(list->node, (size_t)capacity * sizeof(struct tt_topo_node *));
    if (!grown) return false;
    list->node = grown;
    list->capacity = capacity;
    return true;
}

struct tt_topo_node *tt_topo_node_new(struct tt_topo_system *system, enum tt_topo_type type,
                                      uint64_t id)
{
    struct tt_topo_list *list = &system->list[type];
    if (list->count >= TT_TOPO_NODES || !list_grow(list)) return NULL;
    struct tt_topo_node *node = calloc(1, sizeof(*node));
    if (!node) return NULL;
    node->type = type;
    node->id = id;
    node->index = list->count;
    list->node[list->count++] = node;
    return node;
}

struct tt_topo_node *tt_topo_node_find(const struct tt_topo_system *system, enum tt_topo_type type,
                                       uint64_t id)
{
    const struct tt_topo_list *list = &system->list[type];
    for (int k = 0; k < list->count; k++) {
        if (list->node[k]->id == id) return list->node[k];
    }
    return NULL;
}

static void node_free(struct tt_topo_node *node)
{
    free(node->links);
    free(node->name);
    free(node);
}

void tt_topo_node_drop(struct tt_topo_system *system, struct tt_topo_node *node)
{
    struct tt_topo_list *list = &system->list[node->type];
    list->count--;
    for (int k = node->index; k < list->count; k++) {
        list->node[k] = list->node[k + 1];
        list->node[k]->index = k;
    }
    node_free(node);
}

/* `count`: how many nodes of that type the paths lead to. */
static void paths_drop(struct tt_topo_node *node, int type, int count)
{
    for (int p = 0; node->paths[type] && p < count; p++)
        free(node->paths[type][p].links);
    free(node->paths[type]);
    node->paths[type] = NULL;
}

void tt_topo_paths_drop(struct tt_topo_system *system)
{
    for (int type = 0; type < TT_NODE_COUNT_; type++) {
        for (int k = 0; k < system->list[type].count; k++) {
            for (int to = 0; to < TT_NODE_COUNT_; to++)
                paths_drop(system->list[type].node[k], to, system->list[to].count);
        }
    }
}

void tt_topo_gpu_drop(struct tt_topo_system *system, struct tt_topo_node *gpu)
{
    struct tt_topo_node *dev = gpu->dev;
    tt_topo_paths_drop(system);
    int kept = 0;
    for (int k = 0; k < dev->nlinks; k++) {
        if (dev->links[k].peer != gpu) dev->links[kept++] = dev->links[k];
    }
    dev->nlinks = kept;
    tt_topo_node_drop(system, gpu);
}

struct tt_topo_link *tt_topo_link_back(const struct tt_topo_node *node,
                                       const struct tt_topo_link *link)
{
    for (int k = 0; k < link->peer->nlinks; k++) {
        struct tt_topo_link *back = &link->peer->links[k];
        if (back->peer == node && back->type == link->type) return back;
    }
    return NULL;
}

/* Move link number k towards the front, past all links of strictly smaller bandwidth. */
static void sort_link(struct tt_topo_node *node, int k)
{
    struct tt_topo_link moved = node->links[k];
    while (k > 0 && node->links[k - 1].bw < moved.bw) {
        node->links[k] = node->links[k - 1];
        k--;
    }
    node->links[k] = moved;
}

bool tt_topo_link_add(struct tt_topo_node *from, struct tt_topo_node *to, enum tt_path_type type,
                      float bw)
{
    int k = 0;
    while (k < from->nlinks && !(from->links[k].peer == to && from->links[k].type == type)) {
        k++;
    }
    if (k == TT_TOPO_LINKS) return false;
    if (k == from->capacity) {
        int capacity = from->capacity ? 2 * from->capacity : 8;
        struct tt_topo_link *grown =
            realloc(from->links, (size_t)capacity * sizeof(struct tt_topo_link));
        if (!grown) return false;
        from->links = grown;
        from->capacity = capacity;
    }
    if (k == from->nlinks) {
        from->links[k] = (struct tt_topo_link){.type = type, .peer = to};
        from->nlinks++;
    }
    from->links[k].bw += bw;
    sort_link(from, k);
    return true;
}

bool tt_topo_link_both(struct tt_topo_node *a, struct tt_topo_node *b, enum tt_path_type type,
                       float bw)
{
    return tt_topo_link_add(a, b, type, bw) && tt_topo_link_add(b, a, type, bw);
}

ncclResult_t tt_topo_too_large(const struct tt_topo_system *system)
{
    static const char limit[] = "NCCL's limit for a machine, or for an NVLink domain of hosts";
    for (int type = 0; type < TT_NODE_COUNT_; type++) {
        const struct tt_topo_list *list = &system->list[type];
        for (int k = 0; k < list->count; k++) {
            if (list->node[k]->nlinks < TT_TOPO_LINKS) continue;
            return tt_fail(ncclInvalidUsage, "topology: too large: more than %d links of %s/%d, %s",
                           TT_TOPO_LINKS, type_names[type], k, limit);
        }
    }
    for (int type = 0; type < TT_NODE_COUNT_; type++) {
        if (system->list[type].count < TT_TOPO_NODES) continue;
        return tt_fail(ncclInvalidUsage,
                       "topology: too large: more than %d %s nodes (with host %d of it), %s",
                       TT_TOPO_NODES, type_names[type], system->nhosts, limit);
    }
    if ((size_t)system->nhosts == TT_LEN(system->hosts)) {
        return tt_fail(ncclInvalidUsage, "topology: too large: more than %zu hosts, %s",
                       TT_LEN(system->hosts), limit);
    }
    return tt_fail(ncclSystemError, "topology: out of memory");
}

void tt_topo_system_free(struct tt_topo_system *system)
{
    if (!system) return;
    tt_topo_paths_drop(system);
    for (int type = 0; type < TT_NODE_COUNT_; type++) {
        for (int k = 0; k < system->list[type].count; k++)
            node_free(system->list[type].node[k]);
        free(system->list[type].node);
    }
    free(system);
}
