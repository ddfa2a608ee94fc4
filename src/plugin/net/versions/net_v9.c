/* Version 9: as 10, but neither a profiler nor a configuration reaches the library. */
#include "nccl/net_v9.h"

#include "nccl/net_v10.h"
#include "plugin/net/net_abi.h"

_Static_assert(sizeof(ncclNetProperties_v9_t) == sizeof(ncclNetProperties_v10_t) &&
                   offsetof(ncclNetProperties_v9_t, maxCollBytes) ==
                       offsetof(ncclNetProperties_v10_t, maxCollBytes) &&
                   offsetof(ncclNet_v9_t, makeVDevice) == offsetof(ncclNet_v10_t, makeVDevice),
               "as published: properties and virtual devices are those of version 10");

static const ncclNet_v9_t *own(const struct tt_net_plugin *self)
{
    return self->table;
}

static ncclResult_t v9_init(struct tt_net_plugin *self, const struct tt_net_start *start,
                            void **ctx)
{
    *ctx = NULL;
    return self->begun ? ncclSuccess : own(self)->init(start->log);
}

static ncclResult_t v9_finalize(struct tt_net_plugin *self, void *ctx)
{
    (void)self, (void)ctx; /* nothing was made */
    return ncclSuccess;
}

static ncclResult_t v9_connect(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                               void **send_comm)
{
    ncclNetDeviceHandle_v9_t *offload = NULL;
    (void)ctx;
    return own(self)->connect(dev, handle, send_comm, &offload);
}

static ncclResult_t v9_isend(struct tt_net_plugin *self, void *send_comm,
                             const struct tt_net_part *part, void **request)
{
    return own(self)->isend(send_comm, part->data, part->bytes, part->tag, part->mhandle, request);
}

static ncclResult_t v9_irecv_group(struct tt_net_plugin *self, void *recv_comm,
                                   const struct tt_net_part *parts, int count, void **request)
{
    void *data[TT_NET_GROUP], *mhandles[TT_NET_GROUP];
    size_t bytes[TT_NET_GROUP];
    int tags[TT_NET_GROUP];
    for (int i = 0; i < count; i++) {
        data[i] = parts[i].data;
        bytes[i] = parts[i].bytes;
        tags[i] = parts[i].tag;
        mhandles[i] = parts[i].mhandle;
    }
    return own(self)->irecv(recv_comm, count, data, bytes, tags, mhandles, request);
}

static ncclResult_t v9_irecv(struct tt_net_plugin *self, void *recv_comm,
                             const struct tt_net_part *part, void **request)
{
    return v9_irecv_group(self, recv_comm, part, 1, request);
}

void tt_net_v9(struct tt_net_ops *ops)
{
    tt_net_v10(ops);
    ops->version = 9;
    ops->init = v9_init;
    ops->finalize = v9_finalize;
    ops->connect = v9_connect;
    ops->isend = v9_isend;
    ops->irecv = v9_irecv;
    ops->irecv_group = v9_irecv_group;
}
