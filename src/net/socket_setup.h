/* A communicator's use of the socket network, and how its connections are made. Private to the
 * room. A connection that exists is in socket.h. */
#pragma once

#include "base/network/networks.h"
#include "base/network/socket.h"
#include "net/net.h"
#include "net/socket_shake.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct socket_ends;
struct socket_port;
struct socket_connector;

/* ---- one communicator's use of the network ---- */

struct socket_context {
    struct tt_net_trust trust;
    const struct tt_netif *netifs; /* static; by device */
    _Atomic uint32_t cut_devices;  /* bit per device: a peer could not be reached through it */
    bool sealed;                   /* TUTTI_NET_ENCRYPT */
    ncclProfilerCallback_t profiler;
    pthread_mutex_t lock;                          /* guards the fields below */
    struct socket_connector *connectors;           /* owned: connections that are being made */
    struct socket_port *ports[TT_INTERFACES_MOST]; /* owned, by device; NULL: no listener so far */
};

/* socket_port.c: listeners of a device. NULL: out of memory. */
struct socket_port *tt_socket_port_create(const struct socket_context *context);
void tt_socket_port_destroy(struct socket_port *port);

/* The listener's handle, which the sender gets from the receiver. Not trusted until it is checked.
 */
struct socket_handle {
    union tt_addr addr;
    union tt_addr spare;               /* the same over another interface; AF_UNSPEC: none */
    union tt_addr third;               /* the same over one more, where both are cut */
    unsigned char id[SOCKET_ID_BYTES]; /* of the listener, random */
    int32_t rank;                      /* of the listener */
    uint32_t nlanes;
};
_Static_assert(sizeof(struct socket_handle) <= NCCL_NET_HANDLE_MAXSIZE, "a handle holds it");

/* The device of a way of another device's connections, by number. */
static inline int tt_socket_way_device(int dev, int way)
{
    if (way == 0) return dev;
    if (way == 1) return dev ? 0 : 1;
    return dev > 1 ? 1 : 2;
}

/* socket_accept.c: listen at the interface of the device, netifs[dev], and for peers that do not
 * reach it at the first one (of the first: at the second one). dev < TT_INTERFACES_MOST. */
ncclResult_t tt_socket_net_listen(struct socket_context *context, int dev,
                                  const struct tt_netif *netifs, void *opaque, void **listen_comm);
ncclResult_t tt_socket_net_unlisten(void *listen_comm);
struct socket_origin { /* how a connection was made */
    int dev;
    bool has_spare; /* the handle has two addresses */
    int way;        /* it was made to handle.addr, handle.spare, handle.third */
    uint64_t connection;
    struct socket_handle handle;
};
/* socket_connect.c: connect to the listener of a handle. ncclSuccess: the caller owns the ends;
 * ncclInProgress: call again. */
ncclResult_t tt_socket_net_connect(struct socket_context *context, int dev, void *opaque,
                                   struct socket_ends *ends_out, struct socket_origin *origin_out);
/* End all connections that are being made. */
void tt_socket_connectors_free(struct socket_context *context);

/* A new TCP connection for a lane of an existing connection, with its handshake. */
struct socket_reconnect {
    int fd; /* -1: none */
    struct socket_shake shake;
};
/* socket_connect.c: connect one lane again, to the address in the origin's handle. A trial is not
 * reported when it fails, and stops when the peer has answered, until tt_socket_connector_go_on().
 */
ncclResult_t tt_socket_connector_reopen(const struct socket_origin *origin, int lane, bool trial,
                                        struct socket_connector **connector_out);
bool tt_socket_connector_is_answered(const struct socket_connector *connector);
void tt_socket_connector_go_on(struct socket_connector *connector);
/* It is no lane of a connection that the peer knows: as for the first time. */
void tt_socket_connector_begin(struct socket_connector *connector);
/* ncclSuccess: the caller owns *reconnect_out; ncclInProgress: call again. Failures are reported.
 */
ncclResult_t tt_socket_connector_reconnect(const struct socket_context *context,
                                           struct socket_connector *connector,
                                           struct socket_reconnect *reconnect_out);
void tt_socket_connector_free(struct socket_connector *connector);
