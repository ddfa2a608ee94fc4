/* One TCP connection of the socket network: requests are served strictly in order, each an 8-byte
 * length and the payload, written and read together so that a small message is one system call. */
#include "base/error.h"
#include "base/mem.h"
#include "net/socket.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { HEADER_BYTES = 8 };

struct socket_link *tt_socket_link_create(int fd, bool sending)
{
    struct socket_link *link = tt_calloc(1, sizeof(*link));
    union tt_addr addr;
    socklen_t len = sizeof(addr);
    if (!link) return NULL;
    link->fd = fd;
    link->sending = sending;
    if (!getpeername(fd, &addr.sa, &len)) tt_addr_text(&addr, link->peer, sizeof(link->peer));
    return link;
}

void tt_socket_link_destroy(struct socket_link *link)
{
    if (!link) return;
    if (link->fd >= 0) close(link->fd);
    free(link);
}

static ncclResult_t broken(struct socket_link *link, ncclResult_t rc, const char *what)
{
    link->error =
        tt_fail(rc, "NET/Socket: %s %s: %s", link->sending ? "to" : "from", link->peer, what);
    return link->error;
}

/* Header and payload of one request in one system call. Bytes moved, 0 when the socket is not
 * ready. */
static ncclResult_t move(struct socket_link *link, struct socket_request *request, size_t limit,
                         size_t *moved)
{
    struct iovec parts[2];
    int nparts = 0;
    size_t at = request->moved;
    *moved = 0;
    if (at < HEADER_BYTES) {
        parts[nparts++] = (struct iovec){(char *)&request->header + at, HEADER_BYTES - at};
        at = HEADER_BYTES;
    }
    if (limit > at)
        parts[nparts++] = (struct iovec){request->bytes + (at - HEADER_BYTES), limit - at};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = (size_t)nparts};
    ssize_t n;
    do {
        n = link->sending ? sendmsg(link->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT)
                          : recvmsg(link->fd, &message, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n > 0) {
        *moved = (size_t)n;
        return ncclSuccess;
    }
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return ncclSuccess;
    return broken(link, ncclRemoteError,
                  n == 0 ? "the peer closed the connection" : strerror(errno));
}

/* A receiver knows the size after the header only: it reads the header alone first. */
static size_t limit_of(const struct socket_link *link, const struct socket_request *request)
{
    if (link->sending) return HEADER_BYTES + request->size;
    return request->moved < HEADER_BYTES ? HEADER_BYTES : HEADER_BYTES + request->header;
}

static ncclResult_t serve(struct socket_link *link, struct socket_request *request)
{
    for (;;) {
        size_t limit = limit_of(link, request);
        size_t moved = 0;
        if (request->moved == limit && request->moved >= HEADER_BYTES) {
            request->done = true;
            if (!link->sending) request->size = request->header;
            return ncclSuccess;
        }
        ncclResult_t rc = move(link, request, limit, &moved);
        if (rc || moved == 0) return rc;
        request->moved += moved;
        if (!link->sending && request->moved == HEADER_BYTES && request->header > request->size) {
            return broken(link, ncclInvalidUsage,
                          "message truncated: the peer sends more than was asked for");
        }
    }
}

ncclResult_t tt_socket_link_progress(struct socket_link *link)
{
    while (!link->error && link->finished != link->posted) {
        struct socket_request *request = &link->requests[link->finished % SOCKET_REQUESTS];
        ncclResult_t rc = serve(link, request);
        if (rc) return rc;
        if (!request->done) return ncclSuccess;
        link->finished++;
    }
    return link->error;
}
