/* Version 12, the newest: each function is the plugin's own. The other versions stand on it. */
#include "nccl/collnet_v12.h"

#include "plugin/net/collnet_abi.h"

#include <string.h>

static const ncclCollNet_v12_t *own(const struct tt_collnet_plugin *self)
{
    return self->table;
}

static ncclResult_t v12_init(struct tt_collnet_plugin *self, uint64_t comm_id,
                             ncclDebugLogger_t log, void **ctx)
{
    return own(self)->init(ctx, comm_id, log);
}

static void v12_adapt(struct tt_collnet_plugin *self)
{
    self->table = self->object;
}

static void v12_finalize(struct tt_collnet_plugin *self, void *ctx)
{
    if (own(self)->finalize) own(self)->finalize(ctx);
}

static ncclResult_t v12_devices(struct tt_collnet_plugin *self, int *ndev)
{
    return own(self)->devices(ndev);
}

static ncclResult_t v12_device(struct tt_collnet_plugin *self, int dev,
                               struct tt_collnet_device *device)
{
    ncclNetProperties_v12_t props;
    memset(&props, 0, sizeof(props));
    ncclResult_t rc = own(self)->getProperties(dev, &props);
    if (rc) return rc;
    *device = (struct tt_collnet_device){.name = props.name,
                                         .takes_host = props.ptrSupport & NCCL_PTR_HOST,
                                         .most_bytes = props.maxCollBytes};
    return ncclSuccess;
}

static ncclResult_t v12_listen(struct tt_collnet_plugin *self, void *ctx, int dev, void *handle,
                               void **listen_comm)
{
    return own(self)->listen(ctx, dev, handle, listen_comm);
}

static ncclResult_t v12_connect(struct tt_collnet_plugin *self, void *handles[], int nranks,
                                int rank, void *listen_comm, void **coll_comm)
{
    return own(self)->connect(handles, nranks, rank, listen_comm, coll_comm);
}

static ncclResult_t v12_reduce_support(struct tt_collnet_plugin *self, ncclDataType_t type,
                                       ncclRedOp_t op, int *supported)
{
    return own(self)->reduceSupport(type, op, supported);
}

static ncclResult_t v12_reg_mr(struct tt_collnet_plugin *self, void *coll_comm, void *data,
                               size_t bytes, void **mhandle)
{
    return own(self)->regMr(coll_comm, data, bytes, NCCL_PTR_HOST, mhandle);
}

static ncclResult_t v12_dereg_mr(struct tt_collnet_plugin *self, void *coll_comm, void *mhandle)
{
    return own(self)->deregMr(coll_comm, mhandle);
}

static ncclResult_t v12_gather(struct tt_collnet_plugin *self, void *coll_comm,
                               const struct tt_collnet_sum *sum, void **request)
{
    size_t bytes = sum->block_bytes * (size_t)sum->received_blocks;
    ncclNetSGE_v12_t all = {sum->recv_mhandle, sum->recv, bytes};
    return own(self)->iallgather(coll_comm, sum->send, 1, &all, sum->block_bytes, 0, bytes,
                                 sum->send_mhandle, request);
}

static ncclResult_t v12_scatter(struct tt_collnet_plugin *self, void *coll_comm,
                                const struct tt_collnet_sum *sum, void **request)
{
    size_t bytes = sum->block_bytes * (size_t)sum->sent_blocks;
    ncclNetSGE_v12_t all = {sum->send_mhandle, sum->send, bytes};
    return own(self)->ireducescatter(coll_comm, 1, &all, sum->recv, sum->block_bytes, 0, bytes,
                                     sum->type, sum->op, sum->recv_mhandle, request);
}

static ncclResult_t v12_reduce(struct tt_collnet_plugin *self, void *coll_comm,
                               const struct tt_collnet_sum *sum, void **request)
{
    if (sum->received_blocks > 1) return v12_gather(self, coll_comm, sum, request);
    if (sum->sent_blocks > 1) return v12_scatter(self, coll_comm, sum, request);
    return own(self)->iallreduce(coll_comm, sum->send, sum->recv, sum->count, sum->type, sum->op,
                                 sum->send_mhandle, sum->recv_mhandle, request);
}

static bool v12_offers(struct tt_collnet_plugin *self, enum tt_collnet_kind kind)
{
    if (kind == TT_COLLNET_GATHER) return own(self)->iallgather != NULL;
    return kind == TT_COLLNET_SUM || own(self)->ireducescatter != NULL;
}

static ncclResult_t v12_test(struct tt_collnet_plugin *self, void *request, int *done)
{
    int bytes = 0;
    return own(self)->test(request, done, &bytes);
}

static ncclResult_t v12_close_coll(struct tt_collnet_plugin *self, void *coll_comm)
{
    return own(self)->closeColl(coll_comm);
}

static ncclResult_t v12_close_listen(struct tt_collnet_plugin *self, void *listen_comm)
{
    return own(self)->closeListen(listen_comm);
}

void tt_collnet_v12(struct tt_collnet_ops *ops)
{
    *ops = (struct tt_collnet_ops){
        .version = 12,
        .init = v12_init,
        .adapt = v12_adapt,
        .finalize = v12_finalize,
        .devices = v12_devices,
        .device = v12_device,
        .listen = v12_listen,
        .connect = v12_connect,
        .reduce_support = v12_reduce_support,
        .reg_mr = v12_reg_mr,
        .dereg_mr = v12_dereg_mr,
        .reduce = v12_reduce,
        .offers = v12_offers,
        .test = v12_test,
        .close_coll = v12_close_coll,
        .close_listen = v12_close_listen,
    };
}
