/* A connection: requests become parts on its lanes, in the order in which they were posted.
 *
 * A receiver reads lane 0 ahead by up to 4 KiB, so the length and the bytes of a small message cost
 * one system call; of larger messages the rest goes straight to where it belongs, and the same call
 * reads ahead again. */
#include "base/error.h"
#include "base/mem.h"
#include "base/network/socket.h"
#include "base/param.h"
#include "nccl/profiler_events.h"
#include "net/socket.h"
#include "net/socket_threads.h"

#include <assert.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { INLINE_MOST = 1024, LONG_BYTES = 2 << 20, UNPREDICTED = 32 };

static size_t param_between(const char *name, int64_t least, int64_t most)
{
    int64_t value = tt_param_int(name);
    return (size_t)(value < least ? least : value > most ? most : value);
}

/* Within a host no queue is shared, and the round trip is that of two processes: congestion control
 * that paces by what it has measured (BBR) only delays, and large sends most. Every kernel has
 * Reno, and any program may choose it. True: this is within a host. */
static bool tune_within_host(int fd, const union tt_addr *peer)
{
    static const char reno[] = "reno";
    union tt_addr own;
    socklen_t len = sizeof(own);
    if (getsockname(fd, &own.sa, &len)) return false;
    if (!tt_addr_same_ip(&own, peer) && !tt_addr_is_loopback(peer)) return false;
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, reno, sizeof(reno) - 1);
    return true;
}

struct socket_link *tt_socket_link_create(const struct socket_ends *ends,
                                          ncclProfilerCallback_t profiler)
{
    size_t bytes = sizeof(struct socket_link) + (size_t)ends->nlanes * sizeof(struct socket_lane);
    struct socket_link *link = tt_calloc(1, bytes);
    union tt_addr addr;
    socklen_t len = sizeof(addr);
    if (!link) {
        for (int i = 0; i < ends->nlanes; i++)
            close(ends->fds[i]);
        tt_fail(ncclSystemError, "NET/Socket: out of memory for a connection");
        return NULL;
    }
    link->sending = ends->sending;
    link->rank = ends->rank;
    link->profiler = profiler;
    link->nlanes = ends->nlanes;
    bool near = false;
    bool known = !getpeername(ends->fds[0], &addr.sa, &len);
    if (known) tt_addr_text(&addr, link->peer, sizeof(link->peer));
    for (int i = 0; i < ends->nlanes; i++) {
        link->lanes[i].fd = ends->fds[i];
        if (known) near = tune_within_host(ends->fds[i], &addr);
    }
    link->inline_bytes =
        link->nlanes == 1 ? SIZE_MAX : param_between("NCCL_SOCKET_INLINE", 0, INLINE_MOST);
    link->least_slice = param_between("NCCL_SOCKET_MIN_TASKSIZE", 1, MAX_NET_SIZE);
    for (int i = 0; i < ends->nlanes && ends->sealed; i++) {
        link->lanes[i].seal = tt_socket_seal_create(ends->keys[i]);
        if (!link->lanes[i].seal) goto out;
    }
    /* what an adapter's vendor recommends is of use only where bytes go over it */
    link->nthreads = near && ends->split.by_vendor ? 0 : ends->split.threads;
    if (tt_socket_threads_create(link, link->nthreads)) return link;
out:
    tt_socket_link_destroy(link);
    tt_fail(ncclSystemError, "NET/Socket: out of memory for a connection");
    return NULL;
}

static void event_start(struct socket_request *request, void *parent)
{
    struct socket_link *link = request->link;
    ncclProfilerNetSockDescr_v1_t descr = {.type = ncclProfileSocket};
    descr.sock.fd = link->lanes[0].fd;
    descr.sock.op = link->sending ? 0 : 1;
    descr.sock.length = request->head_bytes + request->size;
    link->profiler(&request->event, ncclProfilerNetEventStart, parent,
                   NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER, &descr);
}

static void event_stop(struct socket_request *request)
{
    request->link->profiler(&request->event, ncclProfilerNetEventStop, NULL,
                            NCCL_PROFILER_NET_TYPE_SOCK | NCCL_PROFILER_NET_SOCKET_VER, NULL);
}

void tt_socket_link_destroy(struct socket_link *link)
{
    if (!link) return;
    tt_socket_threads_destroy(link); /* before all that they use */
    tt_socket_resume_destroy(link);
    for (int i = 0; i < SOCKET_REQUESTS; i++) /* of an aborted communicator */
        if (link->requests[i].event) event_stop(&link->requests[i]);
    for (int i = 0; i < link->nlanes; i++) {
        if (!link->twin) close(link->lanes[i].fd);
        if (link->twin && link->sending) shutdown(link->lanes[i].fd, SHUT_WR);
        tt_socket_seal_destroy(link->lanes[i].seal);
        free(link->lanes[i].kept);
    }
    if (link->twin) link->twin->twin = NULL;
    free(link);
}

struct socket_link *tt_socket_link_reverse(struct socket_link *link)
{
    size_t bytes = sizeof(struct socket_link) + (size_t)link->nlanes * sizeof(struct socket_lane);
    struct socket_link *twin = tt_calloc(1, bytes);
    if (!twin) {
        tt_fail(ncclSystemError, "NET/Socket: out of memory for a connection");
        return NULL;
    }
    twin->sending = !link->sending;
    twin->rank = link->rank;
    memcpy(twin->peer, link->peer, sizeof(twin->peer));
    twin->profiler = link->profiler;
    twin->nlanes = link->nlanes;
    twin->inline_bytes = link->inline_bytes;
    twin->least_slice = link->least_slice;
    for (int i = 0; i < link->nlanes; i++)
        twin->lanes[i].fd = link->lanes[i].fd;
    twin->nthreads = link->nthreads;
    if (!tt_socket_threads_create(twin, twin->nthreads)) {
        free(twin);
        tt_fail(ncclSystemError, "NET/Socket: out of memory for a connection");
        return NULL;
    }
    twin->twin = link;
    link->twin = twin;
    return twin;
}

/* ---- posting ---- */

/* The bytes of a message on the data lanes, in turn; both ends compute the same. */
static void slice(struct socket_link *link, struct socket_request *request)
{
    size_t ndata = (size_t)link->nlanes - 1;
    size_t share = tt_max_size((request->size + ndata - 1) / ndata, link->least_slice);
    atomic_fetch_add_explicit(&request->parts, (int)((request->size + share - 1) / share),
                              memory_order_relaxed);
    for (size_t at = 0; at < request->size; at += share) {
        size_t rest = request->size - at;
        struct socket_part part = {request->bytes + at, tt_min_size(share, rest), request, 0};
        if (link->threads) { /* the last piece is its caller's, who is awake */
            tt_socket_threads_add(link, 1 + (int)link->turn, part, rest > share);
        } else {
            tt_socket_lane_add(&link->lanes[1 + link->turn], part);
        }
        link->turn = (link->turn + 1) % (uint32_t)ndata;
    }
}

/* Lane 0 gets the length, the head and a small payload. */
static void add_parts(struct socket_link *link, struct socket_request *request)
{
    struct socket_lane *control = &link->lanes[0];
    size_t header_bytes = SOCKET_LENGTH_BYTES + request->head_bytes;
    uint32_t length = (uint32_t)(request->head_bytes + request->size);
    const uint32_t lengths[2] = {length, ~length};
    memcpy(request->header, lengths, SOCKET_LENGTH_BYTES);
    if (request->head_bytes)
        memcpy(request->header + SOCKET_LENGTH_BYTES, request->head, request->head_bytes);
    tt_socket_lane_add(control,
                       (struct socket_part){(char *)request->header, header_bytes, request, 0});
    if (request->size > link->inline_bytes) {
        slice(link, request);
    } else if (request->size) {
        atomic_store_explicit(&request->parts, 2, memory_order_relaxed);
        tt_socket_lane_add(control,
                           (struct socket_part){request->bytes, request->size, request, 0});
    }
}

ncclResult_t tt_net_socket_post(void *comm, const struct tt_net_message *message,
                                void **request_out)
{
    struct socket_link *link = comm;
    struct socket_request *request = link->requests, *end = request + SOCKET_REQUESTS;
    *request_out = NULL;
    if (link->error) return link->error;
    if (message->bytes > MAX_NET_SIZE) {
        return tt_fail(ncclInternalError, "NET/Socket: a message of %zu bytes, at most %zu",
                       message->bytes, (size_t)MAX_NET_SIZE);
    }
    assert(message->head_bytes <= TT_NET_HEAD_BYTES);
    while (request < end && request->link)
        request++;
    if (request == end) return ncclSuccess; /* all are under way: ask again */
    request->link = link;
    request->bytes = message->data;
    request->size = message->bytes;
    request->head = message->head;
    request->head_bytes = message->head_bytes;
    request->landing = message->landing;
    atomic_store_explicit(&request->parts, 1, memory_order_relaxed);
    request->event = NULL;
    link->order[link->posted++ % SOCKET_REQUESTS] = request;
    if (message->event && link->profiler) event_start(request, message->event);
    if (link->sending) add_parts(link, request);
    *request_out = request;
    return ncclSuccess;
}

/* ---- receiving on lane 0 ---- */

static size_t take_ahead(struct socket_link *link, void *to, size_t most)
{
    size_t n = link->ahead_last - link->ahead_first;
    if (n > most) n = most;
    memcpy(to, link->ahead + link->ahead_first, n);
    link->ahead_first += (uint32_t)n;
    if (link->ahead_first == link->ahead_last) link->ahead_first = link->ahead_last = 0;
    return n;
}

/* What was read of the payload before its head was looked at: it lies where it belongs if all is as
 * expected. Bytes of the messages after it are read again. */
static ncclResult_t take_early(struct socket_link *link, const struct socket_request *request,
                               size_t *got_out)
{
    char *early = link->early;
    size_t most = request->size > link->inline_bytes ? 0 : request->size;
    size_t bytes = tt_min_size(link->early_bytes, most);
    const struct iovec after[2] = {
        {early + bytes, link->early_bytes - bytes},
        {link->ahead + link->ahead_first, link->ahead_last - link->ahead_first},
    };
    link->early = NULL;
    link->early_bytes = 0;
    *got_out = bytes;
    if (bytes && early != request->bytes) memcpy(request->bytes, early, bytes);
    if (after[0].iov_len == 0) return ncclSuccess;
    link->ahead_first = link->ahead_last = 0;
    link->unpredicted = UNPREDICTED;
    return tt_socket_lane_put_back(link, &link->lanes[0], after);
}

/* The length and the head of the next message are here: its request learns them. */
static ncclResult_t take_head(struct socket_link *link, struct socket_request *request)
{
    uint32_t lengths[2] = {0};
    uint64_t key = 0;
    take_ahead(link, lengths, SOCKET_LENGTH_BYTES);
    const uint32_t length = lengths[0];
    if (lengths[1] != ~length)
        return tt_socket_link_broken(link, ncclRemoteError, "a damaged length came");
    size_t size = length - request->head_bytes;
    if (length >= request->head_bytes && request->head_bytes) {
        take_ahead(link, request->head, request->head_bytes);
        if (request->head_bytes >= sizeof(key)) memcpy(&key, request->head, sizeof(key));
    }
    bool lands = request->landing.at && tt_net_lands(&request->landing, key, size);
    bool fits = length >= request->head_bytes && (lands || size <= request->size);
    if (!fits && length >= request->head_bytes && request->head_bytes) {
        /* the reader of the head will say more; nothing can follow */
        link->error = ncclInvalidUsage;
        request->size = size;
        atomic_store_explicit(&request->parts, 0, memory_order_relaxed);
        return ncclSuccess;
    }
    if (!fits) {
        char what[160];
        snprintf(what, sizeof(what),
                 "message truncated: %u bytes were sent where %zu were asked for", length,
                 request->head_bytes + request->size);
        return tt_socket_link_broken(link, ncclInvalidUsage, what);
    }
    if (lands) request->bytes = request->landing.at;
    link->landed_end = lands ? request->bytes + size : NULL;
    request->size = size;
    atomic_store_explicit(&request->parts, 0, memory_order_relaxed);
    link->headed++;
    if (link->unpredicted) link->unpredicted--;
    size_t got = 0;
    ncclResult_t rc = link->early ? take_early(link, request, &got) : ncclSuccess;
    if (rc || got == size) return rc;
    if (size > link->inline_bytes) {
        slice(link, request);
        return ncclSuccess;
    }
    got += take_ahead(link, request->bytes + got, size - got);
    if (got == size) return ncclSuccess;
    atomic_store_explicit(&request->parts, 1, memory_order_relaxed);
    tt_socket_lane_add(&link->lanes[0],
                       (struct socket_part){request->bytes + got, size - got, request, 0});
    return ncclSuccess;
}

/* How much is waited for as far as one knows: what is left of the message under way and of those
 * that land behind it. A thread that waits for the first of them looks often, unless they are so
 * long that a pause does not count. */
static size_t rest_of_message(const struct socket_link *link)
{
    const struct socket_lane *control = &link->lanes[0];
    const struct socket_part *part = control->first == control->last
                                         ? NULL
                                         : &control->parts[control->first % (2 * SOCKET_REQUESTS)];
    const struct socket_request *request =
        part ? part->request : link->order[link->headed % SOCKET_REQUESTS];
    const struct tt_net_landing *landing = &request->landing;
    if (part && request->bytes == landing->at) return part->left + landing->room - request->size;
    if (part) return part->left;
    bool first = landing->at != link->landed_end;
    return landing->at && (!first || landing->room >= LONG_BYTES) ? landing->room : 0;
}

/* Where the payload of the next message will go, as far as one knows; bytes 0: one does not, or it
 * fits `ahead` as it is. In the user's memory that is behind what landed there alone: the rest of
 * the same transfer. */
static struct iovec expected_payload(const struct socket_link *link,
                                     const struct socket_request *request)
{
    const struct tt_net_landing *landing = &request->landing;
    const struct iovec none = {NULL, 0};
    size_t bytes = landing->expected;
    if (bytes <= SOCKET_AHEAD_BYTES / 2 || bytes > link->inline_bytes || link->unpredicted)
        return none;
    if (!landing->at) return bytes <= request->size ? (struct iovec){request->bytes, bytes} : none;
    bool follows = landing->at == link->landed_end && bytes <= landing->room;
    return follows ? (struct iovec){landing->at, bytes} : none;
}

/* Read the head of the next message, its payload where it is known how long that is, and what
 * comes after it. */
static ncclResult_t read_next(struct socket_link *link, size_t *moved_out)
{
    const struct socket_request *next = link->order[link->headed % SOCKET_REQUESTS];
    const uint32_t head_bytes = (uint32_t)(SOCKET_LENGTH_BYTES + next->head_bytes);
    const struct iovec payload = expected_payload(link, next);
    const uint32_t had = link->ahead_last;
    char *ahead = link->ahead;
    struct iovec pieces[3] = {{ahead + had, sizeof(link->ahead) - had}};
    int n = 1;
    if (payload.iov_len) {
        pieces[0].iov_len = head_bytes - had;
        pieces[n++] = payload;
        pieces[n++] = (struct iovec){ahead + head_bytes, sizeof(link->ahead) - head_bytes};
    }
    ncclResult_t rc = tt_socket_read(link, &link->lanes[0], pieces, n, moved_out);
    size_t got = *moved_out;
    if (payload.iov_len && got > pieces[0].iov_len) {
        link->early = payload.iov_base;
        link->early_bytes = tt_min_size(got - pieces[0].iov_len, payload.iov_len);
    }
    link->ahead_last += (uint32_t)(got - link->early_bytes);
    return rc;
}

/* Read into the part under way, and what comes after it into `ahead`. */
static ncclResult_t read_control(struct socket_link *link, size_t *moved_out)
{
    struct socket_lane *control = &link->lanes[0];
    struct socket_part *part = NULL;
    struct iovec pieces[2];
    int n = 0;
    uint32_t had = link->ahead_last - link->ahead_first; /* less than a head */
    memmove(link->ahead, link->ahead + link->ahead_first, had);
    link->ahead_first = 0;
    link->ahead_last = had;
    if (control->first != control->last) {
        part = &control->parts[control->first % (2 * SOCKET_REQUESTS)];
        pieces[n++] = (struct iovec){part->at, part->left};
    } else if (link->order[link->headed % SOCKET_REQUESTS]->landing.expected) {
        return read_next(link, moved_out);
    }
    pieces[n++] = (struct iovec){link->ahead + had, sizeof(link->ahead) - had};
    ncclResult_t rc = tt_socket_read(link, control, pieces, n, moved_out);
    if (rc || *moved_out == 0) return rc;
    size_t direct = part ? tt_min_size(part->left, *moved_out) : 0;
    link->ahead_last += (uint32_t)(*moved_out - direct);
    if (!part) return ncclSuccess;
    part->at += direct;
    part->left -= direct;
    if (part->left) return ncclSuccess;
    atomic_store_explicit(&part->request->parts, 0, memory_order_relaxed); /* it has no other */
    control->first++;
    return ncclSuccess;
}

static ncclResult_t receive_control(struct socket_link *link)
{
    struct socket_lane *control = &link->lanes[0];
    for (;;) {
        size_t moved = 1;
        ncclResult_t rc = ncclSuccess;
        if (link->error) return rc; /* of the message after its head */
        bool body = control->first != control->last;
        if (!body && link->headed == link->posted)
            return ncclSuccess; /* no receive asks for more */
        struct socket_request *next = link->order[link->headed % SOCKET_REQUESTS];
        if (!body &&
            link->ahead_last - link->ahead_first >= SOCKET_LENGTH_BYTES + next->head_bytes) {
            rc = take_head(link, next);
        } else {
            rc = read_control(link, &moved);
        }
        if (rc == ncclInProgress) { /* no bytes were there */
            tt_socket_lane_missed(control, rest_of_message(link));
            return ncclSuccess;
        }
        if (rc || moved == 0) return rc;
    }
}

/* Move what can be moved now. */
static ncclResult_t progress(struct socket_link *link)
{
    struct socket_lane *control = &link->lanes[0];
    ncclResult_t rc = link->error;
    if (rc) return rc;
    if (link->sending && link->resume) {
        rc = tt_socket_resume_send(link, control); /* looks also what became of what was sent */
    } else if (link->sending) {
        if (control->first != control->last) rc = tt_socket_lane_send(link, control);
    } else {
        if (link->resume) rc = tt_socket_resume_look(link, control);
        if (!rc) rc = receive_control(link);
    }
    return rc || link->nlanes == 1 ? rc : tt_socket_lanes_move(link);
}

ncclResult_t tt_socket_test(void *opaque, int *done, int *size)
{
    struct socket_request *request = opaque;
    *done = 0;
    if (!request || !request->link)
        return tt_fail(ncclInternalError, "NET/Socket: test of a request that is not under way");
    _Atomic int *parts = &request->parts; /* pairs with the release in socket_lane.c */
    ncclResult_t rc = ncclSuccess;
    if (atomic_load_explicit(parts, memory_order_acquire)) rc = progress(request->link);
    if (rc || atomic_load_explicit(parts, memory_order_acquire)) return rc;
    if (size) *size = (int)(request->head_bytes + request->size);
    if (request->event) event_stop(request);
    request->link = NULL;
    *done = 1;
    return ncclSuccess;
}
