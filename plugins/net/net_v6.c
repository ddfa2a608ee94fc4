/* Version 6: devices take no part in the network's work. */
#include "nccl/net_v6.h"

#include "ofi.h"
#include "versions.h"

#include <string.h>

static ncclResult_t properties(int dev, ncclNetProperties_v6_t *props)
{
    ncclNetProperties_v8_t newer;
    ncclResult_t rc = ofi_v8_properties(dev, &newer);
    if (rc) return rc;
    memset(props, 0, sizeof(*props));
    props->name = newer.name;
    props->pciPath = newer.pciPath;
    props->guid = newer.guid;
    props->ptrSupport = newer.ptrSupport;
    props->speed = newer.speed;
    props->port = newer.port;
    props->latency = newer.latency;
    props->maxComms = newer.maxComms;
    props->maxRecvs = newer.maxRecvs;
    return ncclSuccess;
}

static ncclResult_t join(int dev, void *handle, void **send_comm)
{
    return ofi_v9_connect(dev, handle, send_comm, NULL);
}

OFI_EXPORTED const ncclNet_v6_t ncclNetPlugin_v6 = {
    .name = ofi_name,
    .init = ofi_v9_init,
    .devices = ofi_v12_devices,
    .getProperties = properties,
    .listen = ofi_v10_listen,
    .connect = join,
    .accept = ofi_accept,
    .regMr = ofi_v7_reg,
    .deregMr = ofi_dereg,
    .isend = ofi_v8_isend,
    .irecv = ofi_v8_irecv,
    .iflush = ofi_v12_iflush,
    .test = ofi_test,
    .closeSend = ofi_v12_close,
    .closeRecv = ofi_v12_close,
    .closeListen = ofi_close_listen,
};
