/* One TCP lane of a connection: parts of memory in order, moved with as few system calls as the
 * socket allows. */
#include "base/error.h"
#include "base/mem.h"
#include "base/network/socket.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "net/socket.h"

#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum {
    LANE_PARTS = 2 * SOCKET_REQUESTS,
    PIECES = 16,
    SHORT_BYTES = 256, /* so few are copied to one piece: the kernel looks up each */
    BULK_BYTES = 65536,
    BULK_PAUSE_NSEC = 2000, /* doubled four times */
    CLOSE_LOOKS = 32,       /* without a pause */
    CLOSE_PAUSE_NSEC = 1000,
};

ncclResult_t tt_socket_link_broken(struct socket_link *link, ncclResult_t rc, const char *what)
{
    if (link->error) return link->error;
    link->error = tt_fail(rc, "NET/Socket: connection %s rank %d at %s: %s",
                          link->sending ? "to" : "from", link->rank, link->peer, what);
    return link->error;
}

/* Whether an errno means that the peer has closed the connection, or is out of reach. */
static bool is_gone(int err)
{
    return err == EPIPE || err == ECONNRESET || err == ETIMEDOUT || err == EHOSTUNREACH ||
           err == ENETUNREACH || err == ENETDOWN || err == ECONNABORTED;
}

static ncclResult_t call_failed(struct socket_link *link, struct socket_lane *lane, int err)
{
    if (link->resume && is_gone(err)) { /* it may come anew */
        lane->err = err;
        return ncclSuccess;
    }
    if (lane->helped) {
        lane->fault = err;
        return ncclSuccess;
    }
    if (err == SOCKET_ENDED)
        return tt_socket_link_broken(link, ncclRemoteError, "the peer closed the connection");
    if (err == EBADMSG) {
        return tt_socket_link_broken(link, ncclRemoteError,
                                     "bad MAC: the data is not what the peer sent");
    }
    return tt_socket_link_broken(link, is_gone(err) ? ncclRemoteError : ncclSystemError,
                                 strerror(err));
}

ncclResult_t tt_socket_lane_fault(struct socket_link *link, struct socket_lane *lane)
{
    return call_failed(link, lane, lane->fault);
}

void tt_socket_lane_add(struct socket_lane *lane, struct socket_part part)
{
    assert(lane->last - lane->first < LANE_PARTS);
    part.size = part.left;
    lane->parts[lane->last++ % LANE_PARTS] = part;
}

static int collect_parts(struct socket_lane *lane, struct iovec pieces[PIECES], size_t *rest_out)
{
    int n = 0;
    *rest_out = 0;
    for (uint32_t i = lane->first; i != lane->last && n < PIECES; i++) {
        struct socket_part *part = &lane->parts[i % LANE_PARTS];
        pieces[n++] = (struct iovec){part->at, part->left};
        *rest_out += part->left;
    }
    return n;
}

/* Strike off what was moved; a finished part counts for its request, unless it is held until it is
 * known to have arrived. */
static void advance(struct socket_lane *lane, size_t moved)
{
    while (lane->first != lane->last) {
        struct socket_part *part = &lane->parts[lane->first % LANE_PARTS];
        size_t step = part->left < moved ? part->left : moved;
        part->at += step;
        part->left -= step;
        moved -= step;
        if (part->left) return;
        _Atomic int *parts = &part->request->parts;
        if (lane->done == SOCKET_DONE_MOVED) {
            int left = atomic_load_explicit(parts, memory_order_relaxed) - 1;
            atomic_store_explicit(parts, left, memory_order_relaxed);
        } else if (lane->done == SOCKET_DONE_SHARED) {
            /* pairs with the acquire loads in tt_socket_test() */
            atomic_fetch_sub_explicit(parts, 1, memory_order_release);
        }
        lane->first++;
    }
}

/* A lane that gave nothing is left alone for a while: a waiting thread looks far more often than
 * bytes come, and each poll without data is a system call. Of a large rest more arrives at once if
 * it is let gather; a short one is waited for closely. */
void tt_socket_lane_missed(struct socket_lane *lane, size_t rest)
{
    bool bulk = rest >= BULK_BYTES;
    uint32_t step = lane->misses++;
    if (!bulk && step < CLOSE_LOOKS) return;
    uint64_t pause = bulk ? (uint64_t)BULK_PAUSE_NSEC << (step < 4 ? step : 4) : CLOSE_PAUSE_NSEC;
    lane->not_before_nsec = tt_now_nsec() + pause;
}

bool tt_socket_lane_is_early(const struct socket_lane *lane)
{
    return lane->not_before_nsec && tt_now_nsec() < lane->not_before_nsec;
}

ncclResult_t tt_socket_lane_send(struct socket_link *link, struct socket_lane *lane)
{
    while (lane->first != lane->last && !tt_socket_lane_is_early(lane)) {
        const int flags = MSG_NOSIGNAL | MSG_DONTWAIT;
        struct iovec pieces[PIECES];
        char together[SHORT_BYTES];
        size_t rest;
        int npieces = collect_parts(lane, pieces, &rest);
        struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)npieces};
        ssize_t n = 0;
        if (lane->seal) {
            n = tt_socket_seal_send(lane->seal, lane->fd, pieces, npieces);
        } else if (rest > sizeof(together)) {
            n = sendmsg(lane->fd, &message, flags);
        } else {
            for (int i = 0; i < npieces; n += (ssize_t)pieces[i++].iov_len)
                memcpy(together + n, pieces[i].iov_base, pieces[i].iov_len);
            n = send(lane->fd, together, rest, flags);
        }
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            tt_socket_lane_missed(lane, rest);
            return ncclSuccess;
        }
        if (n < 0) return call_failed(link, lane, errno);
        lane->misses = 0;
        lane->not_before_nsec = 0;
        lane->moved += (size_t)n;
        advance(lane, (size_t)n);
    }
    return ncclSuccess;
}

ncclResult_t tt_socket_lane_put_back(struct socket_link *link, struct socket_lane *lane,
                                     const struct iovec pieces[2])
{
    size_t left = lane->kept_bytes - lane->kept_at;
    size_t bytes = pieces[0].iov_len + pieces[1].iov_len;
    char *kept = tt_calloc(1, bytes + left);
    if (!kept) return tt_socket_link_broken(link, ncclSystemError, "out of memory");
    memcpy(kept, pieces[0].iov_base, pieces[0].iov_len);
    memcpy(kept + pieces[0].iov_len, pieces[1].iov_base, pieces[1].iov_len);
    if (left) memcpy(kept + bytes, lane->kept + lane->kept_at, left);
    free(lane->kept);
    lane->kept = kept;
    lane->kept_at = 0;
    lane->kept_bytes = bytes + left;
    return ncclSuccess;
}

/* What the descriptor before this one still had, or was put back. */
static size_t take_kept(struct socket_lane *lane, const struct iovec *pieces, int npieces)
{
    size_t moved = 0;
    for (int i = 0; i < npieces; i++) {
        size_t step = tt_min_size(pieces[i].iov_len, lane->kept_bytes - lane->kept_at);
        if (step) memcpy(pieces[i].iov_base, lane->kept + lane->kept_at, step);
        lane->kept_at += step;
        moved += step;
    }
    if (lane->kept_at < lane->kept_bytes) return moved;
    free(lane->kept);
    lane->kept = NULL;
    lane->kept_at = lane->kept_bytes = 0;
    return moved;
}

ncclResult_t tt_socket_read(struct socket_link *link, struct socket_lane *lane,
                            struct iovec *pieces, int npieces, size_t *moved_out)
{
    struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)npieces};
    ssize_t n;
    *moved_out = 0;
    if (tt_socket_lane_is_early(lane)) return ncclSuccess;
    if (lane->kept) *moved_out = take_kept(lane, pieces, npieces);
    if (*moved_out || lane->err) return ncclSuccess;
    do {
        n = lane->seal     ? tt_socket_seal_recv(lane->seal, lane->fd, pieces, npieces)
            : npieces == 1 ? recv(lane->fd, pieces[0].iov_base, pieces[0].iov_len, MSG_DONTWAIT)
                           : recvmsg(lane->fd, &message, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n == 0) return call_failed(link, lane, SOCKET_ENDED);
    if (n > 0) {
        *moved_out = (size_t)n;
        lane->misses = 0;
        lane->not_before_nsec = 0;
        lane->moved += (size_t)n;
        return ncclSuccess;
    }
    return errno == EAGAIN || errno == EWOULDBLOCK ? ncclInProgress
                                                   : call_failed(link, lane, errno);
}

ncclResult_t tt_socket_lane_recv(struct socket_link *link, struct socket_lane *lane)
{
    while (lane->first != lane->last) {
        struct iovec pieces[PIECES];
        size_t rest, moved = 0;
        int n = collect_parts(lane, pieces, &rest);
        ncclResult_t rc = tt_socket_read(link, lane, pieces, n, &moved);
        if (rc == ncclInProgress) {
            tt_socket_lane_missed(lane, rest);
            return ncclSuccess;
        }
        if (rc || moved == 0) return rc;
        advance(lane, moved);
    }
    return ncclSuccess;
}

/* ---- before there is a connection ---- */

ncclResult_t tt_socket_transfer(int fd, struct socket_transfer *at, void *bytes, size_t len)
{
    char *from = (char *)bytes + at->done;
    ssize_t n = at->sending ? send(fd, from, len - at->done, MSG_NOSIGNAL | MSG_DONTWAIT)
                            : recv(fd, from, len - at->done, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return ncclInProgress;
    if (n <= 0) return ncclRemoteError;
    at->done += (uint32_t)n;
    if (at->done < len) return ncclInProgress;
    at->done = 0;
    return ncclSuccess;
}

void tt_socket_tune(int fd)
{
    const unsigned int never = 0;
    static const struct {
        const char *name;
        int option;
    } sizes[] = {{"NCCL_SOCKET_SNDBUF", SO_SNDBUF}, {"NCCL_SOCKET_RCVBUF", SO_RCVBUF}};
    tt_socket_guard(fd);
    /* A receiver that is late closes its window, which since Linux 5.11 counts against this limit
     * although it answers every probe. The bootstrap's connections find what has died. */
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &never, sizeof(never));
    for (size_t i = 0; i < TT_LEN(sizes); i++) {
        int bytes = (int)tt_param_int(sizes[i].name);
        if (bytes > 0) setsockopt(fd, SOL_SOCKET, sizes[i].option, &bytes, sizeof(bytes));
    }
}
