/* Which ranks may reach which, and by which NIC. All questions are answered from the paths as they
 * are at that moment, because some are asked while paths are still being diverted. Source: spec
 * topology, sections 3.3 to 3.6. */
#include "access.h"

#include "base/mem.h"

/* ---- nearest nodes ---- */

int tt_topo_local(const struct tt_topo_system *system, const struct tt_topo_node *node,
                  enum tt_topo_type type, struct tt_topo_node **local)
{
    const struct tt_topo_list *list = &system->list[type];
    float bw = 0;
    enum tt_path_type best = TT_PATH_DIS;
    int count = 0;
    for (int k = 0; k < list->count; k++) {
        const struct tt_topo_path *path = &node->paths[type][k];
        bool better = path->bw > bw || (path->bw == bw && path->type < best);
        if (better) {
            bw = path->bw;
            best = path->type;
            count = 0;
        }
        bool equal = path->bw == bw && path->type == best;
        if (equal && best != TT_PATH_DIS) local[count++] = list->node[k];
    }
    return count;
}

struct tt_topo_node *tt_topo_local_cpu(const struct tt_topo_system *system,
                                       const struct tt_topo_node *gpu)
{
    const struct tt_topo_list *cpus = &system->list[TT_NODE_CPU];
    struct tt_topo_node *best = NULL;
    for (int k = 0; k < cpus->count; k++) {
        const struct tt_topo_path *path = tt_topo_path(gpu, cpus->node[k]);
        const struct tt_topo_path *old = best ? tt_topo_path(gpu, best) : NULL;
        bool better = !old || path->bw > old->bw ||
                      (path->bw == old->bw && path->type < old->type) ||
                      (path->bw == old->bw && path->type == old->type && path->hops < old->hops);
        if (better) best = cpus->node[k];
    }
    return best;
}

/* ---- NICs ---- */

static int reverse_bits(int value, int count)
{
    int reversed = 0;
    for (int bit = 1; bit < count; bit <<= 1) {
        reversed = reversed << 1 | (value & 1);
        value >>= 1;
    }
    return reversed;
}

static int nets_per_gpu(const struct tt_topo_env *env, int nnets, int ngpus)
{
    if (env->netdevs_policy < 0) return nnets;
    if (env->netdevs_policy > 0) return env->netdevs_policy < nnets ? env->netdevs_policy : nnets;
    return ngpus ? (nnets + ngpus - 1) / ngpus : nnets;
}

struct rotation { /* a GPU's NICs: channel c uses net[(first + c mod step) mod count] */
    struct tt_topo_node *net[TT_TOPO_NODES];
    int count, first, step;
};

static void rotation_of(const struct tt_topo_system *system, const struct tt_topo_node *gpu,
                        struct rotation *rotation)
{
    struct tt_topo_node *gpus[TT_TOPO_NODES];
    rotation->count = tt_topo_local(system, gpu, TT_NODE_NET, rotation->net);
    if (rotation->count == 0) return;
    int ngpus = tt_topo_local(system, rotation->net[0], TT_NODE_GPU, gpus);
    int first = ngpus ? gpu->dev_number % ngpus : 0;
    bool power_of_two = (rotation->count & (rotation->count - 1)) == 0;
    if (power_of_two) first = reverse_bits(first, rotation->count);
    rotation->first = first;
    rotation->step = nets_per_gpu(&system->env, rotation->count, ngpus);
}

struct tt_topo_node *tt_topo_net_of(const struct tt_topo_system *system,
                                    const struct tt_topo_node *gpu, int channel)
{
    struct rotation rotation;
    rotation_of(system, gpu, &rotation);
    if (rotation.count == 0) return NULL;
    return rotation.net[(rotation.first + channel % rotation.step) % rotation.count];
}

/* First channel for which the GPU uses the NIC; TT_MAX_CHANNELS: none. */
static int first_channel(const struct tt_topo_system *system, const struct tt_topo_node *gpu,
                         const struct tt_topo_node *net)
{
    struct rotation rotation;
    rotation_of(system, gpu, &rotation);
    for (int k = 0; k < rotation.count; k++) {
        if (rotation.net[k] != net) continue;
        int channel = (k - rotation.first % rotation.count + rotation.count) % rotation.count;
        return channel < rotation.step && channel < TT_MAX_CHANNELS ? channel : TT_MAX_CHANNELS;
    }
    return TT_MAX_CHANNELS;
}

struct tt_topo_node *tt_topo_gpu_of(const struct tt_topo_system *system,
                                    const struct tt_topo_node *net)
{
    struct tt_topo_node *gpus[TT_TOPO_NODES];
    int count = tt_topo_local(system, net, TT_NODE_GPU, gpus);
    struct tt_topo_node *best = NULL;
    int best_channel = TT_MAX_CHANNELS;
    for (int k = 0; k < count && best_channel > 0; k++) {
        int channel = first_channel(system, gpus[k], net);
        if (channel >= best_channel) continue;
        best = gpus[k];
        best_channel = channel;
    }
    return best;
}

/* ---- between GPUs ---- */

/* The GPU in the middle of a path over two NVLinks. */
static const struct tt_topo_node *relay_between(const struct tt_topo_system *system,
                                                const struct tt_topo_path *path)
{
    if (path->hops != 4) return NULL;
    const struct tt_topo_node *middle = path->links[1]->peer;
    if (middle->type != TT_NODE_DEV) return NULL;
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    for (int k = 0; k < gpus->count; k++) {
        if (gpus->node[k]->dev == middle) return gpus->node[k];
    }
    return NULL;
}

static int p2p_level(const struct tt_topo_system *system)
{
    const struct tt_topo_list *cpus = &system->list[TT_NODE_CPU];
    if (system->env.p2p_level >= 0) return system->env.p2p_level;
    bool amd =
        cpus->count && cpus->node[0]->arch == TT_ARCH_X86 && cpus->node[0]->vendor == TT_VENDOR_AMD;
    return amd && system->list[TT_NODE_DEV].count <= 2 ? TT_PATH_SYS : TT_PATH_PXB;
}

struct tt_topo_p2p tt_topo_p2p_check(const struct tt_topo_system *system,
                                     const struct tt_topo_node *from, const struct tt_topo_node *to)
{
    const struct tt_topo_path *path = tt_topo_path(from, to);
    struct tt_topo_p2p answer = {.allowed = (int)path->type <= p2p_level(system)};
    answer.relay = relay_between(system, path);
    answer.read = path->type == TT_PATH_NVL && from->cc == 80 && to->cc == 80;
    return answer;
}

static float best_net_bw(const struct tt_topo_system *system, const struct tt_topo_node *gpu)
{
    const struct tt_topo_list *nets = &system->list[TT_NODE_NET];
    float best = 0;
    for (int k = 0; k < nets->count; k++) {
        const struct tt_topo_path *path = tt_topo_path(gpu, nets->node[k]);
        if (path->type <= TT_PATH_PXB && path->bw > best) best = path->bw;
    }
    return best;
}

bool tt_topo_prefers_net(const struct tt_topo_system *system, const struct tt_topo_node *a,
                         const struct tt_topo_node *b)
{
    if (system->env.net_disable_intra) return false;
    float bw = tt_topo_path(a, b)->bw;
    return best_net_bw(system, a) > bw && best_net_bw(system, b) > bw;
}

/* ---- GPU-direct ---- */

static bool may_send_direct(const struct tt_topo_system *system, const struct tt_topo_node *gpu)
{
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    if (system->env.net_gdr_read == 0) return false;
    if (system->env.net_gdr_read > 0 || gpu->cc >= 80) return true;
    bool linked = gpus->count == 1;
    for (int k = 0; k < gpus->count && !linked; k++) {
        linked = gpus->node[k] != gpu && tt_topo_path(gpu, gpus->node[k])->type == TT_PATH_NVL;
    }
    return linked;
}

const struct tt_topo_node *tt_topo_relay_of(const struct tt_topo_system *system,
                                            const struct tt_topo_node *gpu,
                                            const struct tt_topo_node *net)
{
    const struct tt_topo_path *path = tt_topo_path(gpu, net);
    const struct tt_topo_list *gpus = &system->list[TT_NODE_GPU];
    if (path->type != TT_PATH_PXN) return gpu;
    int k = 1; /* links[0] leads to the own device */
    while (k < path->hops && path->links[k]->peer->type == TT_NODE_NVS) {
        k++;
    }
    for (int g = 0; k < path->hops && g < gpus->count; g++) {
        if (gpus->node[g]->dev == path->links[k]->peer) return gpus->node[g];
    }
    return gpu;
}

bool tt_topo_gdr_check(const struct tt_topo_system *system, const struct tt_topo_node *gpu,
                       const struct tt_topo_node *net, bool sending)
{
    if (!gpu->gdr || !net->gdr) return false;
    if (gpu->is_part && !system->env.gdr_parts) return false;
    if (sending && !may_send_direct(system, gpu)) return false;
    int level = system->env.net_gdr_c2c ? TT_PATH_P2C : TT_PATH_PXB;
    if (system->env.net_gdr_level >= 0) level = system->env.net_gdr_level;
    const struct tt_topo_node *near = tt_topo_relay_of(system, gpu, net);
    return (int)tt_topo_path(near, net)->type <= level;
}
