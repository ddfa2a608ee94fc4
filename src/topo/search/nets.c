/* NICs in the order in which the search begins and ends channels at them: first what the GPUs
 * prefer, then by distance. Source: spec topology, section 6. */
#include "nets.h"

#include "base/mem.h"
#include "topo/graph/access.h"

#include <stdlib.h>

bool tt_net_lists_init(struct tt_net_lists *lists, const struct tt_topo_system *system)
{
    lists->rows = system->list[TT_NODE_GPU].count + 1;
    lists->width = system->list[TT_NODE_NET].count;
    lists->type = -1;
    lists->count = tt_calloc((size_t)lists->rows, sizeof(int));
    lists->net =
        tt_calloc((size_t)lists->rows * (size_t)lists->width + 1, sizeof(struct tt_topo_node *));
    return lists->count && lists->net;
}

void tt_net_lists_fini(struct tt_net_lists *lists)
{
    free(lists->count);
    free(lists->net);
}

static void put(struct tt_net_lists *lists, int row, struct tt_topo_node *net)
{
    struct tt_topo_node **nets = lists->net + (size_t)row * (size_t)lists->width;
    for (int k = 0; k < lists->count[row]; k++) {
        if (nets[k] == net) return;
    }
    nets[lists->count[row]++] = net;
}

/* The NIC of a GPU for a channel, NULL when this begins again with the first one. */
static struct tt_topo_node *preferred(const struct tt_topo_system *system, int gpu, int channel)
{
    const struct tt_topo_node *node = system->list[TT_NODE_GPU].node[gpu];
    struct tt_topo_node *net = tt_topo_net_of(system, node, channel);
    if (channel > 0 && net == tt_topo_net_of(system, node, 0)) return NULL;
    return net;
}

static void put_preferred(struct tt_net_lists *lists, const struct tt_topo_system *system)
{
    int all = lists->rows - 1;
    for (int g = 0; g < all; g++) {
        struct tt_topo_node *net = preferred(system, g, 0);
        for (int c = 1; net; c++) {
            put(lists, g, net);
            net = preferred(system, g, c);
        }
    }
    bool scattered = system->nhosts > 1 && system->env.scatter_nets;
    int most = 1;
    for (int c = 0; scattered && c < most; c++) {
        for (int g = 0; g < all; g++) { /* row g holds GPU g's channels in order */
            if (lists->count[g] > most) most = lists->count[g];
            if (c < lists->count[g]) put(lists, all, lists->net[g * lists->width + c]);
        }
    }
    for (int g = 0; !scattered && g < all; g++) {
        for (int c = 0; c < lists->count[g]; c++)
            put(lists, all, lists->net[g * lists->width + c]);
    }
}

static void put_at(struct tt_net_lists *lists, const struct tt_topo_system *system,
                   enum tt_path_type type)
{
    int limit = system->env.netdevs_policy;
    int all = lists->rows - 1;
    for (int g = 0; g < all; g++) {
        const struct tt_topo_node *gpu = system->list[TT_NODE_GPU].node[g];
        for (int n = 0; n < lists->width; n++) {
            struct tt_topo_node *net = system->list[TT_NODE_NET].node[n];
            if (tt_topo_path(gpu, net)->type != type) continue;
            if (limit <= 0 || lists->count[g] < limit) put(lists, g, net);
            if (limit <= 0 || lists->count[all] < limit * all) put(lists, all, net);
        }
    }
}

void tt_net_lists_fill(struct tt_net_lists *lists, const struct tt_topo_system *system,
                       enum tt_path_type type)
{
    if (lists->type == (int)type || lists->width == 0) return;
    lists->type = (int)type;
    for (int row = 0; row < lists->rows; row++)
        lists->count[row] = 0;
    put_preferred(lists, system);
    for (int at = 0; at <= (int)type; at++)
        put_at(lists, system, (enum tt_path_type)at);
}
