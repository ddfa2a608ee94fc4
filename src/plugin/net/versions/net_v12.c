/* Version 12, the newest: each function is the plugin's own. The other versions stand on it. */
#include "plugin/net/net_abi.h"

static const ncclNet_v12_t *own(const struct tt_net_plugin *self)
{
    return self->table;
}

static ncclResult_t v12_init(struct tt_net_plugin *self, const struct tt_net_start *start,
                             void **ctx)
{
    ncclNetCommConfig_v12_t config = {.trafficClass = start->traffic_class};
    return own(self)->init(ctx, start->comm_id, &config, start->log, start->profile);
}

static void v12_adapt(struct tt_net_plugin *self)
{
    self->table = self->object;
}

static ncclResult_t v12_finalize(struct tt_net_plugin *self, void *ctx)
{
    return own(self)->finalize ? own(self)->finalize(ctx) : ncclSuccess;
}

static ncclResult_t v12_devices(struct tt_net_plugin *self, int *ndev)
{
    return own(self)->devices(ndev);
}

static int v12_group_most(struct tt_net_plugin *self)
{
    return own(self)->makeVDevice ? NCCL_NET_MAX_DEVS_PER_NIC : 0;
}

static ncclResult_t v12_make_virtual(struct tt_net_plugin *self, ncclNetVDeviceProps_v12_t *members,
                                     int *dev_out)
{
    return own(self)->makeVDevice(dev_out, members);
}

static ncclResult_t v12_properties(struct tt_net_plugin *self, int dev,
                                   ncclNetProperties_v12_t *props)
{
    return own(self)->getProperties(dev, props);
}

static void v12_set_attr(struct tt_net_plugin *self, void *ctx, ncclNetAttr_v12_t *attr)
{
    if (own(self)->setNetAttr) own(self)->setNetAttr(ctx, attr); /* a hint: it cannot fail */
}

static ncclResult_t v12_listen(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                               void **listen_comm)
{
    return own(self)->listen(ctx, dev, handle, listen_comm);
}

/* No device takes part in the work of the network: the handle that could say so stays NULL. */
static ncclResult_t v12_connect(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                void **send_comm)
{
    ncclNetDeviceHandle_v12_t *offload = NULL;
    return own(self)->connect(ctx, dev, handle, send_comm, &offload);
}

static void v12_give_up(struct tt_net_plugin *self, const void *handle)
{
    (void)self, (void)handle; /* the ABI has no word for it */
}

static ncclResult_t v12_accept(struct tt_net_plugin *self, void *listen_comm, void **recv_comm)
{
    ncclNetDeviceHandle_v12_t *offload = NULL;
    return own(self)->accept(listen_comm, recv_comm, &offload);
}

static ncclResult_t v12_reg_mr(struct tt_net_plugin *self, void *comm, void *data, size_t bytes,
                               void **mhandle)
{
    return own(self)->regMr(comm, data, bytes, NCCL_PTR_HOST, mhandle);
}

static ncclResult_t v12_dereg_mr(struct tt_net_plugin *self, void *comm, void *mhandle)
{
    return own(self)->deregMr(comm, mhandle);
}

static ncclResult_t v12_isend(struct tt_net_plugin *self, void *send_comm,
                              const struct tt_net_part *part, void **request)
{
    return own(self)->isend(send_comm, part->data, part->bytes, part->tag, part->mhandle,
                            part->event, request);
}

/* The plugin gets arrays, which it may write to. */
static ncclResult_t v12_irecv_group(struct tt_net_plugin *self, void *recv_comm,
                                    const struct tt_net_part *parts, int count, void **request)
{
    void *data[TT_NET_GROUP], *mhandles[TT_NET_GROUP], *events[TT_NET_GROUP];
    size_t bytes[TT_NET_GROUP];
    int tags[TT_NET_GROUP];
    for (int i = 0; i < count; i++) {
        data[i] = parts[i].data;
        bytes[i] = parts[i].bytes;
        tags[i] = parts[i].tag;
        mhandles[i] = parts[i].mhandle;
        events[i] = parts[i].event;
    }
    return own(self)->irecv(recv_comm, count, data, bytes, tags, mhandles, events, request);
}

static ncclResult_t v12_irecv(struct tt_net_plugin *self, void *recv_comm,
                              const struct tt_net_part *part, void **request)
{
    return v12_irecv_group(self, recv_comm, part, 1, request);
}

static ncclResult_t v12_test(struct tt_net_plugin *self, void *request, int *done, int *bytes)
{
    return own(self)->test(request, done, bytes);
}

static void v12_consumed(struct tt_net_plugin *self, void *recv_comm, int count, void *request)
{
    if (own(self)->irecvConsumed) own(self)->irecvConsumed(recv_comm, count, request);
}

static ncclResult_t v12_close_send(struct tt_net_plugin *self, void *send_comm)
{
    return own(self)->closeSend(send_comm);
}

static ncclResult_t v12_close_recv(struct tt_net_plugin *self, void *recv_comm)
{
    return own(self)->closeRecv(recv_comm);
}

static ncclResult_t v12_close_listen(struct tt_net_plugin *self, void *listen_comm)
{
    return own(self)->closeListen(listen_comm);
}

void tt_net_v12(struct tt_net_ops *ops)
{
    *ops = (struct tt_net_ops){
        .version = 12,
        .init = v12_init,
        .adapt = v12_adapt,
        .finalize = v12_finalize,
        .devices = v12_devices,
        .group_most = v12_group_most,
        .make_virtual = v12_make_virtual,
        .properties = v12_properties,
        .set_attr = v12_set_attr,
        .listen = v12_listen,
        .connect = v12_connect,
        .give_up = v12_give_up,
        .accept = v12_accept,
        .reg_mr = v12_reg_mr,
        .dereg_mr = v12_dereg_mr,
        .isend = v12_isend,
        .irecv = v12_irecv,
        .irecv_group = v12_irecv_group,
        .test = v12_test,
        .consumed = v12_consumed,
        .close_send = v12_close_send,
        .close_recv = v12_close_recv,
        .close_listen = v12_close_listen,
    };
}
