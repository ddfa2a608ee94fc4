/* Version 7: as 8, but the size of a registration is an int, and it is good for its connection
 * alone. */
#include "nccl/net_v7.h"

#include "plugin/net/net_abi.h"

#include <string.h>

static const ncclNet_v7_t *own(const struct tt_net_plugin *self)
{
    return self->table;
}

static ncclResult_t v7_properties(struct tt_net_plugin *self, int dev,
                                  ncclNetProperties_v12_t *props)
{
    ncclNetProperties_v7_t old;
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
    props->netDeviceType = old.netDeviceType;
    props->netDeviceVersion = old.netDeviceVersion;
    return ncclSuccess;
}

static ncclResult_t v7_reg_mr(struct tt_net_plugin *self, void *comm, void *data, size_t bytes,
                              void **mhandle)
{
    int narrow = 0;
    ncclResult_t rc = tt_net_narrow(self, "regMr", bytes, &narrow);
    if (rc) return rc;
    return own(self)->regMr(comm, data, narrow, NCCL_PTR_HOST, mhandle);
}

void tt_net_v7(struct tt_net_ops *ops)
{
    tt_net_v8(ops);
    ops->version = 7;
    ops->properties = v7_properties;
    ops->reg_mr = v7_reg_mr;
}
