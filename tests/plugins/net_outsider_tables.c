/* Tables of versions 2 to 12, each as its own header has them, over net_outsider.c. The linker
 * gives one (or two) of them the name that a host looks for. OUTSIDER_NULL=function leaves that one
 * out. OUTSIDER_P2P_BYTES, OUTSIDER_COLL_BYTES: maxP2pBytes, maxCollBytes. The tables are empty but
 * for name and init until init, as some plugins have them. */
#include "nccl/net_v10.h"
#include "nccl/net_v11.h"
#include "nccl/net_v2.h"
#include "nccl/net_v3.h"
#include "nccl/net_v4.h"
#include "nccl/net_v5.h"
#include "nccl/net_v6.h"
#include "nccl/net_v7.h"
#include "nccl/net_v8.h"
#include "nccl/net_v9.h"
#include "net_outsider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OLD_HANDLE = NCCL_NET_HANDLE_MAXSIZE_V4, HANDLE = NCCL_NET_HANDLE_MAXSIZE };

struct context { /* of a communicator, from version 11 on */
    int traffic_class;
};

/* ---- as of version 2 ---- */

static ncclResult_t path_v2(int dev, char **path)
{
    (void)dev;
    *path = NULL;
    return ncclSuccess;
}

static ncclResult_t types_v2(int dev, int *types)
{
    struct outsider_device device = {.types = 0};
    ncclResult_t rc = outsider_device(dev, &device);
    *types = device.types;
    return rc;
}

static ncclResult_t listen_v2(int dev, void *handle, void **comm)
{
    return outsider_listen(dev, handle, OLD_HANDLE, comm);
}

static ncclResult_t connect_v2(int dev, void *handle, void **comm)
{
    return outsider_connect(dev, handle, OLD_HANDLE, true, comm);
}

static ncclResult_t accept_v2(void *listen_comm, void **comm)
{
    return outsider_accept(listen_comm, true, comm);
}

static ncclResult_t reg_v2(void *comm, void *data, int bytes, int type, void **mhandle)
{
    return outsider_reg(comm, data, (size_t)bytes, type, mhandle);
}

static ncclResult_t isend_v2(void *comm, void *data, int bytes, void *mhandle, void **request)
{
    const struct outsider_post post = {data, (size_t)bytes, -1, mhandle};
    return outsider_post(comm, &post, 1, request);
}

static ncclResult_t flush_v2(void *comm, void *data, int bytes, void *mhandle)
{
    (void)comm, (void)data, (void)bytes, (void)mhandle;
    return outsider_wrong("flush of host memory");
}

/* ---- as of version 4 ---- */

static ncclResult_t properties_v4(int dev, ncclNetProperties_v4_t *props)
{
    struct outsider_device device;
    ncclResult_t rc = outsider_device(dev, &device);
    if (rc) return rc;
    *props = (ncclNetProperties_v4_t){.name = device.name,
                                      .guid = device.guid,
                                      .ptrSupport = device.types,
                                      .speed = device.mbps,
                                      .port = device.port,
                                      .maxComms = device.most_comms};
    return ncclSuccess;
}

static ncclResult_t flush_v4(void *comm, void *data, int bytes, void *mhandle, void **request)
{
    (void)request;
    return flush_v2(comm, data, bytes, mhandle);
}

/* ---- as of version 5 ---- */

static ncclResult_t listen_v5(int dev, void *handle, void **comm)
{
    return outsider_listen(dev, handle, HANDLE, comm);
}

static ncclResult_t connect_v5(int dev, void *handle, void **comm)
{
    return outsider_connect(dev, handle, HANDLE, false, comm);
}

static ncclResult_t accept_v5(void *listen_comm, void **comm)
{
    return outsider_accept(listen_comm, false, comm);
}

static ncclResult_t isend_v5(void *comm, void *data, int bytes, int tag, void *mhandle,
                             void **request)
{
    const struct outsider_post post = {data, (size_t)bytes, tag, mhandle};
    return outsider_post(comm, &post, 1, request);
}

static ncclResult_t irecv_v5(void *comm, int n, void **data, int *sizes, int *tags, void **mhandles,
                             void **request)
{
    struct outsider_post posts[OUTSIDER_PARTS];
    for (int i = 0; i < n && i < OUTSIDER_PARTS; i++)
        posts[i] = (struct outsider_post){data[i], (size_t)sizes[i], tags[i], mhandles[i]};
    return outsider_post(comm, posts, n, request);
}

static ncclResult_t flush_v5(void *comm, int n, void **data, int *sizes, void **mhandles,
                             void **request)
{
    (void)n, (void)request;
    return flush_v2(comm, data[0], sizes[0], mhandles[0]);
}

/* ---- as of version 6 ---- */

static ncclResult_t properties_v6(int dev, ncclNetProperties_v6_t *props)
{
    struct outsider_device device;
    ncclResult_t rc = outsider_device(dev, &device);
    if (rc) return rc;
    *props = (ncclNetProperties_v6_t){.name = device.name,
                                      .guid = device.guid,
                                      .ptrSupport = device.types,
                                      .speed = device.mbps,
                                      .port = device.port,
                                      .latency = device.latency,
                                      .maxComms = device.most_comms,
                                      .maxRecvs = device.most_recvs};
    return ncclSuccess;
}

/* ---- as of version 7 ---- */

static ncclResult_t properties_v7(int dev, ncclNetProperties_v7_t *props)
{
    ncclNetProperties_v6_t old;
    ncclResult_t rc = properties_v6(dev, &old);
    if (rc) return rc;
    *props = (ncclNetProperties_v7_t){.name = old.name,
                                      .guid = old.guid,
                                      .ptrSupport = old.ptrSupport,
                                      .speed = old.speed,
                                      .port = old.port,
                                      .latency = old.latency,
                                      .maxComms = old.maxComms,
                                      .maxRecvs = old.maxRecvs};
    return ncclSuccess;
}

static ncclResult_t connect_v7(int dev, void *handle, void **comm,
                               ncclNetDeviceHandle_v7_t **offload)
{
    return *offload ? outsider_wrong("a device handle") : connect_v5(dev, handle, comm);
}

static ncclResult_t accept_v7(void *listen_comm, void **comm, ncclNetDeviceHandle_v7_t **offload)
{
    return *offload ? outsider_wrong("a device handle") : accept_v5(listen_comm, comm);
}

/* ---- as of version 8 ---- */

static ncclResult_t properties_v8(int dev, ncclNetProperties_v8_t *props)
{
    ncclNetProperties_v6_t old;
    ncclResult_t rc = properties_v6(dev, &old);
    if (rc) return rc;
    *props = (ncclNetProperties_v8_t){.name = old.name,
                                      .guid = old.guid,
                                      .ptrSupport = old.ptrSupport,
                                      .regIsGlobal = 1,
                                      .speed = old.speed,
                                      .port = old.port,
                                      .latency = old.latency,
                                      .maxComms = old.maxComms,
                                      .maxRecvs = old.maxRecvs};
    return ncclSuccess;
}

/* ---- as of version 9 ---- */

static ncclResult_t make_virtual_v9(int *dev, ncclNetVDeviceProps_v9_t *members)
{
    return outsider_make_virtual(dev, members->devs, members->ndevs);
}

static size_t said_bytes(const char *variable, size_t otherwise)
{
    const char *text = getenv(variable);
    return text ? (size_t)strtoull(text, NULL, 10) : otherwise;
}

static ncclResult_t properties_v9(int dev, ncclNetProperties_v9_t *props)
{
    ncclNetProperties_v6_t old;
    ncclResult_t rc = properties_v6(dev, &old);
    if (rc) return rc;
    *props = (ncclNetProperties_v9_t){.name = old.name,
                                      .guid = old.guid,
                                      .ptrSupport = old.ptrSupport,
                                      .regIsGlobal = 1,
                                      .forceFlush = 1,
                                      .speed = old.speed,
                                      .port = old.port,
                                      .latency = old.latency,
                                      .maxComms = old.maxComms,
                                      .maxRecvs = old.maxRecvs,
                                      .vProps = {1, {dev}},
                                      .maxP2pBytes = said_bytes("OUTSIDER_P2P_BYTES", 1u << 29),
                                      .maxCollBytes = said_bytes("OUTSIDER_COLL_BYTES", 1u << 28)};
    return ncclSuccess;
}

static ncclResult_t isend_v9(void *comm, void *data, size_t bytes, int tag, void *mhandle,
                             void **request)
{
    const struct outsider_post post = {data, bytes, tag, mhandle};
    return outsider_post(comm, &post, 1, request);
}

static ncclResult_t irecv_v9(void *comm, int n, void **data, size_t *sizes, int *tags,
                             void **mhandles, void **request)
{
    struct outsider_post posts[OUTSIDER_PARTS];
    for (int i = 0; i < n && i < OUTSIDER_PARTS; i++)
        posts[i] = (struct outsider_post){data[i], sizes[i], tags[i], mhandles[i]};
    return outsider_post(comm, posts, n, request);
}

/* ---- as of version 10 ---- */

static ncclResult_t make_virtual_v10(int *dev, ncclNetVDeviceProps_v10_t *members)
{
    return outsider_make_virtual(dev, members->devs, members->ndevs);
}

static ncclResult_t properties_v10(int dev, ncclNetProperties_v10_t *props)
{
    ncclNetProperties_v9_t old;
    ncclResult_t rc = properties_v9(dev, &old);
    memcpy(props, &old, sizeof(old)); /* the same layout */
    return rc;
}

static ncclResult_t connect_v10(int dev, ncclNetCommConfig_v10_t *config, void *handle, void **comm,
                                ncclNetDeviceHandle_v10_t **offload)
{
    if (!config) return outsider_wrong("no configuration");
    ncclResult_t rc = connect_v7(dev, handle, comm, offload);
    if (*comm) outsider_say("connected with traffic class %d", config->trafficClass);
    return rc;
}

static ncclResult_t isend_v10(void *comm, void *data, size_t bytes, int tag, void *mhandle,
                              void *phandle, void **request)
{
    (void)phandle;
    return isend_v9(comm, data, bytes, tag, mhandle, request);
}

static ncclResult_t irecv_v10(void *comm, int n, void **data, size_t *sizes, int *tags,
                              void **mhandles, void **phandles, void **request)
{
    if (!phandles) return outsider_wrong("no events");
    return irecv_v9(comm, n, data, sizes, tags, mhandles, request);
}

/* ---- as of versions 11 and 12 ---- */

static ncclResult_t make_virtual_v11(int *dev, ncclNetVDeviceProps_v11_t *members)
{
    return outsider_make_virtual(dev, members->devs, members->ndevs);
}

static ncclResult_t make_virtual_v12(int *dev, ncclNetVDeviceProps_v12_t *members)
{
    return outsider_make_virtual(dev, members->devs, members->ndevs);
}

static ncclResult_t properties_v11(int dev, ncclNetProperties_v11_t *props)
{
    ncclNetProperties_v9_t old;
    ncclResult_t rc = properties_v9(dev, &old);
    memset(props, 0, sizeof(*props));
    memcpy(props, &old, sizeof(old)); /* which version 11 goes on from */
    props->maxMultiRequestSize = 2;
    return rc;
}

static ncclResult_t properties_v12(int dev, ncclNetProperties_v12_t *props)
{
    ncclNetProperties_v9_t old;
    ncclResult_t rc = properties_v9(dev, &old);
    if (rc) return rc;
    *props = (ncclNetProperties_v12_t){.name = old.name,
                                       .guid = old.guid,
                                       .ptrSupport = old.ptrSupport,
                                       .regIsGlobal = 1,
                                       .forceFlush = 1,
                                       .speed = old.speed,
                                       .port = old.port,
                                       .latency = old.latency,
                                       .maxComms = old.maxComms,
                                       .maxRecvs = old.maxRecvs,
                                       .vProps = {1, {dev}},
                                       .maxP2pBytes = old.maxP2pBytes,
                                       .maxCollBytes = old.maxCollBytes,
                                       .maxMultiRequestSize = 2,
                                       .railId = 5,
                                       .planeId = 6};
    return ncclSuccess;
}

static ncclResult_t listen_v11(void *ctx, int dev, void *handle, void **comm)
{
    return ctx ? listen_v5(dev, handle, comm) : outsider_wrong("no context");
}

static ncclResult_t connect_v11(void *ctx, int dev, void *handle, void **comm,
                                ncclNetDeviceHandle_v11_t **offload)
{
    struct context *context = ctx;
    if (!context) return outsider_wrong("no context");
    ncclResult_t rc = connect_v7(dev, handle, comm, offload);
    if (*comm) outsider_say("connected with traffic class %d", context->traffic_class);
    return rc;
}

static ncclResult_t finalize_v11(void *ctx)
{
    free(ctx);
    return outsider_fault("finalize-fails") ? ncclInternalError : ncclSuccess;
}

/* ---- tables: what is there at first, and all of it ---- */

static ncclResult_t init_v2(ncclDebugLogger_t log);
static ncclResult_t init_v3(ncclDebugLogger_t log);
static ncclResult_t init_v4(ncclDebugLogger_t log);
static ncclResult_t init_v5(ncclDebugLogger_t log);
static ncclResult_t init_v6(ncclDebugLogger_t log);
static ncclResult_t init_v7(ncclDebugLogger_t log);
static ncclResult_t init_v8(ncclDebugLogger_t log);
static ncclResult_t init_v9(ncclDebugLogger_t log);
static ncclResult_t init_v10(ncclDebugLogger_t log, ncclProfilerCallback_t profiler);
static ncclResult_t init_v11(void **ctx, uint64_t comm_id, ncclNetCommConfig_v11_t *config,
                             ncclDebugLogger_t log, ncclProfilerCallback_t profiler);
static ncclResult_t init_v12(void **ctx, uint64_t comm_id, ncclNetCommConfig_v12_t *config,
                             ncclDebugLogger_t log, ncclProfilerCallback_t profiler);

#pragma GCC visibility push(default)
ncclNet_v2_t outsider_v2 = {.name = "Outsider", .init = init_v2};
ncclNet_v3_t outsider_v3 = {.name = "Outsider", .init = init_v3};
ncclNet_v4_t outsider_v4 = {.name = "Outsider", .init = init_v4};
ncclNet_v5_t outsider_v5 = {.name = "Outsider", .init = init_v5};
ncclNet_v6_t outsider_v6 = {.name = "Outsider", .init = init_v6};
ncclNet_v7_t outsider_v7 = {.name = "Outsider", .init = init_v7};
ncclNet_v8_t outsider_v8 = {.name = "Outsider", .init = init_v8};
ncclNet_v9_t outsider_v9 = {.name = "Outsider", .init = init_v9};
ncclNet_v10_t outsider_v10 = {.name = "Outsider", .init = init_v10};
ncclNet_v11_t outsider_v11 = {.name = "Outsider", .init = init_v11};
ncclNet_v12_t outsider_v12 = {.name = "Outsider", .init = init_v12};
#pragma GCC visibility pop

/* Functions in the order of a table, after the name; of version 2 the two that differ come before
 * listen. */
static void leave_out(void *table, int version)
{
    static const char *const names[] = {"init",    "devices",   "getProperties", "listen",
                                        "connect", "accept",    "regMr",         "regMrDmaBuf",
                                        "deregMr", "isend",     "irecv",         "iflush",
                                        "test",    "closeSend", "closeRecv",     "closeListen"};
    const char *what = getenv("OUTSIDER_NULL");
    size_t index = 1;
    for (size_t i = 0; what && i < sizeof(names) / sizeof(names[0]); i++, index++) {
        if (i == 7 && version < 6) index--;
        if (i == 3 && version == 2) index++;
        if (!strcmp(names[i], what))
            memset((char *)table + index * sizeof(void *), 0, sizeof(void *));
    }
}

static ncclResult_t init_v2(ncclDebugLogger_t log)
{
    outsider_v2 = (ncclNet_v2_t){"Outsider",
                                 init_v2,
                                 outsider_devices,
                                 path_v2,
                                 types_v2,
                                 listen_v2,
                                 connect_v2,
                                 accept_v2,
                                 reg_v2,
                                 outsider_dereg,
                                 isend_v2,
                                 isend_v2,
                                 flush_v2,
                                 outsider_test,
                                 outsider_close,
                                 outsider_close,
                                 outsider_close_listen};
    leave_out(&outsider_v2, 2);
    return outsider_begin(log);
}

static ncclResult_t init_v3(ncclDebugLogger_t log)
{
    outsider_v3 =
        (ncclNet_v3_t){"Outsider",     init_v3,        outsider_devices, properties_v4,
                       listen_v2,      connect_v2,     accept_v2,        reg_v2,
                       outsider_dereg, isend_v2,       isend_v2,         flush_v2,
                       outsider_test,  outsider_close, outsider_close,   outsider_close_listen};
    leave_out(&outsider_v3, 3);
    return outsider_begin(log);
}

static ncclResult_t init_v4(ncclDebugLogger_t log)
{
    outsider_v4 =
        (ncclNet_v4_t){"Outsider",     init_v4,        outsider_devices, properties_v4,
                       listen_v2,      connect_v2,     accept_v2,        reg_v2,
                       outsider_dereg, isend_v2,       isend_v2,         flush_v4,
                       outsider_test,  outsider_close, outsider_close,   outsider_close_listen};
    leave_out(&outsider_v4, 4);
    return outsider_begin(log);
}

static ncclResult_t init_v5(ncclDebugLogger_t log)
{
    outsider_v5 =
        (ncclNet_v5_t){"Outsider",     init_v5,        outsider_devices, properties_v6,
                       listen_v5,      connect_v5,     accept_v5,        reg_v2,
                       outsider_dereg, isend_v5,       irecv_v5,         flush_v5,
                       outsider_test,  outsider_close, outsider_close,   outsider_close_listen};
    leave_out(&outsider_v5, 5);
    return outsider_begin(log);
}

static ncclResult_t init_v6(ncclDebugLogger_t log)
{
    outsider_v6 = (ncclNet_v6_t){"Outsider",
                                 init_v6,
                                 outsider_devices,
                                 properties_v6,
                                 listen_v5,
                                 connect_v5,
                                 accept_v5,
                                 reg_v2,
                                 NULL,
                                 outsider_dereg,
                                 isend_v5,
                                 irecv_v5,
                                 flush_v5,
                                 outsider_test,
                                 outsider_close,
                                 outsider_close,
                                 outsider_close_listen};
    leave_out(&outsider_v6, 6);
    return outsider_begin(log);
}

static ncclResult_t init_v7(ncclDebugLogger_t log)
{
    outsider_v7 = (ncclNet_v7_t){"Outsider",
                                 init_v7,
                                 outsider_devices,
                                 properties_v7,
                                 listen_v5,
                                 connect_v7,
                                 accept_v7,
                                 reg_v2,
                                 NULL,
                                 outsider_dereg,
                                 isend_v5,
                                 irecv_v5,
                                 flush_v5,
                                 outsider_test,
                                 outsider_close,
                                 outsider_close,
                                 outsider_close_listen,
                                 NULL,
                                 outsider_consumed};
    leave_out(&outsider_v7, 7);
    return outsider_begin(log);
}

static ncclResult_t init_v8(ncclDebugLogger_t log)
{
    outsider_v8 = (ncclNet_v8_t){"Outsider",
                                 init_v8,
                                 outsider_devices,
                                 properties_v8,
                                 listen_v5,
                                 connect_v7,
                                 accept_v7,
                                 outsider_reg_global,
                                 NULL,
                                 outsider_dereg,
                                 isend_v5,
                                 irecv_v5,
                                 flush_v5,
                                 outsider_test,
                                 outsider_close,
                                 outsider_close,
                                 outsider_close_listen,
                                 NULL,
                                 outsider_consumed};
    leave_out(&outsider_v8, 8);
    return outsider_begin(log);
}

static ncclResult_t init_v9(ncclDebugLogger_t log)
{
    outsider_v9 = (ncclNet_v9_t){"Outsider",
                                 init_v9,
                                 outsider_devices,
                                 properties_v9,
                                 listen_v5,
                                 connect_v7,
                                 accept_v7,
                                 outsider_reg_global,
                                 NULL,
                                 outsider_dereg,
                                 isend_v9,
                                 irecv_v9,
                                 flush_v5,
                                 outsider_test,
                                 outsider_close,
                                 outsider_close,
                                 outsider_close_listen,
                                 NULL,
                                 outsider_consumed,
                                 make_virtual_v9};
    leave_out(&outsider_v9, 9);
    return outsider_begin(log);
}

static ncclResult_t init_v10(ncclDebugLogger_t log, ncclProfilerCallback_t profiler)
{
    outsider_v10 = (ncclNet_v10_t){"Outsider",
                                   init_v10,
                                   outsider_devices,
                                   properties_v10,
                                   listen_v5,
                                   connect_v10,
                                   accept_v7,
                                   outsider_reg_global,
                                   NULL,
                                   outsider_dereg,
                                   isend_v10,
                                   irecv_v10,
                                   flush_v5,
                                   outsider_test,
                                   outsider_close,
                                   outsider_close,
                                   outsider_close_listen,
                                   NULL,
                                   outsider_consumed,
                                   make_virtual_v10};
    leave_out(&outsider_v10, 10);
    return profiler ? outsider_begin(log) : ncclInternalError;
}

/* From version 11 on every communicator comes by: the first begins. */
static ncclResult_t open_context(void **ctx, int traffic_class, ncclDebugLogger_t log)
{
    static bool known;
    struct context *context = calloc(1, sizeof(*context));
    ncclResult_t rc = known ? ncclSuccess : outsider_begin(log);
    known |= rc == ncclSuccess;
    if (!context || rc) {
        free(context);
        return rc ? rc : ncclSystemError;
    }
    context->traffic_class = traffic_class;
    *ctx = context;
    return ncclSuccess;
}

static void fill_v11(void)
{
    outsider_v11 = (ncclNet_v11_t){"Outsider",
                                   init_v11,
                                   outsider_devices,
                                   properties_v11,
                                   listen_v11,
                                   connect_v11,
                                   accept_v7,
                                   outsider_reg_global,
                                   NULL,
                                   outsider_dereg,
                                   isend_v10,
                                   irecv_v10,
                                   flush_v5,
                                   outsider_test,
                                   outsider_close,
                                   outsider_close,
                                   outsider_close_listen,
                                   NULL,
                                   outsider_consumed,
                                   make_virtual_v11,
                                   finalize_v11,
                                   NULL};
    leave_out(&outsider_v11, 11);
}

static ncclResult_t init_v11(void **ctx, uint64_t comm_id, ncclNetCommConfig_v11_t *config,
                             ncclDebugLogger_t log, ncclProfilerCallback_t profiler)
{
    (void)comm_id;
    if (!outsider_v11.test) fill_v11();
    return profiler && config ? open_context(ctx, config->trafficClass, log) : ncclInternalError;
}

static void fill_v12(void)
{
    outsider_v12 = (ncclNet_v12_t){"Outsider",
                                   init_v12,
                                   outsider_devices,
                                   properties_v12,
                                   listen_v11,
                                   connect_v11,
                                   accept_v7,
                                   outsider_reg_global,
                                   NULL,
                                   outsider_dereg,
                                   isend_v10,
                                   irecv_v10,
                                   flush_v5,
                                   outsider_test,
                                   outsider_close,
                                   outsider_close,
                                   outsider_close_listen,
                                   NULL,
                                   outsider_consumed,
                                   make_virtual_v12,
                                   finalize_v11,
                                   NULL};
    leave_out(&outsider_v12, 12);
}

static ncclResult_t init_v12(void **ctx, uint64_t comm_id, ncclNetCommConfig_v12_t *config,
                             ncclDebugLogger_t log, ncclProfilerCallback_t profiler)
{
    (void)comm_id;
    if (!outsider_v12.test) fill_v12();
    return profiler && config ? open_context(ctx, config->trafficClass, log) : ncclInternalError;
}
