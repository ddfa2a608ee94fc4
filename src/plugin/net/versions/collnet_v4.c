/* Version 4: as 5, with the properties of networks of version 4, and handles of 64 bytes. */
#include "nccl/collnet_v4.h"

#include "nccl/collnet_v5.h"
#include "plugin/net/collnet_abi.h"

#include <string.h>

_Static_assert(sizeof(ncclCollNet_v4_t) == sizeof(ncclCollNet_v5_t), "the same functions");

static ncclResult_t v4_device(struct tt_collnet_plugin *self, int dev,
                              struct tt_collnet_device *device)
{
    ncclNetProperties_v4_t props;
    const ncclCollNet_v4_t *table = self->object;
    memset(&props, 0, sizeof(props));
    ncclResult_t rc = table->getProperties(dev, &props);
    if (rc) return rc;
    *device = (struct tt_collnet_device){.name = props.name,
                                         .takes_host = props.ptrSupport & NCCL_PTR_HOST,
                                         .most_bytes = TT_COLLNET_UNKNOWN_BYTES};
    return ncclSuccess;
}

void tt_collnet_v4(struct tt_collnet_ops *ops)
{
    tt_collnet_v5(ops);
    ops->version = 4;
    ops->device = v4_device;
}
