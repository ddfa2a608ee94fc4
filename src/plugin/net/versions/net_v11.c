/* Version 11: as 12, but a device says nothing of its rail and plane. */
#include "nccl/net_v11.h"

#include "base/mem.h"
#include "plugin/net/net_abi.h"

#include <string.h>

_Static_assert(sizeof(ncclNet_v11_t) == sizeof(ncclNet_v12_t), "the same functions");

static ncclResult_t v11_properties(struct tt_net_plugin *self, int dev,
                                   ncclNetProperties_v12_t *props)
{
    const ncclNet_v11_t *own = self->table;
    ncclNetProperties_v11_t old;
    memset(&old, 0, sizeof(old));
    ncclResult_t rc = own->getProperties(dev, &old);
    if (rc) return rc;
    tt_net_default_properties(dev, props);
    props->name = old.name;
    props->pciPath = old.pciPath;
    props->guid = old.guid;
    props->ptrSupport = old.ptrSupport;
    props->regIsGlobal = old.regIsGlobal;
    props->forceFlush = old.forceFlush;
    props->speed = old.speed;
    props->port = old.port;
    props->latency = old.latency;
    props->maxComms = old.maxComms;
    props->maxRecvs = old.maxRecvs;
    props->netDeviceType = old.netDeviceType;
    props->netDeviceVersion = old.netDeviceVersion;
    props->vProps.ndevs = old.vProps.ndevs <= 4 ? old.vProps.ndevs : 0; /* more: no number */
    memcpy(props->vProps.devs, old.vProps.devs, sizeof(old.vProps.devs));
    props->maxP2pBytes = old.maxP2pBytes;
    props->maxCollBytes = old.maxCollBytes;
    props->maxMultiRequestSize = old.maxMultiRequestSize;
    return ncclSuccess;
}

/* Versions 9 and 10 have the same function in the same place. */
static int v11_group_most(struct tt_net_plugin *self)
{
    const ncclNet_v11_t *own = self->table;
    return own->makeVDevice ? (int)TT_LEN(((ncclNetVDeviceProps_v11_t *)NULL)->devs) : 0;
}

static ncclResult_t v11_make_virtual(struct tt_net_plugin *self, ncclNetVDeviceProps_v12_t *members,
                                     int *dev_out)
{
    const ncclNet_v11_t *own = self->table;
    ncclNetVDeviceProps_v11_t old = {.ndevs = members->ndevs};
    if (members->ndevs > v11_group_most(self)) return ncclInvalidUsage;
    memcpy(old.devs, members->devs, sizeof(old.devs));
    return own->makeVDevice(dev_out, &old);
}

void tt_net_v11(struct tt_net_ops *ops)
{
    tt_net_v12(ops);
    ops->version = 11;
    ops->properties = v11_properties;
    ops->group_most = v11_group_most;
    ops->make_virtual = v11_make_virtual;
}
