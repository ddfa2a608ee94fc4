/* Version 12, the newest: what the host calls. */
#include "ofi.h"
#include "versions.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_COMMS = 65536 };

const char ofi_name[] = "Libfabric";

ncclResult_t ofi_v12_begin(ncclDebugLogger_t log, void **ctx)
{
    struct ofi_net *net = ctx ? calloc(1, sizeof(*net)) : &ofi_process.common;
    if (!net) return ofi_fail(ncclSystemError, "out of memory");
    pthread_mutex_lock(&ofi_process.lock);
    atomic_store_explicit(&ofi_process.log, log, memory_order_relaxed);
    ncclResult_t rc = ofi_devices_find();
    if (!rc && !net->domains)
        net->domains = calloc((size_t)ofi_process.ndevices, sizeof(struct ofi_domain *));
    if (!rc && !net->domains) rc = ofi_fail(ncclSystemError, "out of memory");
    pthread_mutex_unlock(&ofi_process.lock);
    if (ctx && rc) free(net);
    if (ctx && !rc) *ctx = net;
    return rc;
}

static ncclResult_t init(void **ctx, uint64_t comm_id, ncclNetCommConfig_v12_t *config,
                         ncclDebugLogger_t log, ncclProfilerCallback_t profile)
{
    (void)comm_id, (void)config, (void)profile;
    return ofi_v12_begin(log, ctx);
}

/* A domain whose connections were not closed keeps its memory. */
ncclResult_t ofi_v12_finalize(void *ctx)
{
    struct ofi_net *net = ctx;
    if (!net) return ncclSuccess;
    ofi_give_up(net);
    free(net->domains);
    free(net);
    return ncclSuccess;
}

ncclResult_t ofi_v12_devices(int *ndev)
{
    *ndev = ofi_process.ndevices;
    return ncclSuccess;
}

ncclResult_t ofi_v12_properties(int dev, ncclNetProperties_v12_t *props)
{
    if (dev < 0 || dev >= ofi_process.ndevices)
        return ofi_fail(ncclInvalidArgument, "there is no device %d", dev);
    struct ofi_device *device = &ofi_process.devices[dev];
    size_t most = device->info->ep_attr->max_msg_size;
    if (most > MAX_NET_SIZE) most = MAX_NET_SIZE; /* test returns sizes as int */
    memset(props, 0, sizeof(*props));
    props->name = device->name;
    props->pciPath = device->pci_path;
    props->guid = device->guid;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = device->mbps;
    props->port = 1;
    props->maxComms = MOST_COMMS;
    props->maxRecvs = OFI_PARTS;
    props->netDeviceType = NCCL_NET_DEVICE_HOST;
    props->netDeviceVersion = NCCL_NET_DEVICE_INVALID_VERSION;
    props->vProps.ndevs = 1;
    props->vProps.devs[0] = dev;
    props->maxP2pBytes = props->maxCollBytes = most;
    props->maxMultiRequestSize = 1;
    props->railId = props->planeId = NCCL_NET_ID_UNDEF;
    return ncclSuccess;
}

ncclResult_t ofi_v12_connect(void *ctx, int dev, void *handle, void **send_comm,
                             ncclNetDeviceHandle_v7_t **offload)
{
    (void)offload;
    return ofi_connect(ctx, dev, handle, send_comm);
}

ncclResult_t ofi_v12_accept(void *listen_comm, void **recv_comm, ncclNetDeviceHandle_v7_t **offload)
{
    (void)offload;
    return ofi_accept(listen_comm, recv_comm);
}

ncclResult_t ofi_v12_isend(void *comm, void *data, size_t bytes, int tag, void *mhandle,
                           void *event, void **request)
{
    (void)event;
    return ofi_isend(comm, data, bytes, tag, mhandle, request);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the ABI has it so */
ncclResult_t ofi_v12_irecv(void *comm, int n, void **data, size_t *sizes, int *tags,
                           void **mhandles, void **events, void **request)
{
    const struct ofi_group group = {n, data, mhandles, sizes, tags};
    (void)events;
    return ofi_irecv(comm, &group, request);
}

/* Nothing to be done for memory of the host: no request. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the ABI has it so */
ncclResult_t ofi_v12_iflush(void *comm, int n, void **data, int *sizes, void **mhandles,
                            void **request)
{
    (void)comm, (void)n, (void)data, (void)sizes, (void)mhandles;
    *request = NULL;
    return ncclSuccess;
}

ncclResult_t ofi_v12_close(void *comm)
{
    ofi_comm_close(comm);
    return ncclSuccess;
}

OFI_EXPORTED const ncclNet_v12_t ncclNetPlugin_v12 = {
    .name = ofi_name,
    .init = init,
    .devices = ofi_v12_devices,
    .getProperties = ofi_v12_properties,
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
