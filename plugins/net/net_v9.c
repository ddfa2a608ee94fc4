/* Version 9: no configuration of connections, no events of the profiler. */
#include "nccl/net_v9.h"

#include "ofi.h"
#include "versions.h"

#include <string.h>

static ncclResult_t properties(int dev, ncclNetProperties_v9_t *props)
{
    ncclNetProperties_v10_t newer;
    _Static_assert(sizeof(*props) == sizeof(newer), "versions 9 and 10 have the same properties");
    ncclResult_t rc = ofi_v10_properties(dev, &newer);
    if (!rc) memcpy(props, &newer, sizeof(*props));
    return rc;
}

ncclResult_t ofi_v9_connect(int dev, void *handle, void **send_comm,
                            ncclNetDeviceHandle_v7_t **offload)
{
    return ofi_v12_connect(&ofi_process.common, dev, handle, send_comm, offload);
}

static ncclResult_t irecv(void *comm, int n, void **data, size_t *sizes, int *tags, void **mhandles,
                          void **request)
{
    return ofi_v12_irecv(comm, n, data, sizes, tags, mhandles, NULL, request);
}

OFI_EXPORTED const ncclNet_v9_t ncclNetPlugin_v9 = {
    .name = ofi_name,
    .init = ofi_v9_init,
    .devices = ofi_v12_devices,
    .getProperties = properties,
    .listen = ofi_v10_listen,
    .connect = ofi_v9_connect,
    .accept = ofi_v12_accept,
    .regMr = ofi_reg,
    .deregMr = ofi_dereg,
    .isend = ofi_isend,
    .irecv = irecv,
    .iflush = ofi_v12_iflush,
    .test = ofi_test,
    .closeSend = ofi_v12_close,
    .closeRecv = ofi_v12_close,
    .closeListen = ofi_close_listen,
};
