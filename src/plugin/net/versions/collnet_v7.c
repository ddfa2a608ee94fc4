/* Version 7: as 8 without iallgather and ireducescatter, so what follows them stands two places
 * earlier, and the size of a registration is an int. The functions are copied to the places that
 * version 8 has, but for those of another type. */
#include "nccl/collnet_v7.h"

#include "plugin/net/collnet_abi.h"

#include <string.h>

static const ncclCollNet_v7_t *own(const struct tt_collnet_plugin *self)
{
    return &self->old->v7;
}

void tt_collnet_adapt_v7(struct tt_collnet_plugin *self)
{
    const ncclCollNet_v7_t *old = own(self);
    self->old->v8 = (ncclCollNet_v8_t){
        .name = old->name,
        .init = old->init,
        .devices = old->devices,
        .listen = old->listen,
        .connect = old->connect,
        .reduceSupport = old->reduceSupport,
        .deregMr = old->deregMr,
        .iallreduce = old->iallreduce,
        .test = old->test,
        .closeColl = old->closeColl,
        .closeListen = old->closeListen,
    };
    self->table = &self->old->v8;
}

static void v7_adapt(struct tt_collnet_plugin *self)
{
    const ncclCollNet_v7_t *exported = self->object;
    self->old->v7 = *exported;
    tt_collnet_adapt_v7(self);
}

static ncclResult_t v7_device(struct tt_collnet_plugin *self, int dev,
                              struct tt_collnet_device *device)
{
    ncclNetProperties_v7_t props;
    memset(&props, 0, sizeof(props));
    ncclResult_t rc = own(self)->getProperties(dev, &props);
    if (rc) return rc;
    *device = (struct tt_collnet_device){.name = props.name,
                                         .takes_host = props.ptrSupport & NCCL_PTR_HOST,
                                         .most_bytes = TT_COLLNET_UNKNOWN_BYTES};
    return ncclSuccess;
}

static ncclResult_t v7_reg_mr(struct tt_collnet_plugin *self, void *coll_comm, void *data,
                              size_t bytes, void **mhandle)
{
    int narrow = 0;
    ncclResult_t rc = tt_collnet_narrow(self, "regMr", bytes, &narrow);
    if (rc) return rc;
    return own(self)->regMr(coll_comm, data, narrow, NCCL_PTR_HOST, mhandle);
}

void tt_collnet_v7(struct tt_collnet_ops *ops)
{
    tt_collnet_v8(ops);
    ops->version = 7;
    ops->adapt = v7_adapt;
    ops->device = v7_device;
    ops->reg_mr = v7_reg_mr;
}
