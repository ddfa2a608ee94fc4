/* TCP sockets that never block, and addresses as text. Every descriptor made here is close-on-exec
 * and non-blocking; waiting is the caller's. */
#include "base/network/socket.h"

#include "base/error.h"
#include "base/mem.h"

#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

enum { BACKLOG = 16384, ADDR_TEXT_BYTES = 96, HOST_BYTES = 256 };

socklen_t tt_addr_len(const union tt_addr *addr)
{
    return addr->sa.sa_family == AF_INET6 ? sizeof(addr->v6) : sizeof(addr->v4);
}

bool tt_addr_is_loopback(const union tt_addr *addr)
{
    if (addr->sa.sa_family == AF_INET6) return IN6_IS_ADDR_LOOPBACK(&addr->v6.sin6_addr);
    return addr->sa.sa_family == AF_INET && ntohl(addr->v4.sin_addr.s_addr) >> 24 == 127;
}

const char *tt_addr_reach_text(const union tt_addr *addr)
{
    if (!tt_addr_is_loopback(addr)) return "";
    return "; a loopback address, which no other host reaches (NCCL_SOCKET_IFNAME or NCCL_COMM_ID "
           "names it, or no other interface was up where it was chosen)";
}

bool tt_addr_same_ip(const union tt_addr *a, const union tt_addr *b)
{
    if (a->sa.sa_family != b->sa.sa_family) return false;
    if (a->sa.sa_family == AF_INET6)
        return !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(struct in6_addr));
    return a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
}

bool tt_addr_is_cut(const union tt_addr *addr)
{
    bool own = tt_addr_is_loopback(addr), up = false, down = false;
    struct ifaddrs *all = NULL;
    if (getifaddrs(&all) != 0) return false;
    for (const struct ifaddrs *entry = all; entry; entry = entry->ifa_next) {
        const int family = entry->ifa_addr ? entry->ifa_addr->sa_family : AF_UNSPEC;
        if (entry->ifa_flags & IFF_LOOPBACK) {
            up |= (entry->ifa_flags & IFF_UP) != 0;
            down |= (entry->ifa_flags & IFF_UP) == 0;
        } else if (family == AF_INET || family == AF_INET6) {
            own |= tt_addr_same_ip((const void *)entry->ifa_addr, addr);
        }
    }
    freeifaddrs(all);
    return own && down && !up;
}

const char *tt_addr_text(const union tt_addr *addr, char *text, size_t text_bytes)
{
    char host[64]; /* numeric, with an IPv6 scope */
    char port[8];
    if (getnameinfo(&addr->sa, tt_addr_len(addr), host, sizeof(host), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV)) {
        snprintf(text, text_bytes, "(no address)");
    } else {
        snprintf(text, text_bytes, "%s<%s>", host, port);
    }
    return text;
}

/* Split "host:port" or "[v6]:port"; false when it is neither. */
static bool split_address(const char *text, char *host, size_t host_bytes, const char **port_out)
{
    const char *colon = strrchr(text, ':');
    const char *end = colon;
    if (!colon) return false;
    if (*text == '[') {
        text++;
        end = strchr(text, ']');
        if (!end || end + 1 != colon) return false;
    } else if (memchr(text, ':', (size_t)(colon - text))) {
        return false; /* a bare IPv6 address: which colon is the port's? */
    }
    if (end == text || (size_t)(end - text) >= host_bytes) return false;
    memcpy(host, text, (size_t)(end - text));
    host[end - text] = '\0';
    *port_out = colon + 1;
    return true;
}

static bool parse_port(const char *text)
{
    char *end = NULL;
    const long port = strtol(text, &end, 10);
    return end != text && *end == '\0' && *text >= '0' && *text <= '9' && port <= 65535;
}

const char *tt_addr_fault(const char *text, union tt_addr *addr_out)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    char host[HOST_BYTES];
    const char *port = NULL;
    if (!text) return "no text";
    if (!split_address(text, host, sizeof(host), &port) || !parse_port(port))
        return "expected host:port, a.b.c.d:port or [v6%if]:port";
    const int code = getaddrinfo(host, port, &hints, &found);
    if (code != 0) return gai_strerror(code);
    *addr_out = (union tt_addr){0};
    memcpy(addr_out, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return NULL;
}

ncclResult_t tt_addr_parse(const char *text, union tt_addr *addr_out)
{
    const char *fault = tt_addr_fault(text, addr_out);
    if (!fault) return ncclSuccess;
    return tt_fail(ncclInvalidArgument, "address '%.300s': %s", text ? text : "", fault);
}

bool tt_socket_more_descriptors(void)
{
    struct rlimit limit;
    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    const int probe = eventfd(0, EFD_CLOEXEC); /* another thread may have raised it just before */
    if (probe >= 0) close(probe);
    return probe >= 0;
}

ncclResult_t tt_socket_exhausted(const char *what)
{
    struct rlimit limit = {0};
    getrlimit(RLIMIT_NOFILE, &limit);
    return tt_fail(ncclSystemError,
                   "%s: no descriptor is left of the %llu that this process may have "
                   "(RLIMIT_NOFILE); raise the limit (ulimit -n), or use fewer ranks per process: "
                   "ranks that talk over sockets need one for each connection",
                   what, (unsigned long long)limit.rlim_max);
}

static ncclResult_t open_socket(int family, int *fd_out)
{
    const int yes = 1;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EMFILE && tt_socket_more_descriptors())
        fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EMFILE) return tt_socket_exhausted("socket");
    if (fd < 0) return tt_fail(ncclSystemError, "socket: %m");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes)); /* inherited by accepted ones */
    *fd_out = fd;
    return ncclSuccess;
}

ncclResult_t tt_socket_listen(union tt_addr *addr, int *fd_out)
{
    const int yes = 1;
    char text[ADDR_TEXT_BYTES];
    int fd = -1;
    union tt_addr bound = *addr;
    socklen_t len = sizeof(bound);
    ncclResult_t rc = open_socket(addr->sa.sa_family, &fd);
    if (rc) return rc;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, &addr->sa, tt_addr_len(addr)) != 0 || listen(fd, BACKLOG) != 0 ||
        getsockname(fd, &bound.sa, &len) != 0) {
        const int why = errno;
        tt_addr_text(addr, text, sizeof(text));
        const bool cut = why == EADDRNOTAVAIL && tt_addr_is_cut(addr);
        errno = why;
        rc = why == EADDRINUSE
                 ? tt_fail(ncclSystemError,
                           "listen on %s: %m: rank 0 came twice: another process is rank 0 there "
                           "already (NCCL_COMM_ID, which tutti run sets, names the address): was "
                           "each one's rank read (RANK under tutti run)? Processes that make ids "
                           "of their own run without the variable: tutti run --own-ids",
                           text)
                 : tt_fail(ncclSystemError, "listen on %s: %m%s", text,
                           cut                    ? "; lo is down (ip link set lo up)"
                           : why == EADDRNOTAVAIL ? "; rank 0 runs on this host, which has no such "
                                                    "address: NCCL_COMM_ID names it (tutti run: "
                                                    "--master)"
                                                  : "");
        goto out;
    }
    *addr = bound;
    *fd_out = fd;
    fd = -1;
out:
    if (fd >= 0) close(fd);
    return rc;
}

ncclResult_t tt_socket_connect(const union tt_addr *addr, int *fd_out)
{
    char text[ADDR_TEXT_BYTES];
    int fd = -1;
    ncclResult_t rc = open_socket(addr->sa.sa_family, &fd);
    if (rc) return rc;
    if (connect(fd, &addr->sa, tt_addr_len(addr)) != 0 && errno != EINPROGRESS && errno != EINTR) {
        rc = tt_fail(ncclSystemError, "connect to %s: %m", tt_addr_text(addr, text, sizeof(text)));
        close(fd);
        return rc;
    }
    *fd_out = fd;
    return ncclSuccess;
}

/* The peer's address for messages. errno is kept, the caller's message wants it. */
static const char *peer_text(int fd, char *text, size_t text_bytes)
{
    const int saved_errno = errno;
    union tt_addr peer = {0};
    socklen_t len = sizeof(peer);
    snprintf(text, text_bytes, "descriptor %d", fd);
    if (getpeername(fd, &peer.sa, &len) == 0 && peer.sa.sa_family != AF_UNIX)
        tt_addr_text(&peer, text, text_bytes);
    errno = saved_errno;
    return text;
}

static ncclResult_t move_failed(int fd, const char *verb)
{
    char text[ADDR_TEXT_BYTES];
    const bool gone = errno == EPIPE || errno == ECONNRESET || errno == ETIMEDOUT;
    return tt_fail(gone ? ncclRemoteError : ncclSystemError, "%s %s: %m", verb,
                   peer_text(fd, text, sizeof(text)));
}

ncclResult_t tt_socket_send(int fd, const void *bytes, size_t len_bytes, size_t *done_out)
{
    size_t done = 0;
    while (done < len_bytes) {
        const ssize_t moved =
            send(fd, (const char *)bytes + done, len_bytes - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (moved >= 0) {
            done += (size_t)moved;
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            *done_out = done;
            return move_failed(fd, "send to");
        }
    }
    *done_out = done;
    return ncclSuccess;
}

ncclResult_t tt_socket_recv(int fd, void *bytes, size_t len_bytes, size_t *done_out)
{
    char text[ADDR_TEXT_BYTES];
    size_t done = 0;
    while (done < len_bytes) {
        const ssize_t moved = recv(fd, (char *)bytes + done, len_bytes - done, MSG_DONTWAIT);
        if (moved > 0) {
            done += (size_t)moved;
        } else if (moved == 0) {
            *done_out = done;
            return tt_fail(ncclRemoteError, "receive from %s: the peer closed the connection",
                           peer_text(fd, text, sizeof(text)));
        } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
            break;
        } else if (errno != EINTR) {
            *done_out = done;
            return move_failed(fd, "receive from");
        }
    }
    *done_out = done;
    return ncclSuccess;
}

void tt_socket_guard(int fd)
{
    static const struct {
        int level, name, value;
    } options[] = {
        {IPPROTO_TCP, TCP_NODELAY, 1},  {SOL_SOCKET, SO_KEEPALIVE, 1},
        {IPPROTO_TCP, TCP_KEEPIDLE, 5}, {IPPROTO_TCP, TCP_KEEPINTVL, 2},
        {IPPROTO_TCP, TCP_KEEPCNT, 3},  {IPPROTO_TCP, TCP_USER_TIMEOUT, 10000},
    };
    for (size_t i = 0; i < TT_LEN(options); i++) { /* where one is unknown, the others still help */
        setsockopt(fd, options[i].level, options[i].name, &options[i].value,
                   sizeof(options[i].value));
    }
}
