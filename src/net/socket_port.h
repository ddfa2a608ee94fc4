/* Listeners of a communicator on one device and the one socket they share. Private to the room. */
#pragma once

#include "net/socket.h"

struct socket_port;

struct socket_listener { /* waits for one connection */
    struct socket_listener *next;
    struct socket_port *port; /* borrowed; NULL: not entered */
    ncclProfilerCallback_t profiler;
    unsigned char id[SOCKET_ID_BYTES];
    int nlanes;
    uint64_t connection; /* whose lanes are in `ends` */
    int nproved;
    struct socket_ends ends; /* fd -1: not there yet */
    /* owned; by lane, what came of `connection`, which is there already; NULL: it waits for one */
    struct socket_comeback *comebacks;
};

/* Take the listener in and say where connectors find it; the socket is opened for the first one
 * and closed after the last one. The listener has to leave after an error too.
 * spare   another interface of the same family by which it is found; NULL: none
 * handle  gets both addresses */
ncclResult_t tt_socket_port_enter(struct socket_port *port, const union tt_addr *netif,
                                  const union tt_addr *spare, struct socket_listener *listener,
                                  struct socket_handle *handle);
/* The same for a listener with comebacks, while the one that got the connection is there. */
ncclResult_t tt_socket_port_stay(struct socket_port *port, struct socket_listener *listener);
bool tt_socket_port_has_spare(const struct socket_port *port);
const struct socket_context *tt_socket_port_context(const struct socket_port *port);
void tt_socket_port_leave(struct socket_port *port, struct socket_listener *listener);
/* Look who has come, for all listeners; ncclSuccess and the ends when this one's are complete, else
 * ncclInProgress. Any thread. */
ncclResult_t tt_socket_port_serve(struct socket_port *port, struct socket_listener *listener,
                                  struct socket_ends *ends_out);
/* The same for a lane that comes anew; comeback_out->fd is -1 while it has not. */
ncclResult_t tt_socket_port_resumed(struct socket_port *port, struct socket_listener *listener,
                                    int lane, struct socket_comeback *comeback_out);
