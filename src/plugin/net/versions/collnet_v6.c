/* Version 6: as 7, with the properties of networks of version 6. */
#include "nccl/collnet_v6.h"

#include "plugin/net/collnet_abi.h"

#include <string.h>

_Static_assert(sizeof(ncclCollNet_v6_t) == sizeof(ncclCollNet_v7_t), "the same functions");

static ncclResult_t v6_device(struct tt_collnet_plugin *self, int dev,
                              struct tt_collnet_device *device)
{
    ncclNetProperties_v6_t props;
    const ncclCollNet_v6_t *table = self->object;
    memset(&props, 0, sizeof(props));
    ncclResult_t rc = table->getProperties(dev, &props);
    if (rc) return rc;
    *device = (struct tt_collnet_device){.name = props.name,
                                         .takes_host = props.ptrSupport & NCCL_PTR_HOST,
                                         .most_bytes = TT_COLLNET_UNKNOWN_BYTES};
    return ncclSuccess;
}

void tt_collnet_v6(struct tt_collnet_ops *ops)
{
    tt_collnet_v7(ops);
    ops->version = 6;
    ops->device = v6_device;
}
