/* How many channels a communicator has, for collectives and for messages between two ranks.
 * Source: spec topology, sections 8.3 and 9.2. */
#include "layout.h"

#include "base/param.h"

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Channels up to `count` repeat the first ones. */
static void repeat(struct tt_topo_layout *layout, int count)
{
    int n = layout->nchannels;
    for (int c = n; c < count; c++) {
        layout->ring_of[c] = layout->ring_of[c - n];
        layout->tree_of[c] = layout->tree_of[c - n];
    }
    layout->nchannels = count;
}

/* Value of the first of these variables that says something, else `fallback`. */
static int limit_of(const char *newer, const char *older, int fallback)
{
    const char *const names[] = {newer, older};
    for (int k = 0; k < 2; k++) {
        int64_t value = names[k] ? tt_param_int(names[k]) : 0;
        if (value > 0) return value < TT_MAX_CHANNELS ? (int)value : TT_MAX_CHANNELS;
    }
    return fallback;
}

int tt_layout_limit(int requested, const char *variable, int fallback)
{
    if (requested > 0) return smaller(requested, TT_MAX_CHANNELS);
    return limit_of(variable, NULL, fallback);
}

void tt_layout_channels(struct tt_topo_layout *layout, const struct tt_topo_config *config,
                        int base)
{
    const struct tt_topo_graph *chain = &layout->graph[TT_GRAPH_CHAIN];
    bool several = layout->nnodes > 1;
    for (int c = base; c < smaller(2 * base, TT_MAX_CHANNELS); c++)
        layout->ring_of[c] = layout->ring_of[c - base]; /* trees have their second form there */
    layout->nchannels = smaller(2 * base, TT_MAX_CHANNELS);
    if (layout->collnet && chain->bw_intra > chain->bw_inter && layout->nranks > layout->nnodes) {
        repeat(layout, smaller(layout->nchannels * 3 / 2, TT_MAX_CHANNELS));
    }
    bool fast = layout->graph[TT_GRAPH_RING].bw_intra > 45 && layout->cc_least >= 90;
    if (fast && several && layout->nchannels < 16) repeat(layout, 2 * layout->nchannels);
    int most = smaller(limit_of("NCCL_MAX_NCHANNELS", "NCCL_MAX_NRINGS", TT_MAX_CHANNELS),
                       tt_layout_limit(config->ctas_most, "NCCL_MAX_CTAS", TT_MAX_CHANNELS));
    int by_count = limit_of("NCCL_MIN_NCHANNELS", "NCCL_MIN_NRINGS", 1);
    int by_ctas = tt_layout_limit(config->ctas_least, "NCCL_MIN_CTAS", 1);
    int least = by_count > by_ctas ? by_count : by_ctas;
    if (layout->nchannels > most) layout->nchannels = most;
    if (layout->nchannels < least) repeat(layout, least);
}

static int power_of_two(int value)
{
    int power = 1;
    while (power < value) {
        power *= 2;
    }
    return power;
}

void tt_layout_p2p_channels(struct tt_topo_layout *layout, const struct tt_topo_config *config,
                            int per_peer)
{
    int most = limit_of("NCCL_MAX_P2P_NCHANNELS", NULL, TT_MAX_CHANNELS);
    int least = limit_of("NCCL_MIN_P2P_NCHANNELS", NULL, 1);
    int64_t requested =
        config->p2p_peers > 0 ? config->p2p_peers : tt_param_int("NCCL_P2P_MAX_PEERS");
    int64_t peers = requested > 0 ? requested : layout->nranks;
    int channels = smaller(layout->nchannels, most);
    if (channels < least) channels = least;
    channels = power_of_two(channels);
    per_peer = power_of_two(per_peer);
    bool asked = config->net_peer_channels > 0 || tt_param_int("NCCL_NCHANNELS_PER_NET_PEER") > 0;
    if (layout->nnodes > 1 && !asked) {
        while (per_peer > 1 && per_peer * ((peers + 7) / 8) > channels) {
            per_peer /= 2;
        }
    } else {
        per_peer = smaller(per_peer, channels);
    }
    layout->p2p_channels = channels;
    layout->p2p_per_peer = per_peer;
}
