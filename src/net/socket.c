/* The built-in network NET/Socket behind the newest net ABI. Nothing here blocks and there is no
 * thread: bytes move inside isend, irecv and test. */
#include "net/socket.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum connect_state { CONNECT_NEW, CONNECT_STARTED, CONNECT_PROVING };

static const uint64_t proof_nsec =
    2000000000ull; /* a stranger that stays silent makes room after 2 s */

struct socket_devices {
    struct tt_netif netifs[SOCKET_MAX_DEVS];
    int count;
    ncclResult_t rc;
};

static struct socket_devices found;
static pthread_once_t found_once = PTHREAD_ONCE_INIT;

static void find_devices(void)
{
    char line[1024] = "";
    size_t used = 0;
    found.rc = tt_netif_list(found.netifs, SOCKET_MAX_DEVS, &found.count);
    for (int i = 0; !found.rc && i < found.count && used < sizeof(line); i++) {
        char addr[64];
        used += (size_t)snprintf(line + used, sizeof(line) - used, " [%d]%s:%s", i,
                                 found.netifs[i].name,
                                 tt_addr_text(&found.netifs[i].addr, addr, sizeof(addr)));
    }
    if (!found.rc) tt_info(TT_LOG_INIT | TT_LOG_NET, "NET/Socket : Using%s", line);
}

static ncclResult_t socket_init(void **ctx, uint64_t comm_id, ncclNetCommConfig_v12_t *config,
                                ncclDebugLogger_t log, ncclProfilerCallback_t profiler)
{
    (void)comm_id, (void)config, (void)profiler;
    pthread_once(&found_once, find_devices);
    if (found.rc) return found.rc;
    if (sodium_init() < 0) return tt_fail(ncclSystemError, "NET/Socket: libsodium does not start");
    struct socket_context *context = tt_calloc(1, sizeof(*context));
    if (!context) return tt_fail(ncclSystemError, "NET/Socket: out of memory");
    context->log = log;
    *ctx = context;
    return ncclSuccess;
}

void tt_net_socket_key(void *ctx, const unsigned char key[TT_NET_KEY_BYTES])
{
    struct socket_context *context = ctx;
    memcpy(context->key, key, TT_NET_KEY_BYTES);
}

static ncclResult_t socket_finalize(void *ctx)
{
    if (ctx) sodium_memzero(ctx, sizeof(struct socket_context));
    free(ctx);
    return ncclSuccess;
}

static ncclResult_t socket_devices(int *ndev)
{
    pthread_once(&found_once, find_devices);
    *ndev = found.count;
    return found.rc;
}

static ncclResult_t socket_properties(int dev, ncclNetProperties_v12_t *props)
{
    if (dev < 0 || dev >= found.count)
        return tt_fail(ncclInvalidArgument, "NET/Socket: no device %d", dev);
    struct tt_netif *netif = &found.netifs[dev];
    *props = (ncclNetProperties_v12_t){.name = netif->name,
                                       .pciPath = netif->pci_path[0] ? netif->pci_path : NULL,
                                       .guid = (uint64_t)dev,
                                       .ptrSupport = NCCL_PTR_HOST,
                                       .speed = netif->speed_mbps,
                                       .maxComms = 65536,
                                       .maxRecvs = 1,
                                       .netDeviceType = NCCL_NET_DEVICE_HOST,
                                       .vProps = {.ndevs = 1, .devs = {dev}},
                                       .maxP2pBytes = NCCL_MAX_NET_SIZE_BYTES,
                                       .maxCollBytes = NCCL_MAX_NET_SIZE_BYTES,
                                       .maxMultiRequestSize = 1,
                                       .railId = NCCL_NET_ID_UNDEF,
                                       .planeId = NCCL_NET_ID_UNDEF};
    return ncclSuccess;
}

void tt_socket_proof(const struct socket_context *context, const unsigned char cookie[16],
                     unsigned char proof[SOCKET_PROOF_BYTES])
{
    crypto_generichash(proof, SOCKET_PROOF_BYTES, cookie, 16, context->key, sizeof(context->key));
}

static ncclResult_t socket_close_listen(void *listen_comm)
{
    struct socket_listener *listener = listen_comm;
    if (!listener) return ncclSuccess;
    if (listener->candidate >= 0) close(listener->candidate);
    if (listener->fd >= 0) close(listener->fd);
    free(listener);
    return ncclSuccess;
}

static ncclResult_t socket_listen(void *ctx, int dev, void *opaque, void **listen_comm)
{
    struct socket_handle handle = {.fd = -1};
    if (dev < 0 || dev >= found.count)
        return tt_fail(ncclInvalidArgument, "NET/Socket: no device %d", dev);
    struct socket_listener *listener = tt_calloc(1, sizeof(*listener));
    if (!listener) return tt_fail(ncclSystemError, "NET/Socket: out of memory");
    listener->candidate = -1;
    handle.addr = found.netifs[dev].addr;
    ncclResult_t rc = tt_socket_listen(&handle.addr, &listener->fd);
    if (rc) {
        free(listener);
        return rc;
    }
    randombytes_buf(handle.cookie, sizeof(handle.cookie));
    tt_socket_proof(ctx, handle.cookie, listener->expected);
    memset(opaque, 0, NCCL_NET_HANDLE_MAXSIZE);
    memcpy(opaque, &handle, sizeof(handle));
    *listen_comm = listener;
    return ncclSuccess;
}

static void no_delay(int fd)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Connected? ncclInProgress while the kernel is at it. */
static ncclResult_t connect_result(int fd)
{
    int err = 0;
    socklen_t len = sizeof(err);
    union tt_addr addr;
    socklen_t addr_len = sizeof(addr);
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len)) err = errno;
    if (err) {
        errno = err;
        return tt_fail(ncclSystemError, "NET/Socket: connect: %m");
    }
    return getpeername(fd, &addr.sa, &addr_len) ? ncclInProgress : ncclSuccess;
}

static ncclResult_t prove(const struct socket_context *context, struct socket_handle *handle)
{
    unsigned char proof[SOCKET_PROOF_BYTES];
    size_t done = 0;
    tt_socket_proof(context, handle->cookie, proof);
    ncclResult_t rc = tt_socket_send(handle->fd, proof + handle->proved_bytes,
                                     sizeof(proof) - handle->proved_bytes, &done);
    handle->proved_bytes += (uint32_t)done;
    if (rc) return rc;
    return handle->proved_bytes == sizeof(proof) ? ncclSuccess : ncclInProgress;
}

static ncclResult_t advance_connect(const struct socket_context *context,
                                    struct socket_handle *handle)
{
    ncclResult_t rc = ncclSuccess;
    if (handle->state == CONNECT_NEW) {
        int fd = -1;
        rc = tt_socket_connect(&handle->addr, &fd);
        if (rc) return rc;
        handle->fd = fd;
        handle->state = CONNECT_STARTED;
    }
    if (handle->state == CONNECT_STARTED) {
        rc = connect_result(handle->fd);
        if (rc) return rc;
        no_delay(handle->fd);
        handle->state = CONNECT_PROVING;
    }
    return prove(context, handle);
}

static ncclResult_t socket_connect(void *ctx, int dev, void *opaque, void **send_comm,
                                   ncclNetDeviceHandle_v12_t **device)
{
    struct socket_handle *handle = opaque;
    (void)dev, (void)device;
    *send_comm = NULL;
    ncclResult_t rc = advance_connect(ctx, handle);
    if (rc == ncclInProgress) return ncclSuccess;
    if (!rc) *send_comm = tt_socket_link_create(handle->fd, true);
    if (!rc && !*send_comm) rc = tt_fail(ncclSystemError, "NET/Socket: out of memory");
    if (rc && handle->state != CONNECT_NEW && handle->fd >= 0) close(handle->fd);
    return rc;
}

static void drop_candidate(struct socket_listener *listener)
{
    close(listener->candidate);
    listener->candidate = -1;
}

/* True when the candidate has proved that it belongs to us. */
static bool candidate_proved(struct socket_listener *listener)
{
    size_t done = 0;
    ncclResult_t rc = ncclSuccess;
    ssize_t n = recv(listener->candidate, listener->got + listener->proved_bytes,
                     SOCKET_PROOF_BYTES - listener->proved_bytes, MSG_DONTWAIT);
    if (n > 0) done = (size_t)n;
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) rc = ncclRemoteError;
    listener->proved_bytes += (uint32_t)done;
    bool complete = listener->proved_bytes == SOCKET_PROOF_BYTES;
    bool right = complete && !sodium_memcmp(listener->got, listener->expected, SOCKET_PROOF_BYTES);
    bool late = tt_now_nsec() - listener->candidate_nsec > proof_nsec;
    if (!right && (rc || complete || late))
        drop_candidate(listener); /* a stranger: wait for the next */
    return right;
}

static ncclResult_t socket_accept(void *listen_comm, void **recv_comm,
                                  ncclNetDeviceHandle_v12_t **device)
{
    struct socket_listener *listener = listen_comm;
    (void)device;
    *recv_comm = NULL;
    if (listener->candidate < 0) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        bool later = fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED);
        if (later) return ncclSuccess;
        if (fd < 0) return tt_fail(ncclSystemError, "NET/Socket: accept: %m");
        listener->candidate = fd;
        listener->proved_bytes = 0;
        listener->candidate_nsec = tt_now_nsec();
    }
    if (!candidate_proved(listener)) return ncclSuccess;
    no_delay(listener->candidate);
    *recv_comm = tt_socket_link_create(listener->candidate, false);
    if (!*recv_comm) return tt_fail(ncclSystemError, "NET/Socket: out of memory");
    listener->candidate = -1;
    return ncclSuccess;
}

static ncclResult_t socket_reg(void *comm, void *data, size_t size, int type, void **mhandle)
{
    (void)comm, (void)data, (void)size;
    *mhandle = NULL;
    if (type == NCCL_PTR_HOST) return ncclSuccess;
    return tt_fail(ncclInternalError, "NET/Socket: only host memory can be registered");
}

static ncclResult_t socket_dereg(void *comm, void *mhandle)
{
    (void)comm, (void)mhandle;
    return ncclSuccess;
}

static ncclResult_t post(struct socket_link *link, void *data, size_t size, void **request_out)
{
    *request_out = NULL;
    ncclResult_t rc = tt_socket_link_progress(link);
    if (rc) return rc;
    struct socket_request *request = &link->requests[link->posted % SOCKET_REQUESTS];
    if (request->link) return ncclSuccess; /* all in flight: ask again */
    *request = (struct socket_request){
        .link = link, .bytes = data, .size = size, .header = link->sending ? size : 0};
    link->posted++;
    *request_out = request;
    return tt_socket_link_progress(link);
}

static ncclResult_t socket_isend(void *comm, void *data, size_t size, int tag, void *mhandle,
                                 void *phandle, void **request)
{
    (void)tag, (void)mhandle, (void)phandle;
    return post(comm, data, size, request);
}

static ncclResult_t socket_irecv(void *comm, int n, void **data, size_t *sizes, int *tags,
                                 void **mhandles, void **phandles, void **request)
{
    (void)tags, (void)mhandles, (void)phandles;
    if (n != 1) return tt_fail(ncclInternalError, "NET/Socket: one receive at a time, not %d", n);
    return post(comm, data[0], sizes[0], request);
}

static ncclResult_t socket_flush(void *comm, int n, void **data, int *sizes, void **mhandles,
                                 void **request)
{
    (void)comm, (void)n, (void)data, (void)sizes, (void)mhandles;
    *request = NULL;
    return ncclSuccess;
}

static ncclResult_t socket_test(void *opaque, int *done, int *size)
{
    struct socket_request *request = opaque;
    *done = 0;
    if (!request || !request->link)
        return tt_fail(ncclInternalError, "NET/Socket: test of a request that is not under way");
    ncclResult_t rc = request->done ? ncclSuccess : tt_socket_link_progress(request->link);
    if (rc || !request->done) return rc;
    if (size) *size = (int)request->size;
    request->link = NULL;
    *done = 1;
    return ncclSuccess;
}

static ncclResult_t socket_close(void *comm)
{
    tt_socket_link_destroy(comm);
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
    .test = socket_test,
    .closeSend = socket_close,
    .closeRecv = socket_close,
    .closeListen = socket_close_listen,
    .finalize = socket_finalize,
};
