/* The built-in network NET/IB behind the newest net ABI: RDMA over InfiniBand or RoCE by verbs. */
#include "base/error.h"
#include "base/mem.h"
#include "base/secret/encryption.h"
#include "net/ib/comm.h"

#include <stdlib.h>
#include <string.h>

static ncclResult_t ib_init(void **ctx, uint64_t comm_id, ncclNetCommConfig_v12_t *config,
                            ncclDebugLogger_t log, ncclProfilerCallback_t profiler)
{
    if (!tt_ib_devices()) return ncclInternalError; /* said already; the next network is asked */
    struct ib_context *context = tt_calloc(1, sizeof(*context));
    if (!context) return tt_fail(ncclSystemError, "NET/IB: out of memory");
    ncclResult_t rc = tt_net_socket.init(&context->oob, comm_id, config, log, profiler);
    if (rc) {
        free(context);
        return rc;
    }
    context->traffic_class = config ? config->trafficClass : NCCL_NET_TRAFFIC_CLASS_UNDEF;
    pthread_mutex_init(&context->lock, NULL);
    *ctx = context;
    return ncclSuccess;
}

static void ib_set_trust(void *ctx, const struct tt_net_trust *trust)
{
    struct ib_context *context = ctx;
    context->rank = trust->rank;
    tt_net_socket_set_trust(context->oob, trust);
}

static ncclResult_t ib_finalize(void *ctx)
{
    struct ib_context *context = ctx;
    if (!context) return ncclSuccess;
    tt_ib_connectors_free(context);
    tt_net_socket.finalize(context->oob);
    pthread_mutex_destroy(&context->lock);
    free(context);
    return ncclSuccess;
}

static ncclResult_t ib_devices(int *ndev)
{
    *ndev = tt_ib_devices();
    return ncclSuccess;
}

static ncclResult_t check_device(int dev)
{
    if (tt_ib_device(dev)) return ncclSuccess;
    return tt_fail(ncclInvalidArgument, "NET/IB: there is no device %d (of %d)", dev,
                   tt_ib_devices());
}

static ncclResult_t ib_properties(int dev, ncclNetProperties_v12_t *props)
{
    ncclResult_t rc = check_device(dev);
    if (!rc) tt_ib_properties(dev, props);
    return rc;
}

static ncclResult_t ib_listen(void *ctx, int dev, void *opaque, void **listen_comm)
{
    ncclResult_t rc = check_device(dev);
    return rc ? rc : tt_ib_listen(ctx, dev, opaque, listen_comm);
}

static ncclResult_t ib_connect(void *ctx, int dev, void *opaque, void **send_comm,
                               ncclNetDeviceHandle_v12_t **device)
{
    (void)device;
    ncclResult_t rc = check_device(dev);
    return rc ? rc : tt_ib_connect(ctx, dev, opaque, send_comm);
}

static ncclResult_t ib_accept(void *listen_comm, void **recv_comm,
                              ncclNetDeviceHandle_v12_t **device)
{
    (void)device;
    return tt_ib_accept(listen_comm, recv_comm);
}

static ncclResult_t ib_close(void *comm)
{
    tt_ib_comm_destroy(comm);
    return ncclSuccess;
}

/* ---- memory ---- */

static ncclResult_t ib_dereg(void *opaque, void *mhandle)
{
    const struct ib_comm *comm = opaque;
    struct ib_mhandle *handle = mhandle;
    if (!handle) return ncclSuccess;
    for (int i = 0; i < comm->nports; i++) {
        if (handle->mrs[i]) tt_ib_region_release(comm->device->ports[i], handle->mrs[i]);
    }
    free(handle);
    return ncclSuccess;
}

static ncclResult_t ib_reg(void *opaque, void *data, size_t size, int type, void **mhandle)
{
    const struct ib_comm *comm = opaque;
    *mhandle = NULL;
    if (type != NCCL_PTR_HOST) {
        return tt_fail(ncclInternalError,
                       "NET/IB: memory of type %d cannot be registered, only host memory", type);
    }
    struct ib_mhandle *handle = tt_calloc(1, sizeof(*handle));
    if (!handle) return tt_fail(ncclSystemError, "NET/IB: out of memory");
    ncclResult_t rc = ncclSuccess;
    for (int i = 0; !rc && i < comm->nports; i++)
        rc = tt_ib_region_acquire(comm->device->ports[i], data, size, &handle->mrs[i]);
    if (rc) {
        ib_dereg(opaque, handle);
        return rc;
    }
    *mhandle = handle;
    return ncclSuccess;
}

/* ---- requests ---- */

static ncclResult_t ib_isend(void *opaque, void *data, size_t size, int tag, void *mhandle,
                             void *phandle, void **request)
{
    struct ib_comm *comm = opaque;
    const struct ib_request wanted = {.data = data, .size = size, .mhandle = mhandle};
    struct ib_request *taken = NULL;
    (void)phandle;
    *request = NULL;
    if (comm->error) return comm->error;
    if (size && !mhandle)
        return tt_fail(ncclInternalError, "NET/IB: a send from memory that is not registered");
    ncclResult_t rc = tt_ib_isend(comm, &wanted, tag, &taken);
    if (!rc && !taken) rc = tt_ib_progress(comm);
    *request = rc ? NULL : taken;
    return rc;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the net ABI */
static ncclResult_t ib_irecv(void *opaque, int n, void **data, size_t *sizes, int *tags,
                             void **mhandles, void **phandles, void **request)
{
    struct ib_comm *comm = opaque;
    const struct ib_receive receive = {n, data, sizes, tags, mhandles};
    struct ib_request *taken = NULL;
    (void)phandles;
    *request = NULL;
    if (comm->error) return comm->error;
    if (n < 1 || n > IB_PARTS) {
        return tt_fail(ncclInternalError, "NET/IB: 1 to %d receives at a time, not %d", IB_PARTS,
                       n);
    }
    for (int i = 0; i < n; i++) {
        if (mhandles[i]) continue;
        return tt_fail(ncclInternalError, "NET/IB: a receive to memory that is not registered");
    }
    ncclResult_t rc = tt_ib_irecv(comm, &receive, &taken);
    if (!rc && !taken) rc = tt_ib_progress(comm);
    *request = rc ? NULL : taken;
    return rc;
}

/* Only host memory is registered, where data is before its completion is. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the net ABI */
static ncclResult_t ib_flush(void *comm, int n, void **data, int *sizes, void **mhandles,
                             void **request)
{
    (void)comm, (void)n, (void)data, (void)sizes, (void)mhandles;
    *request = NULL;
    return ncclSuccess;
}

static ncclResult_t ib_test(void *opaque, int *done, int *sizes)
{
    struct ib_request *request = opaque;
    *done = 0;
    if (!request || !request->comm)
        return tt_fail(ncclInternalError, "NET/IB: test of a request that is not under way");
    ncclResult_t rc = request->done ? ncclSuccess : tt_ib_progress(request->comm);
    if (rc || !request->done) return rc;
    for (int i = 0; sizes && i < request->nparts; i++)
        sizes[i] = (int)request->sizes[i];
    request->comm = NULL;
    *done = 1;
    return ncclSuccess;
}

static const ncclNet_v12_t table = {
    .name = "IB",
    .init = ib_init,
    .devices = ib_devices,
    .getProperties = ib_properties,
    .listen = ib_listen,
    .connect = ib_connect,
    .accept = ib_accept,
    .regMr = ib_reg,
    .deregMr = ib_dereg,
    .isend = ib_isend,
    .irecv = ib_irecv,
    .iflush = ib_flush,
    .test = ib_test,
    .closeSend = ib_close,
    .closeRecv = ib_close,
    .closeListen = tt_ib_close_listen,
    .finalize = ib_finalize,
};

const struct tt_net_verbs tt_net_verbs = {.table = &table, .set_trust = ib_set_trust};
