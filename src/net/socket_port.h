/* The listeners of a communicator on one device, which share one socket. Private to the room. */
#pragma once

#include "net/socket.h"
#include "net/socket_setup.h"

struct socket_port;

struct socket_listener { /* waits for one connection */
    struct socket_listener *next;
    struct socket_port *port; /* borrowed; NULL: not in one */
    ncclProfilerCallback_t profiler;
    unsigned char id[SOCKET_ID_BYTES];
    int nlanes;
    struct socket_split split;
    uint64_t connection; /* number of the connection in `ends` */
    int nproved;
    struct socket_ends ends; /* fd -1: not accepted yet */
    /* owned; by lane: new TCP connections for the existing `connection`; NULL: the listener waits
     * for a first one */
    struct socket_reconnect *reconnects;
};

enum { SOCKET_SPARES = 2 };
/* Add the listener and fill its handle. The first listener opens the socket, the last one to leave
 * closes it. Leave after an error as well.
 * spares  further interfaces of the same address family, SOCKET_SPARES; NULL: none
 * handle  set to all addresses */
ncclResult_t tt_socket_port_enter(struct socket_port *port, const union tt_addr *netif,
                                  const union tt_addr *const *spares,
                                  struct socket_listener *listener, struct socket_handle *handle);
/* The same for a listener with reconnects, while the listener that accepted the connection is in
 * the port. */
ncclResult_t tt_socket_port_stay(struct socket_port *port, struct socket_listener *listener);
bool tt_socket_port_has_spare(const struct socket_port *port);
const struct socket_context *tt_socket_port_context(const struct socket_port *port);
void tt_socket_port_leave(struct socket_port *port, struct socket_listener *listener);
/* Accept and authenticate for all listeners. ncclSuccess: this listener's ends are complete and the
 * caller's; else ncclInProgress. Any thread. */
ncclResult_t tt_socket_port_serve(struct socket_port *port, struct socket_listener *listener,
                                  struct socket_ends *ends_out);
/* The same for a lane that is connected again; reconnect_out->fd is -1 until it is. */
ncclResult_t tt_socket_port_resumed(struct socket_port *port, struct socket_listener *listener,
                                    int lane, struct socket_reconnect *reconnect_out);
