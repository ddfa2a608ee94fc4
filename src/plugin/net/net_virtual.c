/* Devices that a network makes of several of its own (makeVDevice), when a machine's NICs are
 * joined. They are the process's, as the library is: made once, and numbered behind all others. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "plugin/net/net.h"
#include "plugin/process.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct tt_net_virtual {
    struct tt_net_virtual *next;
    ncclNetVDeviceProps_v12_t members;
    int dev, mbps;
};

/* In whatever order. */
static bool same_members(const ncclNetVDeviceProps_v12_t *a, const ncclNetVDeviceProps_v12_t *b)
{
    int common = 0;
    for (int i = 0; i < a->ndevs; i++) {
        for (int k = 0; k < b->ndevs; k++)
            common += a->devs[i] == b->devs[k];
    }
    return a->ndevs == b->ndevs && common == a->ndevs;
}

int tt_net_virtual_below(const struct tt_net_plugin *self, int ndevs)
{
    for (const struct tt_net_virtual *at = self->virtuals; at; at = at->next)
        if (at->dev < ndevs) ndevs = at->dev;
    return ndevs;
}

void tt_net_virtual_forget(struct tt_net_plugin *self)
{
    while (self->virtuals) {
        struct tt_net_virtual *first = self->virtuals;
        self->virtuals = first->next;
        free(first);
    }
}

/* Why the device that the network has made cannot be used; NULL: it can. */
static const char *judge(struct tt_net *net, const struct tt_net_virtual *made)
{
    ncclNetProperties_v12_t props;
    memset(&props, 0, sizeof(props));
    if (made->dev < net->ndevs) return "its number is that of another device";
    if (net->plugin->ops.properties(net->plugin, made->dev, &props)) return "it has no properties";
    if (!tt_net_size_fits(props.maxP2pBytes) || !tt_net_size_fits(props.maxCollBytes))
        return "its maxP2pBytes or maxCollBytes is not 1 byte to 1 TiB";
    return props.netDeviceType == NCCL_NET_DEVICE_HOST ? NULL : "it is not the host's";
}

/* Under the lock of all networks. NULL: refused. */
static struct tt_net_virtual *make(struct tt_net *net, const ncclNetVDeviceProps_v12_t *members)
{
    struct tt_net_plugin *plugin = net->plugin;
    ncclNetVDeviceProps_v12_t asked = *members; /* the plugin may write to it */
    ncclNetProperties_v12_t props;
    struct tt_net_virtual *made = tt_calloc(1, sizeof(*made));
    if (!made) return NULL;
    made->members = *members;
    made->dev = -1;
    ncclResult_t rc = plugin->ops.make_virtual(plugin, &asked, &made->dev);
    const char *why = rc ? tt_result_text(rc) : judge(net, made);
    if (why) {
        tt_info(TT_LOG_INIT | TT_LOG_NET,
                "NET/%s: no virtual device of %d devices from %d on: makeVDevice gave %d: %s",
                net->name, members->ndevs, members->devs[0], made->dev, why);
        free(made);
        return NULL;
    }
    memset(&props, 0, sizeof(props));
    if (!plugin->ops.properties(plugin, made->dev, &props)) made->mbps = props.speed;
    tt_info(TT_LOG_INIT | TT_LOG_NET,
            "NET/%s: virtual device %d of %d devices from %d on, %d Mbit/s", net->name, made->dev,
            members->ndevs, members->devs[0], made->mbps);
    made->next = plugin->virtuals;
    plugin->virtuals = made;
    return made;
}

bool tt_net_virtual(struct tt_net *net, const ncclNetVDeviceProps_v12_t *members, int *dev_out,
                    int *mbps_out)
{
    pthread_mutex_lock(&tt_plugins.nets.lock);
    struct tt_net_virtual *found = net->plugin->virtuals;
    while (found && !same_members(&found->members, members)) {
        found = found->next;
    }
    if (!found) found = make(net, members);
    if (found && found->dev >= net->nopen) net->nopen = found->dev + 1;
    if (found) *dev_out = found->dev;
    if (found) *mbps_out = found->mbps;
    pthread_mutex_unlock(&tt_plugins.nets.lock);
    return found != NULL;
}

bool tt_net_virtual_of(void *net, const int *devs, int count, int *dev_out, int *mbps_out)
{
    ncclNetVDeviceProps_v12_t members = {.ndevs = count};
    memcpy(members.devs, devs, (size_t)count * sizeof(*devs));
    return tt_net_virtual(net, &members, dev_out, mbps_out);
}
