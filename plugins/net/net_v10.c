/* Version 10: the library is started once, and knows no communicators. */
#include "nccl/net_v10.h"

#include "ofi.h"
#include "versions.h"

ncclResult_t ofi_v9_init(ncclDebugLogger_t log)
{
    return ofi_v12_begin(log, NULL);
}

static ncclResult_t init(ncclDebugLogger_t log, ncclProfilerCallback_t profile)
{
    (void)profile;
    return ofi_v9_init(log);
}

ncclResult_t ofi_v10_listen(int dev, void *handle, void **listen_comm)
{
    return ofi_listen(&ofi_process.common, dev, handle, listen_comm);
}

static ncclResult_t join(int dev, ncclNetCommConfig_v10_t *config, void *handle, void **send_comm,
                         ncclNetDeviceHandle_v10_t **offload)
{
    (void)config;
    return ofi_v12_connect(&ofi_process.common, dev, handle, send_comm, offload);
}

OFI_EXPORTED const ncclNet_v10_t ncclNetPlugin_v10 = {
    .name = ofi_name,
    .init = init,
    .devices = ofi_v12_devices,
    .getProperties = ofi_v10_properties,
    .listen = ofi_v10_listen,
    .connect = join,
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
};
