/* Wire format of addresses, and this process's own address. */
#pragma once

#include "base/network/socket.h"
#include "nccl.h"

struct tt_wire;

/* One address in 24 bytes: family (4, 6; 0: no address), zero, port 2, address 16, IPv6 scope 4. */
#define TT_ADDR_WIRE_BYTES 24
void tt_addr_put(struct tt_wire *wire, const union tt_addr *addr);
void tt_addr_get(struct tt_wire *wire, union tt_addr *addr);

/* Address of the bootstrap interface, port 0; chosen once per process, or again
 * while only the loopback interface was there. Any thread.
 * Errors: ncclInvalidUsage when there is no usable interface. */
ncclResult_t tt_bootstrap_netif(union tt_addr *addr_out);
/* The same of a second interface; AF_UNSPEC: there is none. Call it after tt_bootstrap_netif(). */
void tt_bootstrap_spare_netif(union tt_addr *addr_out);
/* Whether the socket's own end is at the first interface. */
bool tt_bootstrap_at_netif(int fd);
/* The same of the second one. */
bool tt_bootstrap_at_spare(int fd);
