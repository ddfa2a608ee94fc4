/* The built-in network NET/Socket behind the newest net ABI. Nothing here blocks: bytes move inside
 * test, in the caller's thread, and in those of socket_threads.c. */
#include "net/socket.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/network/networks.h"
#include "base/param.h"
#include "base/secret/encryption.h"
#include "net/socket_port.h"
#include "net/socket_setup.h"
#include "net/socket_split.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices: the interfaces, found once per process ---- */

static struct tt_interfaces *interfaces(void)
{
    return &tt_networks()->interfaces;
}

static void find_devices(void)
{
    char line[1024] = "";
    size_t used = 0;
    interfaces()->rc =
        tt_netif_list(interfaces()->netifs, TT_INTERFACES_MOST, &interfaces()->count);
    for (int i = 0; !interfaces()->rc && i < interfaces()->count && used < sizeof(line); i++) {
        char addr[64];
        used += (size_t)snprintf(line + used, sizeof(line) - used, " [%d]%s:%s", i,
                                 interfaces()->netifs[i].name,
                                 tt_addr_text(&interfaces()->netifs[i].addr, addr, sizeof(addr)));
    }
    if (!interfaces()->rc) tt_info(TT_LOG_INIT | TT_LOG_NET, "NET/Socket : Using%s", line);
}

static ncclResult_t socket_devices(int *ndev)
{
    pthread_once(&interfaces()->once, find_devices);
    *ndev = interfaces()->count;
    return interfaces()->rc;
}

static ncclResult_t check_device(int dev)
{
    if (dev >= 0 && dev < interfaces()->count) return ncclSuccess;
    return tt_fail(ncclInvalidArgument, "NET/Socket: there is no device %d (of %d)", dev,
                   interfaces()->count);
}

static ncclResult_t socket_properties(int dev, ncclNetProperties_v12_t *props)
{
    ncclResult_t rc = check_device(dev);
    if (rc) return rc;
    struct tt_netif *netif = &interfaces()->netifs[dev];
    *props = (ncclNetProperties_v12_t){.name = netif->name,
                                       .pciPath = netif->pci_path[0] ? netif->pci_path : NULL,
                                       .guid = (uint64_t)dev,
                                       .ptrSupport = NCCL_PTR_HOST,
                                       .speed = netif->speed_mbps,
                                       .maxComms = 65536,
                                       .maxRecvs = 1,
                                       .netDeviceType = NCCL_NET_DEVICE_HOST,
                                       .vProps = {.ndevs = 1, .devs = {dev}},
                                       .maxP2pBytes = MAX_NET_SIZE,
                                       .maxCollBytes = MAX_NET_SIZE,
                                       .maxMultiRequestSize = 1,
                                       .railId = NCCL_NET_ID_UNDEF,
                                       .planeId = NCCL_NET_ID_UNDEF};
    return ncclSuccess;
}

/* ---- context ---- */

static ncclResult_t socket_init(void **ctx, uint64_t comm_id, ncclNetCommConfig_v12_t *config,
                                ncclDebugLogger_t log, ncclProfilerCallback_t profiler)
{
    (void)comm_id, (void)config, (void)log;
    pthread_once(&interfaces()->once, find_devices);
    if (interfaces()->rc) return interfaces()->rc;
    if (sodium_init() < 0) return tt_fail(ncclSystemError, "NET/Socket: libsodium does not start");
    struct socket_context *context = tt_calloc(1, sizeof(*context));
    if (!context) return tt_fail(ncclSystemError, "NET/Socket: out of memory");
    context->profiler = profiler;
    context->netifs = interfaces()->netifs;
    context->sealed = tt_encryption_wanted();
    if (context->sealed) tt_info(TT_LOG_NET, "NET/Socket: data is encrypted");
    pthread_mutex_init(&context->lock, NULL);
    *ctx = context;
    return ncclSuccess;
}

void tt_net_socket_set_trust(void *ctx, const struct tt_net_trust *trust)
{
    struct socket_context *context = ctx;
    context->trust = *trust;
    tt_seal_mix(context->trust.key);
}

static ncclResult_t socket_finalize(void *ctx)
{
    struct socket_context *context = ctx;
    if (!context) return ncclSuccess;
    tt_socket_connectors_free(context);
    for (int dev = 0; dev < TT_INTERFACES_MOST; dev++)
        tt_socket_port_destroy(context->ports[dev]);
    pthread_mutex_destroy(&context->lock);
    sodium_memzero(context, sizeof(*context));
    free(context);
    return ncclSuccess;
}

/* ---- connections ---- */

static ncclResult_t socket_listen(void *ctx, int dev, void *opaque, void **listen_comm)
{
    ncclResult_t rc = check_device(dev);
    return rc ? rc : tt_socket_net_listen(ctx, dev, interfaces()->netifs, opaque, listen_comm);
}

/* The link, if there is one and it became what it should. */
static ncclResult_t hand_out(struct socket_link *link, ncclResult_t rc, void **comm_out)
{
    if (link && !rc) {
        *comm_out = link;
        return ncclSuccess;
    }
    tt_socket_link_destroy(link);
    return rc ? rc : ncclSystemError;
}

static ncclResult_t socket_connect(void *ctx, int dev, void *opaque, void **send_comm,
                                   ncclNetDeviceHandle_v12_t **device)
{
    (void)device;
    struct socket_context *context = ctx;
    ncclResult_t rc = check_device(dev);
    struct socket_ends ends;
    struct socket_origin origin;
    *send_comm = NULL;
    if (!rc) rc = tt_socket_net_connect(ctx, dev, opaque, &ends, &origin);
    if (rc) return rc == ncclInProgress ? ncclSuccess : rc;
    ends.split = tt_socket_split_of(&context->netifs[dev], false);
    struct socket_link *link = tt_socket_link_create(&ends, context->profiler);
    sodium_memzero(ends.keys, sizeof(ends.keys));
    if (link) link->one_way = origin.handle.spare.sa.sa_family != AF_UNSPEC;
    if (link && origin.has_spare) rc = tt_socket_resume_sender(link, context, &origin);
    return hand_out(link, rc, send_comm);
}

static ncclResult_t socket_accept(void *listen_comm, void **recv_comm,
                                  ncclNetDeviceHandle_v12_t **device)
{
    (void)device;
    struct socket_listener *listener = listen_comm;
    struct socket_ends ends;
    *recv_comm = NULL;
    ncclResult_t rc = tt_socket_port_serve(listener->port, listener, &ends);
    if (rc) return rc == ncclInProgress ? ncclSuccess : rc;
    ends.nlanes = listener->nlanes;
    ends.split = listener->split;
    struct socket_link *link = tt_socket_link_create(&ends, listener->profiler);
    sodium_memzero(ends.keys, sizeof(ends.keys));
    if (link && tt_socket_port_has_spare(listener->port))
        rc = tt_socket_resume_receiver(link, listener);
    return hand_out(link, rc, recv_comm);
}

bool tt_net_socket_is_two_way(const void *ctx)
{
    const struct socket_context *context = ctx;
    return interfaces()->count == 1 && !context->sealed;
}

bool tt_net_socket_has_paths(void)
{
    return interfaces()->count > 1;
}

ncclResult_t tt_net_socket_reverse(void *comm, void **reverse_out)
{
    struct socket_link *link = comm;
    *reverse_out = NULL;
    if (link->one_way || link->resume || link->twin || link->lanes[0].seal) return ncclSuccess;
    *reverse_out = tt_socket_link_reverse(link);
    return *reverse_out ? ncclSuccess : ncclSystemError;
}

static ncclResult_t socket_close(void *comm)
{
    tt_socket_link_destroy(comm);
    return ncclSuccess;
}

static ncclResult_t socket_reg(void *comm, void *data, size_t size, int type, void **mhandle)
{
    (void)comm, (void)data, (void)size;
    *mhandle = NULL;
    if (type == NCCL_PTR_HOST) return ncclSuccess;
    return tt_fail(ncclInternalError,
                   "NET/Socket: memory of type %d cannot be registered, only "
                   "host memory",
                   type);
}

static ncclResult_t socket_dereg(void *comm, void *mhandle)
{
    (void)comm, (void)mhandle;
    return ncclSuccess;
}

/* ---- requests ---- */

static ncclResult_t socket_isend(void *comm, void *data, size_t size, int tag, void *mhandle,
                                 void *phandle, void **request)
{
    (void)tag, (void)mhandle;
    const struct tt_net_message message = {.data = data, .bytes = size, .event = phandle};
    return tt_net_socket_post(comm, &message, request);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the net ABI */
static ncclResult_t socket_irecv(void *comm, int n, void **data, size_t *sizes, int *tags,
                                 void **mhandles, void **phandles, void **request)
{
    (void)tags, (void)mhandles;
    if (n != 1) return tt_fail(ncclInternalError, "NET/Socket: one receive at a time, not %d", n);
    const struct tt_net_message message = {
        .data = data[0], .bytes = sizes[0], .event = phandles ? phandles[0] : NULL};
    return tt_net_socket_post(comm, &message, request);
}

/* Host memory needs none, and no other memory can be registered. */
/* NOLINTNEXTLINE(readability-non-const-parameter): the net ABI */
static ncclResult_t socket_flush(void *comm, int n, void **data, int *sizes, void **mhandles,
                                 void **request)
{
    (void)comm, (void)n, (void)data, (void)sizes, (void)mhandles;
    *request = NULL;
    return ncclSuccess;
}

const ncclNet_v12_t tt_net_socket = {
    .name = "Socket",
    .init = socket_init,
    .devices = socket_devices,
    .getProperties = socket_properties,
    .listen = socket_listen,
    .connect = socket_connect,
    .accept = socket_accept,
    .regMr = socket_reg,
    .deregMr = socket_dereg,
    .isend = socket_isend,
    .irecv = socket_irecv,
    .iflush = socket_flush,
    .test = tt_socket_test,
    .closeSend = socket_close,
    .closeRecv = socket_close,
    .closeListen = tt_socket_net_unlisten,
    .finalize = socket_finalize,
};
