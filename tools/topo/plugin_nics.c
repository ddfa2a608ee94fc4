/* The NICs of a network plugin in a machine file, as a communicator that loads the plugin sees the
 * machine. The plugin runs in this process: what it crashes is the command. */
#include "machine.h"

#include "base/error.h"
#include "base/member.h"
#include "plugin/net/net.h"
#include "plugin/plugin.h"
#include "topo/file/complete.h"
#include "topo/file/nic.h"

#include <stdlib.h>
#include <string.h>

static bool put_nics(struct tt_topo_file *file, struct tt_net *net)
{
    struct tt_topo_nic *nics = calloc((size_t)net->ndevs, sizeof(*nics));
    struct tt_topo_local local = {.nics = nics};
    for (int dev = 0; nics && dev < net->ndevs; dev++) {
        ncclNetProperties_v12_t props;
        memset(&props, 0, sizeof(props));
        if (net->plugin->ops.properties(net->plugin, dev, &props) || !props.name) continue;
        nics[local.nnics++] = tt_topo_nic_of(dev, &props);
    }
    const struct tt_topo_joiner joiner = {net->plugin->ops.group_most(net->plugin),
                                          tt_net_virtual_of, net};
    const bool done = nics && tt_topo_complete(file, &local) == ncclSuccess &&
                      tt_topo_join(file, &joiner) == ncclSuccess;
    if (!nics) (void)fprintf(stderr, "tutti topo: no memory for the devices of a plugin\n");
    if (nics && !done) topo_print_error();
    free(nics);
    return done;
}

bool topo_take_nics(struct tt_topo_file *file, const char *plugin)
{
    const struct tt_member member = {.nranks = 1, .name = "topo"};
    struct tt_plugin_refusal refusal = {"it cannot be loaded, or is no network plugin"};
    const struct tt_net_request request = {
        .member = &member, .refusal = &refusal, .traffic_class = -1};
    struct tt_net *net = NULL;
    setenv("NCCL_NET_PLUGIN", plugin, 1);
    const bool taken = tt_net_open(&request, &net) == ncclSuccess && tt_net_library(net);
    if (!taken)
        (void)fprintf(stderr, "tutti topo: --net-plugin %s: not taken: %s\n", plugin, refusal.text);
    const bool done = taken && put_nics(file, net);
    tt_net_close(net);
    return done;
}
