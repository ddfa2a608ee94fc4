/* Version 6: as 7, but devices take no part, and no call reports that a receive was used up. accept
 * has a thread of its own, because there are plugins in which it waits. */
#include "nccl/net_v6.h"

#include "plugin/net/net_abi.h"

#include <string.h>

static const ncclNet_v6_t *own(const struct tt_net_plugin *self)
{
    return self->table;
}

static ncclResult_t v6_properties(struct tt_net_plugin *self, int dev,
                                  ncclNetProperties_v12_t *props)
{
    ncclNetProperties_v6_t old;
    memset(&old, 0, sizeof(old));
    ncclResult_t rc = own(self)->getProperties(dev, &old);
    if (rc) return rc;
    tt_net_default_properties(dev, props);
    props->name = old.name;
    props->pciPath = old.pciPath;
    props->guid = old.guid;
    props->ptrSupport = old.ptrSupport;
    props->speed = old.speed;
    props->port = old.port;
    props->latency = old.latency;
    props->maxComms = old.maxComms;
    props->maxRecvs = old.maxRecvs;
    return ncclSuccess;
}

static ncclResult_t v6_connect(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                               void **send_comm)
{
    (void)ctx;
    return own(self)->connect(dev, handle, send_comm);
}

void tt_net_v6(struct tt_net_ops *ops)
{
    tt_net_v7(ops);
    ops->version = 6;
    ops->properties = v6_properties;
    ops->connect = v6_connect;
    ops->listen = tt_net_blocking_listen;
    ops->accept = tt_net_blocking_accept;
    ops->close_listen = tt_net_blocking_close_listen;
    ops->consumed = NULL; /* came with version 7 */
}
