/* Version 7: sizes of registrations are ints; whether they are good for all connections is not
 * told. */
#include "nccl/net_v7.h"

#include "ofi.h"
#include "versions.h"

#include <string.h>

static ncclResult_t properties(int dev, ncclNetProperties_v7_t *props)
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
    props->netDeviceType = newer.netDeviceType;
    props->netDeviceVersion = newer.netDeviceVersion;
    return ncclSuccess;
}

ncclResult_t ofi_v7_reg(void *comm, void *data, int bytes, int type, void **mhandle)
{
    if (bytes < 0) return ofi_fail(ncclInvalidArgument, "a registration of %d bytes", bytes);
    return ofi_reg(comm, data, (size_t)bytes, type, mhandle);
}

OFI_EXPORTED const ncclNet_v7_t ncclNetPlugin_v7 = {
    .name = ofi_name,
    .init = ofi_v9_init,
    .devices = ofi_v12_devices,
    .getProperties = properties,
    .listen = ofi_v10_listen,
    .connect = ofi_v9_connect,
    .accept = ofi_v12_accept,
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
