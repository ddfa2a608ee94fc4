/* Sockets that take connections, and what unauthenticated peers may cost there. Service's lock
 * held; the service is acquired. */
#pragma once

#include "base/socket.h"
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

/* Takes the fd on success. */
ncclResult_t tt_listener_open(int fd, bool local, struct tt_listener **listener_out);
void tt_listener_close(struct tt_listener *listener);
/* Address of the process's TCP listener, which is made at first need, and once more when a network
 * has come up since only the loopback interface was there. */
ncclResult_t tt_listener_main(union tt_addr *addr_out);
/* The same at a second interface; AF_UNSPEC: there is none, or no descriptor for it. Behind
 * tt_listener_main(). */
void tt_listener_spare(union tt_addr *addr_out);
/* It is readable: take what may come in. */
void tt_listener_accept(struct tt_listener *listener);
