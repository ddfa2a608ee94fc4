/* Version 5: as 6 without regMrDmaBuf, so what follows it stands one place earlier. */
#include "nccl/collnet_v5.h"

#include "plugin/net/collnet_abi.h"

#include <string.h>

static const ncclCollNet_v5_t *own(const struct tt_collnet_plugin *self)
{
    return self->object;
}

static void v5_adapt(struct tt_collnet_plugin *self)
{
    const ncclCollNet_v5_t *old = own(self);
    self->old->v7 = (ncclCollNet_v7_t){
        .name = old->name,
        .init = old->init,
        .devices = old->devices,
        .listen = old->listen,
        .connect = old->connect,
        .reduceSupport = old->reduceSupport,
        .regMr = old->regMr,
        .deregMr = old->deregMr,
        .iallreduce = old->iallreduce,
        .test = old->test,
        .closeColl = old->closeColl,
        .closeListen = old->closeListen,
    };
    tt_collnet_adapt_v7(self);
}

static ncclResult_t v5_device(struct tt_collnet_plugin *self, int dev,
                              struct tt_collnet_device *device)
{
    ncclNetProperties_v6_t props;
    memset(&props, 0, sizeof(props));
    ncclResult_t rc = own(self)->getProperties(dev, &props);
    if (rc) return rc;
    *device = (struct tt_collnet_device){.name = props.name,
                                         .takes_host = props.ptrSupport & NCCL_PTR_HOST,
                                         .most_bytes = TT_COLLNET_UNKNOWN_BYTES};
    return ncclSuccess;
}

void tt_collnet_v5(struct tt_collnet_ops *ops)
{
    tt_collnet_v6(ops);
    ops->version = 5;
    ops->adapt = v5_adapt;
    ops->device = v5_device;
}
