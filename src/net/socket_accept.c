/* The listening half of a connection: the handle, and the lanes once they have proved themselves at
 * the communicator's port. Polled: no call waits. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/socket_port.h"
#include "net/socket_setup.h"
#include "net/socket_split.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ncclResult_t tt_socket_net_unlisten(void *listen_comm)
{
    struct socket_listener *listener = listen_comm;
    if (!listener) return ncclSuccess;
    if (listener->port) tt_socket_port_leave(listener->port, listener);
    for (int i = 0; i < listener->nlanes; i++) {
        if (listener->ends.fds[i] >= 0) close(listener->ends.fds[i]);
        if (listener->reconnects && listener->reconnects[i].fd >= 0)
            close(listener->reconnects[i].fd);
    }
    free(listener->reconnects);
    sodium_memzero(listener, sizeof(*listener));
    free(listener);
    return ncclSuccess;
}

/* The device's port, made when the first listener comes. NULL: out of memory. */
static struct socket_port *port_of(struct socket_context *context, int dev)
{
    pthread_mutex_lock(&context->lock);
    if (!context->ports[dev]) context->ports[dev] = tt_socket_port_create(context);
    struct socket_port *port = context->ports[dev];
    pthread_mutex_unlock(&context->lock);
    return port;
}

ncclResult_t tt_socket_net_listen(struct socket_context *context, int dev,
                                  const struct tt_netif *netifs, void *opaque, void **listen_comm)
{
    const struct tt_netif *netif = &netifs[dev];
    const union tt_addr *spares[SOCKET_SPARES] = {NULL};
    for (int k = 0, way = 1; way <= SOCKET_SPARES; way++) {
        const int at = tt_socket_way_device(dev, way);
        if (at >= TT_INTERFACES_MOST || (k == 0 && way > 1)) break;
        const union tt_addr *other = &netifs[at].addr; /* AF_UNSPEC behind the last one */
        if (other->sa.sa_family == netif->addr.sa.sa_family) spares[k++] = other;
    }
    struct socket_port *port = port_of(context, dev);
    if (!port) return tt_fail(ncclSystemError, "NET/Socket: out of memory for a listener");
    struct socket_listener *listener = tt_calloc(1, sizeof(*listener));
    if (!listener) return tt_fail(ncclSystemError, "NET/Socket: out of memory for a listener");
    listener->profiler = context->profiler;
    listener->ends.sealed = context->sealed;
    listener->split = tt_socket_split_of(netif, true);
    listener->nlanes = 1 + listener->split.threads * listener->split.each;
    for (int i = 0; i < listener->nlanes; i++)
        listener->ends.fds[i] = -1;
    randombytes_buf(listener->id, sizeof(listener->id));
    struct socket_handle handle;
    memset(&handle, 0, sizeof(handle));
    handle.rank = context->trust.rank;
    handle.nlanes = (uint32_t)listener->nlanes;
    memcpy(handle.id, listener->id, sizeof(handle.id));
    ncclResult_t rc = tt_socket_port_enter(port, &netif->addr, spares, listener, &handle);
    if (rc) {
        char why[400];
        snprintf(why, sizeof(why), "%s", tt_last_error());
        if (strncmp(why, "NET/", 4) != 0) tt_error_keep("NET/Socket: listen: %s", why);
        tt_socket_net_unlisten(listener);
        return rc;
    }
    memset(opaque, 0, NCCL_NET_HANDLE_MAXSIZE);
    memcpy(opaque, &handle, sizeof(handle));
    *listen_comm = listener;
    return ncclSuccess;
}
