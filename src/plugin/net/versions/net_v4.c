/* Version 4: as 5, but connect and accept wait for the other end, handles have 64 bytes, and
 * messages have no tags and come one by one. */
#include "nccl/net_v4.h"

#include "plugin/net/net_abi.h"

#include <string.h>

static const ncclNet_v4_t *own(const struct tt_net_plugin *self)
{
    return &self->old->v4;
}

void tt_net_adapt_v4(struct tt_net_plugin *self)
{
    const ncclNet_v4_t *old = own(self);
    self->old->v6 = (ncclNet_v6_t){
        .name = old->name,
        .init = old->init,
        .devices = old->devices,
        .listen = old->listen,
        .connect = old->connect,
        .accept = old->accept,
        .regMr = old->regMr,
        .deregMr = old->deregMr,
        .test = old->test,
        .closeSend = old->closeSend,
        .closeRecv = old->closeRecv,
        .closeListen = old->closeListen,
    };
    self->table = &self->old->v6;
}

static void v4_adapt(struct tt_net_plugin *self)
{
    const ncclNet_v4_t *exported = self->object;
    self->old->v4 = *exported;
    tt_net_adapt_v4(self);
}

static ncclResult_t v4_properties(struct tt_net_plugin *self, int dev,
                                  ncclNetProperties_v12_t *props)
{
    ncclNetProperties_v4_t old;
    memset(&old, 0, sizeof(old));
    ncclResult_t rc = own(self)->getProperties(dev, &old);
    if (rc) return rc;
    tt_net_default_properties(dev, props);
    props->name = old.name;
    props->pciPath = old.pciPath;
    props->guid = old.guid;
    props->ptrSupport = old.ptrSupport;
    props->speed = old.speed;
    props->port = old.port;
    props->maxComms = old.maxComms;
    return ncclSuccess;
}

static ncclResult_t v4_isend(struct tt_net_plugin *self, void *send_comm,
                             const struct tt_net_part *part, void **request)
{
    int bytes = 0;
    ncclResult_t rc = tt_net_narrow(self, "isend", part->bytes, &bytes);
    if (rc) return rc;
    return own(self)->isend(send_comm, part->data, bytes, part->mhandle, request);
}

static ncclResult_t v4_irecv(struct tt_net_plugin *self, void *recv_comm,
                             const struct tt_net_part *part, void **request)
{
    int bytes = 0;
    ncclResult_t rc = tt_net_narrow(self, "irecv", part->bytes, &bytes);
    if (rc) return rc;
    return own(self)->irecv(recv_comm, part->data, bytes, part->mhandle, request);
}

void tt_net_v4(struct tt_net_ops *ops)
{
    tt_net_v5(ops);
    ops->version = 4;
    ops->adapt = v4_adapt;
    ops->properties = v4_properties;
    ops->connect = tt_net_blocking_connect;
    ops->give_up = tt_net_blocking_give_up;
    ops->isend = v4_isend;
    ops->irecv = v4_irecv;
    ops->irecv_group = NULL;
}
