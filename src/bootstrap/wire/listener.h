/* Listening sockets, with limits for unauthenticated connections. Service's lock held; the service
 * is acquired. */
#pragma once

#include "base/network/socket.h"
#include "nccl.h"

#include <stdbool.h>
#include <stdint.h>

struct tt_listener {
    struct tt_listener *next;
    uint64_t token;
    int fd;
    bool local; /* abstract local socket; only LOCAL acceptors */
    union tt_addr addr;
};

/* Serve a listening socket. Owns the fd on success. Errors: ncclSystemError. */
ncclResult_t tt_listener_open(int fd, bool local, struct tt_listener **listener_out);
void tt_listener_close(struct tt_listener *listener);
/* Address of the process's TCP listener. It is made at first use, and made again when the first one
 * had only the loopback interface and a network has come up since. */
ncclResult_t tt_listener_main(union tt_addr *addr_out);
/* Its address at a second interface; AF_UNSPEC: there is none, or no descriptor for it. Call it
 * after tt_listener_main(). */
void tt_listener_spare(union tt_addr *addr_out);
/* Accept connections, within the limits. The socket is readable. */
void tt_listener_accept(struct tt_listener *listener);
