/* Version 8: as 9, but the number of elements is an int, and the size of a part has 32 bits. */
#include "nccl/collnet_v8.h"

#include "nccl/collnet_v9.h"
#include "plugin/net/collnet_abi.h"

#include <string.h>

_Static_assert(offsetof(ncclCollNet_v8_t, iallreduce) == offsetof(ncclCollNet_v9_t, iallreduce) &&
                   offsetof(ncclCollNet_v8_t, ireducescatter) ==
                       offsetof(ncclCollNet_v9_t, ireducescatter) &&
                   offsetof(ncclCollNet_v8_t, closeListen) ==
                       offsetof(ncclCollNet_v9_t, closeListen),
               "as published: functions that stay stand where version 9 has them");

static const ncclCollNet_v8_t *own(const struct tt_collnet_plugin *self)
{
    return self->table;
}

static ncclResult_t v8_device(struct tt_collnet_plugin *self, int dev,
                              struct tt_collnet_device *device)
{
    ncclNetProperties_v8_t props;
    memset(&props, 0, sizeof(props));
    ncclResult_t rc = own(self)->getProperties(dev, &props);
    if (rc) return rc;
    *device = (struct tt_collnet_device){.name = props.name,
                                         .takes_host = props.ptrSupport & NCCL_PTR_HOST,
                                         .most_bytes = TT_COLLNET_UNKNOWN_BYTES};
    return ncclSuccess;
}

static ncclResult_t v8_gather(struct tt_collnet_plugin *self, void *coll_comm,
                              const struct tt_collnet_sum *sum, void **request)
{
    int bytes = 0;
    ncclResult_t rc = tt_collnet_narrow(self, "iallgather",
                                        sum->block_bytes * (size_t)sum->received_blocks, &bytes);
    ncclNetSGE_v8_t all = {sum->recv_mhandle, sum->recv, (uint32_t)bytes};
    if (rc) return rc;
    return own(self)->iallgather(coll_comm, sum->send, 1, &all, sum->block_bytes, 0, all.size,
                                 sum->send_mhandle, request);
}

static ncclResult_t v8_scatter(struct tt_collnet_plugin *self, void *coll_comm,
                               const struct tt_collnet_sum *sum, void **request)
{
    int bytes = 0;
    ncclResult_t rc = tt_collnet_narrow(self, "ireducescatter",
                                        sum->block_bytes * (size_t)sum->sent_blocks, &bytes);
    ncclNetSGE_v8_t all = {sum->send_mhandle, sum->send, (uint32_t)bytes};
    if (rc) return rc;
    return own(self)->ireducescatter(coll_comm, 1, &all, sum->recv, sum->block_bytes, 0, all.size,
                                     sum->type, sum->op, sum->recv_mhandle, request);
}

static ncclResult_t v8_reduce(struct tt_collnet_plugin *self, void *coll_comm,
                              const struct tt_collnet_sum *sum, void **request)
{
    int count = 0;
    if (sum->received_blocks > 1) return v8_gather(self, coll_comm, sum, request);
    if (sum->sent_blocks > 1) return v8_scatter(self, coll_comm, sum, request);
    ncclResult_t rc = tt_collnet_narrow(self, "iallreduce", sum->count, &count);
    if (rc) return rc;
    return own(self)->iallreduce(coll_comm, sum->send, sum->recv, count, sum->type, sum->op,
                                 sum->send_mhandle, sum->recv_mhandle, request);
}

void tt_collnet_v8(struct tt_collnet_ops *ops)
{
    tt_collnet_v9(ops);
    ops->version = 8;
    ops->device = v8_device;
    ops->reduce = v8_reduce;
}
