/* Version 8: as 9, but the size of a message is an int, and a device is always one device. */
#include "nccl/net_v8.h"

#include "plugin/net/net_abi.h"

#include <string.h>

static const ncclNet_v8_t *own(const struct tt_net_plugin *self)
{
    return self->table;
}

static ncclResult_t v8_properties(struct tt_net_plugin *self, int dev,
                                  ncclNetProperties_v12_t *props)
{
    ncclNetProperties_v8_t old;
    memset(&old, 0, sizeof(old));
    ncclResult_t rc = own(self)->getProperties(dev, &old);
    if (rc) return rc;
    tt_net_default_properties(dev, props);
    props->name = old.name;
    props->pciPath = old.pciPath;
    props->guid = old.guid;
    props->ptrSupport = old.ptrSupport;
    props->regIsGlobal = old.regIsGlobal;
    props->speed = old.speed;
    props->port = old.port;
    props->latency = old.latency;
    props->maxComms = old.maxComms;
    props->maxRecvs = old.maxRecvs;
    props->netDeviceType = old.netDeviceType;
    props->netDeviceVersion = old.netDeviceVersion;
    return ncclSuccess;
}

static ncclResult_t v8_isend(struct tt_net_plugin *self, void *send_comm,
                             const struct tt_net_part *part, void **request)
{
    int bytes = 0;
    ncclResult_t rc = tt_net_narrow(self, "isend", part->bytes, &bytes);
    if (rc) return rc;
    return own(self)->isend(send_comm, part->data, bytes, part->tag, part->mhandle, request);
}

static ncclResult_t v8_irecv_group(struct tt_net_plugin *self, void *recv_comm,
                                   const struct tt_net_part *parts, int count, void **request)
{
    void *data[TT_NET_GROUP], *mhandles[TT_NET_GROUP];
    int bytes[TT_NET_GROUP], tags[TT_NET_GROUP];
    ncclResult_t rc = ncclSuccess;
    for (int i = 0; i < count && !rc; i++) {
        rc = tt_net_narrow(self, "irecv", parts[i].bytes, &bytes[i]);
        data[i] = parts[i].data;
        tags[i] = parts[i].tag;
        mhandles[i] = parts[i].mhandle;
    }
    if (rc) return rc;
    return own(self)->irecv(recv_comm, count, data, bytes, tags, mhandles, request);
}

static ncclResult_t v8_irecv(struct tt_net_plugin *self, void *recv_comm,
                             const struct tt_net_part *part, void **request)
{
    return v8_irecv_group(self, recv_comm, part, 1, request);
}

static int v8_group_most(struct tt_net_plugin *self)
{
    (void)self; /* the ABI has no word for it */
    return 0;
}

void tt_net_v8(struct tt_net_ops *ops)
{
    tt_net_v9(ops);
    ops->version = 8;
    ops->properties = v8_properties;
    ops->group_most = v8_group_most;
    ops->isend = v8_isend;
    ops->irecv = v8_irecv;
    ops->irecv_group = v8_irecv_group;
}
