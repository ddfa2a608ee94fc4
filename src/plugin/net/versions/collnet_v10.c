/* Version 10: as 11, but init comes once per process, and the library knows no
 * communicators. */
#include "nccl/collnet_v10.h"

#include "nccl/collnet_v12.h"
#include "plugin/net/collnet_abi.h"

#include <string.h>

_Static_assert(offsetof(ncclCollNet_v10_t, iallreduce) == offsetof(ncclCollNet_v12_t, iallreduce) &&
                   offsetof(ncclCollNet_v10_t, closeListen) ==
                       offsetof(ncclCollNet_v12_t, closeListen),
               "as published: functions that stay stand where version 12 has them");

static const ncclCollNet_v10_t *own(const struct tt_collnet_plugin *self)
{
    return self->table;
}

static ncclResult_t v10_init(struct tt_collnet_plugin *self, uint64_t comm_id,
                             ncclDebugLogger_t log, void **ctx)
{
    (void)comm_id;
    *ctx = NULL;
    return self->begun ? ncclSuccess : own(self)->init(log);
}

static void v10_finalize(struct tt_collnet_plugin *self, void *ctx)
{
    (void)self, (void)ctx; /* nothing was made */
}

static ncclResult_t v10_device(struct tt_collnet_plugin *self, int dev,
                               struct tt_collnet_device *device)
{
    ncclNetProperties_v10_t props;
    memset(&props, 0, sizeof(props));
    ncclResult_t rc = own(self)->getProperties(dev, &props);
    if (rc) return rc;
    *device = (struct tt_collnet_device){.name = props.name,
                                         .takes_host = props.ptrSupport & NCCL_PTR_HOST,
                                         .most_bytes = props.maxCollBytes};
    return ncclSuccess;
}

static ncclResult_t v10_listen(struct tt_collnet_plugin *self, void *ctx, int dev, void *handle,
                               void **listen_comm)
{
    (void)ctx;
    return own(self)->listen(dev, handle, listen_comm);
}

void tt_collnet_v10(struct tt_collnet_ops *ops)
{
    tt_collnet_v11(ops);
    ops->version = 10;
    ops->init = v10_init;
    ops->finalize = v10_finalize;
    ops->device = v10_device;
    ops->listen = v10_listen;
}
