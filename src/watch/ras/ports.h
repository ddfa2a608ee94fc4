/* The ports by which tools ask this process about its job: a local socket for `tutti doctor`, and
 * NCCL's RAS port. Private to the room; the watchdog's thread alone. */
#pragma once

#include <stdbool.h>

struct addrinfo;

struct tt_ports {
    struct addrinfo *ras_at; /* owned: where RAS's port is to be opened; NULL: nowhere */
    bool opened;             /* or tried to */
    int local_fd, ras_fd;    /* owned; valid when `opened`; -1: not open */
};

/* Find out where RAS's port is to be. This may ask a resolver and block: not under a lock.
 * What fails is logged, and the port stays closed. */
void tt_ports_resolve(struct tt_ports *ports);
/* Open both ports. Does nothing the second time. What fails is logged, and the port stays closed.
 */
void tt_ports_open(struct tt_ports *ports);
/* Close both ports. They can be resolved and opened again. */
void tt_ports_close(struct tt_ports *ports);

/* True when the process at the other end of a new connection may read answers. At an address that
 * is not loopback any process may. is_local     the connection came to the local socket, not to
 * RAS's port *proved_out  set to true when that process is this user's or root's, so that it may
 * change things too */
bool tt_ports_may_ask(int fd, bool is_local, bool *proved_out);
