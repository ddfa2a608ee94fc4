/* Version 2: as 3, but of a device only its path and the types of memory are known. The functions
 * are copied to the places that version 4 has. */
#include "nccl/net_v2.h"

#include "plugin/net/net_abi.h"

#include <stdio.h>

enum {
    UNKNOWN_MBPS = 10000, /* what the built-in says of an interface without a speed */
    UNKNOWN_COMMS = 65536,
};

static void v2_adapt(struct tt_net_plugin *self)
{
    const ncclNet_v2_t *old = self->object;
    self->old->v4 = (ncclNet_v4_t){
        .name = old->name,
        .init = old->init,
        .devices = old->devices,
        .listen = old->listen,
        .connect = old->connect,
        .accept = old->accept,
        .regMr = old->regMr,
        .deregMr = old->deregMr,
        .isend = old->isend,
        .irecv = old->irecv,
        .test = old->test,
        .closeSend = old->closeSend,
        .closeRecv = old->closeRecv,
        .closeListen = old->closeListen,
    };
    tt_net_adapt_v4(self);
    for (int dev = 0; dev < TT_NET_NAMES; dev++) /* devices have none of their own */
        snprintf(self->old->names[dev], sizeof(self->old->names[dev]), "%.40s%d", old->name, dev);
}

static ncclResult_t v2_properties(struct tt_net_plugin *self, int dev,
                                  ncclNetProperties_v12_t *props)
{
    const ncclNet_v2_t *own = self->object;
    tt_net_default_properties(dev, props);
    props->name = self->old->names[dev < TT_NET_NAMES ? dev : TT_NET_NAMES - 1];
    props->guid = (uint64_t)dev;
    props->speed = UNKNOWN_MBPS;
    props->maxComms = UNKNOWN_COMMS;
    ncclResult_t rc = own->pciPath(dev, &props->pciPath);
    if (rc) props->pciPath = NULL; /* a device that is nowhere in /sys */
    return own->ptrSupport(dev, &props->ptrSupport);
}

void tt_net_v2(struct tt_net_ops *ops)
{
    tt_net_v3(ops);
    ops->version = 2;
    ops->adapt = v2_adapt;
    ops->properties = v2_properties;
}
