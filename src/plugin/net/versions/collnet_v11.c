/* Version 11: as 12, with the properties of networks of version 11. */
#include "nccl/collnet_v11.h"

#include "nccl/collnet_v12.h"
#include "plugin/net/collnet_abi.h"

#include <string.h>

_Static_assert(sizeof(ncclCollNet_v11_t) == sizeof(ncclCollNet_v12_t), "the same functions");

static ncclResult_t v11_device(struct tt_collnet_plugin *self, int dev,
                               struct tt_collnet_device *device)
{
    ncclNetProperties_v11_t props;
    const ncclCollNet_v11_t *table = self->table;
    memset(&props, 0, sizeof(props));
    ncclResult_t rc = table->getProperties(dev, &props);
    if (rc) return rc;
    *device = (struct tt_collnet_device){.name = props.name,
                                         .takes_host = props.ptrSupport & NCCL_PTR_HOST,
                                         .most_bytes = props.maxCollBytes};
    return ncclSuccess;
}

void tt_collnet_v11(struct tt_collnet_ops *ops)
{
    tt_collnet_v12(ops);
    ops->version = 11;
    ops->device = v11_device;
}
