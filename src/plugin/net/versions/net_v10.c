/* Version 10: as 11, but init comes once per process, and the library knows no
 * communicators: connect gets the traffic class, which the context keeps meanwhile. */
#include "nccl/net_v10.h"

#include "base/error.h"
#include "base/mem.h"
#include "plugin/net/net_abi.h"

#include <stdlib.h>
#include <string.h>

_Static_assert(offsetof(ncclNet_v10_t, isend) == offsetof(ncclNet_v12_t, isend) &&
                   offsetof(ncclNet_v10_t, irecvConsumed) ==
                       offsetof(ncclNet_v12_t, irecvConsumed) &&
                   offsetof(ncclNet_v10_t, makeVDevice) == offsetof(ncclNet_v12_t, makeVDevice),
               "as published: functions that stay stand where version 12 has them");

static const ncclNet_v10_t *own(const struct tt_net_plugin *self)
{
    return self->table;
}

static ncclResult_t v10_init(struct tt_net_plugin *self, const struct tt_net_start *start,
                             void **ctx)
{
    ncclNetCommConfig_v10_t *config = tt_calloc(1, sizeof(*config));
    if (!config) return tt_fail(ncclSystemError, "net: out of memory");
    config->trafficClass = start->traffic_class;
    ncclResult_t rc = self->begun ? ncclSuccess : own(self)->init(start->log, start->profile);
    if (rc) free(config);
    if (!rc) *ctx = config;
    return rc;
}

static ncclResult_t v10_finalize(struct tt_net_plugin *self, void *ctx)
{
    (void)self;
    free(ctx);
    return ncclSuccess;
}

static ncclResult_t v10_properties(struct tt_net_plugin *self, int dev,
                                   ncclNetProperties_v12_t *props)
{
    ncclNetProperties_v10_t old;
    memset(&old, 0, sizeof(old));
    ncclResult_t rc = own(self)->getProperties(dev, &old);
    if (rc) return rc;
    tt_net_default_properties(dev, props);
    props->name = old.name;
    props->pciPath = old.pciPath;
    props->guid = old.guid;
    props->ptrSupport = old.ptrSupport;
    props->regIsGlobal = old.regIsGlobal;
    props->forceFlush = old.forceFlush;
    props->speed = old.speed;
    props->port = old.port;
    props->latency = old.latency;
    props->maxComms = old.maxComms;
    props->maxRecvs = old.maxRecvs;
    props->netDeviceType = old.netDeviceType;
    props->netDeviceVersion = old.netDeviceVersion;
    props->vProps.ndevs = old.vProps.ndevs <= 4 ? old.vProps.ndevs : 0; /* more: no number */
    memcpy(props->vProps.devs, old.vProps.devs, sizeof(old.vProps.devs));
    props->maxP2pBytes = old.maxP2pBytes;
    props->maxCollBytes = old.maxCollBytes;
    return ncclSuccess;
}

static ncclResult_t v10_listen(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                               void **listen_comm)
{
    (void)ctx;
    return own(self)->listen(dev, handle, listen_comm);
}

static ncclResult_t v10_connect(struct tt_net_plugin *self, void *ctx, int dev, void *handle,
                                void **send_comm)
{
    ncclNetDeviceHandle_v10_t *offload = NULL;
    return own(self)->connect(dev, ctx, handle, send_comm, &offload);
}

static void v10_set_attr(struct tt_net_plugin *self, void *ctx, ncclNetAttr_v12_t *attr)
{
    (void)self, (void)ctx, (void)attr; /* the ABI has no word for it */
}

void tt_net_v10(struct tt_net_ops *ops)
{
    tt_net_v11(ops);
    ops->version = 10;
    ops->set_attr = v10_set_attr;
    ops->init = v10_init;
    ops->finalize = v10_finalize;
    ops->properties = v10_properties;
    ops->listen = v10_listen;
    ops->connect = v10_connect;
}
