/* Version 9: as 10, with the properties of networks of version 9. */
#include "nccl/collnet_v9.h"

#include "nccl/collnet_v10.h"
#include "plugin/net/collnet_abi.h"

#include <string.h>

_Static_assert(sizeof(ncclCollNet_v9_t) == sizeof(ncclCollNet_v10_t), "the same functions");

static ncclResult_t v9_device(struct tt_collnet_plugin *self, int dev,
                              struct tt_collnet_device *device)
{
    ncclNetProperties_v9_t props;
    const ncclCollNet_v9_t *table = self->table;
    memset(&props, 0, sizeof(props));
    ncclResult_t rc = table->getProperties(dev, &props);
    if (rc) return rc;
    *device = (struct tt_collnet_device){.name = props.name,
                                         .takes_host = props.ptrSupport & NCCL_PTR_HOST,
                                         .most_bytes = props.maxCollBytes};
    return ncclSuccess;
}

void tt_collnet_v9(struct tt_collnet_ops *ops)
{
    tt_collnet_v10(ops);
    ops->version = 9;
    ops->device = v9_device;
}
