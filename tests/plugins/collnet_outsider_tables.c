/* Tables of versions 3 to 12 of the collnet ABI, each as its own header has them, over
 * collnet_outsider.c. The linker gives one of them the name that a host looks for. */
#include "collnet_outsider.h"

#include "nccl/collnet_v10.h"
#include "nccl/collnet_v11.h"
#include "nccl/collnet_v12.h"
#include "nccl/collnet_v3.h"
#include "nccl/collnet_v4.h"
#include "nccl/collnet_v5.h"
#include "nccl/collnet_v6.h"
#include "nccl/collnet_v7.h"
#include "nccl/collnet_v8.h"
#include "nccl/collnet_v9.h"

#include <stdlib.h>

enum { OLD_HANDLE = NCCL_NET_HANDLE_MAXSIZE_V4, HANDLE = NCCL_NET_HANDLE_MAXSIZE };

static char device_name[] = "sum0";

static size_t most_bytes(void)
{
    const char *text = getenv("COLLNET_MOST_BYTES");
    return text ? (size_t)atoll(text) : (size_t)1 << 30;
}

static ncclResult_t devices(int *ndev)
{
    *ndev = 1;
    return summer_fails("devices", -1) ? ncclSystemError : ncclSuccess;
}

static ncclResult_t init_old(ncclDebugLogger_t log)
{
    return summer_begin(log, false);
}

static int contexts;

static ncclResult_t init_v11(void **ctx, uint64_t comm_id, ncclDebugLogger_t log)
{
    (void)comm_id;
    *ctx = &contexts;
    contexts++;
    return summer_begin(log, true);
}

static ncclResult_t finalize(void *ctx)
{
    if (ctx != &contexts) return ncclInternalError;
    contexts--;
    return ncclSuccess;
}

static ncclResult_t listen_v4(int dev, void *handle, void **listen_comm)
{
    return summer_listen(dev, handle, OLD_HANDLE, listen_comm);
}

static ncclResult_t listen_v5(int dev, void *handle, void **listen_comm)
{
    return summer_listen(dev, handle, HANDLE, listen_comm);
}

static ncclResult_t listen_v11(void *ctx, int dev, void *handle, void **listen_comm)
{
    if (ctx != &contexts) return ncclInternalError;
    return summer_listen(dev, handle, HANDLE, listen_comm);
}

static ncclResult_t reg_v3(void *comm, void *data, int size, int type, void **mhandle)
{
    return summer_reg(comm, data, (size_t)size, type, mhandle);
}

static ncclResult_t sum_v9(void *comm, void *send, void *recv, size_t count, ncclDataType_t type,
                           ncclRedOp_t op, void *send_mhandle, void *recv_mhandle, void **request)
{
    const struct summer_job job = {send, recv,         count,        type,
                                   op,   send_mhandle, recv_mhandle, SUMMER_SUM};
    return summer_start(comm, &job, request);
}

static ncclResult_t sum_v3(void *comm, void *send, void *recv, int count, ncclDataType_t type,
                           ncclRedOp_t op, void *send_mhandle, void *recv_mhandle, void **request)
{
    return sum_v9(comm, send, recv, (size_t)count, type, op, send_mhandle, recv_mhandle, request);
}

static ncclResult_t gather_v9(void *comm, void *send, int nparts, ncclNetSGE_v9_t *parts,
                              size_t block_bytes, size_t offset, size_t window_bytes,
                              void *send_mhandle, void **request)
{
    struct summer_job job = {.send = send,
                             .recv = parts->address,
                             .type = ncclInt8,
                             .send_mhandle = send_mhandle,
                             .recv_mhandle = parts->mhandle,
                             .kind = SUMMER_GATHER};
    const struct summer_blocks blocks = {nparts, parts->size, block_bytes, offset, window_bytes};
    return summer_start_blocks(comm, &job, &blocks, request);
}

static ncclResult_t scatter_v9(void *comm, int nparts, ncclNetSGE_v9_t *parts, void *recv,
                               size_t block_bytes, size_t offset, size_t window_bytes,
                               ncclDataType_t type, ncclRedOp_t op, void *recv_mhandle,
                               void **request)
{
    struct summer_job job = {.send = parts->address,
                             .recv = recv,
                             .type = type,
                             .op = op,
                             .send_mhandle = parts->mhandle,
                             .recv_mhandle = recv_mhandle,
                             .kind = SUMMER_SCATTER};
    const struct summer_blocks blocks = {nparts, parts->size, block_bytes, offset, window_bytes};
    return summer_start_blocks(comm, &job, &blocks, request);
}

static ncclResult_t gather_v8(void *comm, void *send, int nparts, ncclNetSGE_v8_t *parts,
                              size_t block_bytes, size_t offset, size_t window_bytes,
                              void *send_mhandle, void **request)
{
    ncclNetSGE_v9_t wide = {parts->mhandle, parts->address, parts->size};
    return gather_v9(comm, send, nparts, &wide, block_bytes, offset, window_bytes, send_mhandle,
                     request);
}

static ncclResult_t scatter_v8(void *comm, int nparts, ncclNetSGE_v8_t *parts, void *recv,
                               size_t block_bytes, size_t offset, size_t window_bytes,
                               ncclDataType_t type, ncclRedOp_t op, void *recv_mhandle,
                               void **request)
{
    ncclNetSGE_v9_t wide = {parts->mhandle, parts->address, parts->size};
    return scatter_v9(comm, nparts, &wide, recv, block_bytes, offset, window_bytes, type, op,
                      recv_mhandle, request);
}

static ncclResult_t gather_v12(void *comm, void *send, int nparts, ncclNetSGE_v12_t *parts,
                               size_t block_bytes, size_t offset, size_t window_bytes,
                               void *send_mhandle, void **request)
{
    ncclNetSGE_v9_t same = {parts->mhandle, parts->address, parts->size};
    return gather_v9(comm, send, nparts, &same, block_bytes, offset, window_bytes, send_mhandle,
                     request);
}

static ncclResult_t scatter_v12(void *comm, int nparts, ncclNetSGE_v12_t *parts, void *recv,
                                size_t block_bytes, size_t offset, size_t window_bytes,
                                ncclDataType_t type, ncclRedOp_t op, void *recv_mhandle,
                                void **request)
{
    ncclNetSGE_v9_t same = {parts->mhandle, parts->address, parts->size};
    return scatter_v9(comm, nparts, &same, recv, block_bytes, offset, window_bytes, type, op,
                      recv_mhandle, request);
}

static ncclResult_t properties_v3(int dev, ncclNetProperties_v4_t *props)
{
    if (dev) return ncclInvalidArgument;
    props->name = device_name;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = 25000;
    return ncclSuccess;
}

static ncclResult_t properties_v4(int dev, ncclNetProperties_v4_t *props)
{
    if (dev) return ncclInvalidArgument;
    props->name = device_name;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = 25000;
    return ncclSuccess;
}

static ncclResult_t properties_v5(int dev, ncclNetProperties_v6_t *props)
{
    if (dev) return ncclInvalidArgument;
    props->name = device_name;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = 25000;
    return ncclSuccess;
}

static ncclResult_t properties_v6(int dev, ncclNetProperties_v6_t *props)
{
    if (dev) return ncclInvalidArgument;
    props->name = device_name;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = 25000;
    return ncclSuccess;
}

static ncclResult_t properties_v7(int dev, ncclNetProperties_v7_t *props)
{
    if (dev) return ncclInvalidArgument;
    props->name = device_name;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = 25000;
    return ncclSuccess;
}

static ncclResult_t properties_v8(int dev, ncclNetProperties_v8_t *props)
{
    if (dev) return ncclInvalidArgument;
    props->name = device_name;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = 25000;
    return ncclSuccess;
}

static ncclResult_t properties_v9(int dev, ncclNetProperties_v9_t *props)
{
    if (dev) return ncclInvalidArgument;
    props->name = device_name;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = 25000;
    props->maxCollBytes = most_bytes();
    return ncclSuccess;
}

static ncclResult_t properties_v10(int dev, ncclNetProperties_v10_t *props)
{
    if (dev) return ncclInvalidArgument;
    props->name = device_name;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = 25000;
    props->maxCollBytes = most_bytes();
    return ncclSuccess;
}

static ncclResult_t properties_v11(int dev, ncclNetProperties_v11_t *props)
{
    if (dev) return ncclInvalidArgument;
    props->name = device_name;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = 25000;
    props->maxCollBytes = most_bytes();
    return ncclSuccess;
}

static ncclResult_t properties_v12(int dev, ncclNetProperties_v12_t *props)
{
    if (dev) return ncclInvalidArgument;
    props->name = device_name;
    props->ptrSupport = NCCL_PTR_HOST;
    props->speed = 25000;
    props->maxCollBytes = most_bytes();
    return ncclSuccess;
}

__attribute__((visibility("default"))) ncclCollNet_v3_t summer_v3 = {
    .name = "Summer",
    .init = init_old,
    .devices = devices,
    .getProperties = properties_v3,
    .listen = listen_v4,
    .connect = summer_connect,
    .reduceSupport = summer_support,
    .regMr = reg_v3,
    .deregMr = summer_dereg,
    .iallreduce = sum_v3,
    .test = summer_test,
    .closeColl = summer_close,
    .closeListen = summer_close_listen,
};

__attribute__((visibility("default"))) ncclCollNet_v4_t summer_v4 = {
    .name = "Summer",
    .init = init_old,
    .devices = devices,
    .getProperties = properties_v4,
    .listen = listen_v4,
    .connect = summer_connect,
    .reduceSupport = summer_support,
    .regMr = reg_v3,
    .deregMr = summer_dereg,
    .iallreduce = sum_v3,
    .test = summer_test,
    .closeColl = summer_close,
    .closeListen = summer_close_listen,
};

__attribute__((visibility("default"))) ncclCollNet_v5_t summer_v5 = {
    .name = "Summer",
    .init = init_old,
    .devices = devices,
    .getProperties = properties_v5,
    .listen = listen_v5,
    .connect = summer_connect,
    .reduceSupport = summer_support,
    .regMr = reg_v3,
    .deregMr = summer_dereg,
    .iallreduce = sum_v3,
    .test = summer_test,
    .closeColl = summer_close,
    .closeListen = summer_close_listen,
};

__attribute__((visibility("default"))) ncclCollNet_v6_t summer_v6 = {
    .name = "Summer",
    .init = init_old,
    .devices = devices,
    .getProperties = properties_v6,
    .listen = listen_v5,
    .connect = summer_connect,
    .reduceSupport = summer_support,
    .regMr = reg_v3,
    .deregMr = summer_dereg,
    .iallreduce = sum_v3,
    .test = summer_test,
    .closeColl = summer_close,
    .closeListen = summer_close_listen,
};

__attribute__((visibility("default"))) ncclCollNet_v7_t summer_v7 = {
    .name = "Summer",
    .init = init_old,
    .devices = devices,
    .getProperties = properties_v7,
    .listen = listen_v5,
    .connect = summer_connect,
    .reduceSupport = summer_support,
    .regMr = reg_v3,
    .deregMr = summer_dereg,
    .iallreduce = sum_v3,
    .test = summer_test,
    .closeColl = summer_close,
    .closeListen = summer_close_listen,
};

__attribute__((visibility("default"))) ncclCollNet_v8_t summer_v8 = {
    .name = "Summer",
    .init = init_old,
    .devices = devices,
    .getProperties = properties_v8,
    .listen = listen_v5,
    .connect = summer_connect,
    .reduceSupport = summer_support,
    .regMr = summer_reg,
    .deregMr = summer_dereg,
    .iallreduce = sum_v3,
    .iallgather = gather_v8,
    .ireducescatter = scatter_v8,
    .test = summer_test,
    .closeColl = summer_close,
    .closeListen = summer_close_listen,
};

__attribute__((visibility("default"))) ncclCollNet_v9_t summer_v9 = {
    .name = "Summer",
    .init = init_old,
    .devices = devices,
    .getProperties = properties_v9,
    .listen = listen_v5,
    .connect = summer_connect,
    .reduceSupport = summer_support,
    .regMr = summer_reg,
    .deregMr = summer_dereg,
    .iallreduce = sum_v9,
    .iallgather = gather_v9,
    .ireducescatter = scatter_v9,
    .test = summer_test,
    .closeColl = summer_close,
    .closeListen = summer_close_listen,
};

__attribute__((visibility("default"))) ncclCollNet_v10_t summer_v10 = {
    .name = "Summer",
    .init = init_old,
    .devices = devices,
    .getProperties = properties_v10,
    .listen = listen_v5,
    .connect = summer_connect,
    .reduceSupport = summer_support,
    .regMr = summer_reg,
    .deregMr = summer_dereg,
    .iallreduce = sum_v9,
    .test = summer_test,
    .closeColl = summer_close,
    .closeListen = summer_close_listen,
};

__attribute__((visibility("default"))) ncclCollNet_v11_t summer_v11 = {
    .name = "Summer",
    .init = init_v11,
    .devices = devices,
    .getProperties = properties_v11,
    .listen = listen_v11,
    .connect = summer_connect,
    .reduceSupport = summer_support,
    .regMr = summer_reg,
    .deregMr = summer_dereg,
    .iallreduce = sum_v9,
    .test = summer_test,
    .closeColl = summer_close,
    .closeListen = summer_close_listen,
    .finalize = finalize,
};

__attribute__((visibility("default"))) ncclCollNet_v12_t summer_v12 = {
    .name = "Summer",
    .init = init_v11,
    .devices = devices,
    .getProperties = properties_v12,
    .listen = listen_v11,
    .connect = summer_connect,
    .reduceSupport = summer_support,
    .regMr = summer_reg,
    .deregMr = summer_dereg,
    .iallreduce = sum_v9,
    .iallgather = gather_v12,
    .ireducescatter = scatter_v12,
    .test = summer_test,
    .closeColl = summer_close,
    .closeListen = summer_close_listen,
    .finalize = finalize,
};
