/* Version 8: sizes of messages are ints, no virtual devices. */
#include "nccl/net_v8.h"

#include "ofi.h"
#include "versions.h"

#include <string.h>

ncclResult_t ofi_v8_properties(int dev, ncclNetProperties_v8_t *props)
{
    ncclNetProperties_v10_t newer;
    ncclResult_t rc = ofi_v10_properties(dev, &newer);
    if (rc) return rc;
    memset(props, 0, sizeof(*props));
    props->name = newer.name;
    props->pciPath = newer.pciPath;
    props->guid = newer.guid;
    props->ptrSupport = newer.ptrSupport;
    props->regIsGlobal = newer.regIsGlobal;
    props->speed = newer.speed;
    props->port = newer.port;
    props->latency = newer.latency;
    props->maxComms = newer.maxComms;
    props->maxRecvs = newer.maxRecvs;
    props->netDeviceType = newer.netDeviceType;
    props->netDeviceVersion = newer.netDeviceVersion;
    return ncclSuccess;
}

ncclResult_t ofi_v8_isend(void *comm, void *data, int bytes, int tag, void *mhandle, void **request)
{
    *request = NULL;
    if (bytes < 0) return ofi_fail(ncclInvalidArgument, "a message of %d bytes", bytes);
    return ofi_isend(comm, data, (size_t)bytes, tag, mhandle, request);
}

ncclResult_t ofi_v8_irecv(void *comm, int n, void **data, int *sizes, int *tags, void **mhandles,
                          void **request)
{
    size_t wider[OFI_PARTS] = {0};
    *request = NULL;
    for (int i = 0; i < n && i < OFI_PARTS; i++) {
        if (sizes[i] < 0) return ofi_fail(ncclInvalidArgument, "a receive of %d bytes", sizes[i]);
        wider[i] = (size_t)sizes[i];
    }
    return ofi_v12_irecv(comm, n, data, wider, tags, mhandles, NULL, request);
}

OFI_EXPORTED const ncclNet_v8_t ncclNetPlugin_v8 = {
    .name = ofi_name,
    .init = ofi_v9_init,
    .devices = ofi_v12_devices,
    .getProperties = ofi_v8_properties,
    .listen = ofi_v10_listen,
    .connect = ofi_v9_connect,
    .accept = ofi_v12_accept,
    .regMr = ofi_reg,
    .deregMr = ofi_dereg,
    .isend = ofi_v8_isend,
    .irecv = ofi_v8_irecv,
    .iflush = ofi_v12_iflush,
    .test = ofi_test,
    .closeSend = ofi_v12_close,
    .closeRecv = ofi_v12_close,
    .closeListen = ofi_close_listen,
};
