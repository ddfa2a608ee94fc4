/* Version 11: four devices in a virtual one, neither rails nor planes. */
#include "nccl/net_v11.h"

#include "ofi.h"
#include "versions.h"

#include <string.h>

static ncclResult_t properties(int dev, ncclNetProperties_v11_t *props)
{
    ncclNetProperties_v12_t newer;
    ncclResult_t rc = ofi_v12_properties(dev, &newer);
    if (rc) return rc;
    memset(props, 0, sizeof(*props));
    props->name = newer.name;
    props->pciPath = newer.pciPath;
    props->guid = newer.guid;
    props->ptrSupport = newer.ptrSupport;
    props->regIsGlobal = newer.regIsGlobal;
    props->forceFlush = newer.forceFlush;
    props->speed = newer.speed;
    props->port = newer.port;
    props->latency = newer.latency;
    props->maxComms = newer.maxComms;
    props->maxRecvs = newer.maxRecvs;
    props->netDeviceType = newer.netDeviceType;
    props->netDeviceVersion = newer.netDeviceVersion;
    props->vProps.ndevs = newer.vProps.ndevs;
    memcpy(props->vProps.devs, newer.vProps.devs, sizeof(props->vProps.devs));
    props->maxP2pBytes = newer.maxP2pBytes;
    props->maxCollBytes = newer.maxCollBytes;
    props->maxMultiRequestSize = newer.maxMultiRequestSize;
    return ncclSuccess;
}

/* Version 10 has the beginning of the same. */
ncclResult_t ofi_v10_properties(int dev, ncclNetProperties_v10_t *props)
{
    ncclNetProperties_v11_t newer;
    _Static_assert(offsetof(ncclNetProperties_v11_t, maxMultiRequestSize) == sizeof(*props),
                   "version 11 is version 10 and more");
    ncclResult_t rc = properties(dev, &newer);
    if (!rc) memcpy(props, &newer, sizeof(*props));
    return rc;
}

static ncclResult_t init(void **ctx, uint64_t comm_id, ncclNetCommConfig_v11_t *config,
                         ncclDebugLogger_t log, ncclProfilerCallback_t profile)
{
    (void)comm_id, (void)config, (void)profile;
    return ofi_v12_begin(log, ctx);
}

OFI_EXPORTED const ncclNet_v11_t ncclNetPlugin_v11 = {
    .name = ofi_name,
    .init = init,
    .devices = ofi_v12_devices,
    .getProperties = properties,
    .listen = ofi_listen,
    .connect = ofi_v12_connect,
    .accept = ofi_v12_accept,
    .regMr = ofi_reg,
    .deregMr = ofi_dereg,
    .isend = ofi_v12_isend,
    .irecv = ofi_v12_irecv,
    .iflush = ofi_v12_iflush,
    .test = ofi_test,
    .closeSend = ofi_v12_close,
    .closeRecv = ofi_v12_close,
    .closeListen = ofi_close_listen,
    .finalize = ofi_v12_finalize,
};
