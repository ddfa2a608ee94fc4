/* TCP sockets and interfaces as NCCL chooses them (NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY). */
#pragma once

#include "nccl.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

union tt_addr {
    struct sockaddr sa;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct tt_netif {
    char name[16];
    union tt_addr addr; /* port 0 */
    int speed_mbps;     /* from sysfs; 10000 when unknown */
    char pci_path[256]; /* sysfs directory; "" for virtual interfaces */
};

/* Usable interfaces in NCCL's order; *count_out of them, at most max.
 * Errors: ncclInvalidUsage when a filter matches nothing, naming the filter and what exists. */
ncclResult_t tt_netif_list(struct tt_netif *netifs, int max, int *count_out);

/* "10.1.2.3<4567>" / "fe80::1%eth0<4567>" as NCCL prints addresses. Returns text. */
const char *tt_addr_text(const union tt_addr *addr, char *text, size_t text_bytes);

/* "host:port", "1.2.3.4:port", "[v6%if]:port". NULL, or why it is no address that is known here. */
const char *tt_addr_fault(const char *text, union tt_addr *addr_out);
/* As tt_addr_fault(). Errors: ncclInvalidArgument naming the text. */
ncclResult_t tt_addr_parse(const char *text, union tt_addr *addr_out);
socklen_t tt_addr_len(const union tt_addr *addr);
/* True for 127.x.x.x and ::1, which other hosts cannot reach. */
bool tt_addr_is_loopback(const union tt_addr *addr);
/* Text to append to a message about an address that does not answer: "" unless it is a loopback
 * address. */
const char *tt_addr_reach_text(const union tt_addr *addr);
/* One address, whatever the ports. */
bool tt_addr_same_ip(const union tt_addr *a, const union tt_addr *b);

/* True when processes of this host do not reach each other at `addr`: it is one of the host's own,
 * and the loopback interface, which leads there, is down. */
bool tt_addr_is_cut(const union tt_addr *addr);

/* Non-blocking, close-on-exec listening socket; port 0 in addr is replaced by the kernel's choice.
 */
ncclResult_t tt_socket_listen(union tt_addr *addr, int *fd_out);

/* Start a non-blocking connect; *fd_out is usable when writable (check SO_ERROR). */
ncclResult_t tt_socket_connect(const union tt_addr *addr, int *fd_out);

/* Move what fits without blocking. *done_out bytes moved (0 when the socket is not ready).
 * Errors: ncclRemoteError when the peer closed, ncclSystemError with %m otherwise. Survives EINTR,
 * no SIGPIPE. */
ncclResult_t tt_socket_send(int fd, const void *bytes, size_t len_bytes, size_t *done_out);
ncclResult_t tt_socket_recv(int fd, void *bytes, size_t len_bytes, size_t *done_out);

/* The process has no descriptor left: raise its soft limit to the hard one. False when that did not
 * help. */
bool tt_socket_more_descriptors(void);
/* Fails with what was to be done and the limit. */
ncclResult_t tt_socket_exhausted(const char *what);

/* Make a connected TCP socket send at once and fail when the peer's host has not answered for 10 s
 * (its link is cut, it lost power): read and write then return an error. */
void tt_socket_guard(int fd);
