/* A connection that has several ways and goes on over another one when one is cut.
 *
 * A sender keeps what it sent where it lies, in memory of its caller, until the peer's host has
 * acknowledged it: TCP says how many bytes are not. So a request is done one round trip later, and
 * nothing is copied. A receiver reads what its host acknowledged from the old descriptor whatever
 * became of the way, so the two agree by one number:
 *
 *   sender                                            receiver
 *   the lane's descriptor fails
 *   connects to the other address, proves itself ---> has received nothing: looks there
 *                                                     takes what the old descriptor still has
 *   <--------- report: so many bytes of this lane's stream came, signed
 *   goes on with the next byte ---------------------> reads from the new descriptor
 *
 * A receiver to which the cut has not let the first proof come knows no connection to go on with,
 * and refuses; then nothing has been acknowledged, and the sender connects as for the first time.
 *
 * Each lane does so by itself, and again when the other way is cut later. The sender begins, since
 * the receiver sends nothing and so learns of a cut late or never; the bootstrap reports a peer
 * that is gone. A lane on the spare way asks at the first one now and then, while it goes on, and
 * moves back in the same manner once the peer has answered there. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "net/socket.h"
#include "net/socket_port.h"
#include "net/socket_setup.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define CUT_AFTER_NSEC 4000000000ull /* packets that are not acknowledged */
#define WATCH_NSEC 250000000ull      /* sending: between two looks at TCP's state */
#define CHECK_NSEC 20000000ull       /* sending: between two looks for errors */
#define STEP_NSEC 500000ull          /* between two steps of connecting */
#define QUIET_NSEC 20000000ull       /* receiving: after it, look whether the lane comes anew */
#define LOOK_NSEC 5000000ull         /* between two such looks */
#define BUSY_NSEC 100000000ull  /* the same where bytes come: the sender may want to move back */
#define MEND_NSEC 1000000000ull /* sending: before the first try at the first way, ... */
#define MEND_MOST_NSEC 16000000000ull /* ... doubled after each, up to this */
#define RECORD_MOST_BYTES 16384       /* of a sealed lane: comes as a whole or not at all */
enum {
    LANE_PARTS = 2 * SOCKET_REQUESTS,
    KEPT_STEP_BYTES = 262144,
    BUSY_LOOKS = 256,
    PATHS = 3,
    REPORT_TRIES = 64,
    MOST_SWAPS = 4
};

struct resume_lane {
    uint64_t look_nsec; /* not before: the next look */
    /* sending */
    int way;             /* on which it lies, or is about to: index of `paths` */
    int left;            /* the one before it that worked */
    bool returns;        /* `connector` is of the first way, and the other one works */
    int err;             /* of the way before */
    int moves;           /* begun since the last one that succeeded */
    bool fresh;          /* connects as for the first time */
    int swaps;           /* between that and going on, as `moves` */
    uint64_t mend_nsec;  /* not on the first way: not before: the next try at it */
    uint64_t pause_nsec; /* after it */
    uint64_t held_at;    /* position of the first part that is held */
    uint64_t watch_nsec; /* not before: the next look at TCP's state */
    uint64_t stall_nsec,
        stall_at; /* since when it retransmits without success, and from where; 0 */
    struct socket_connector *connector; /* owned; of the way to come */
    struct socket_reconnect reconnect;  /* the same once it is proved; fd -1: not yet */
    struct socket_transfer at;
    unsigned char report[SHAKE_REPORT_BYTES];
    /* receiving */
    uint64_t quiet_nsec, quiet_at; /* since when nothing came, and where the stream stands */
    uint32_t busy;                 /* looks in a row at which bytes had come */
};

struct socket_resume {
    const struct socket_context *context; /* borrowed */
    struct socket_context *cuts;          /* sending: the same; learns that a device is cut */
    struct socket_origin origin;          /* sending: where the lanes come anew */
    union tt_addr paths[PATHS];           /* the same: the device's, the spare one, a third */
    int nways;                            /* the same */
    struct socket_listener *listener;     /* owned; receiving: waits for them */
    struct resume_lane lanes[];
};

static struct resume_lane *state_of(const struct socket_link *link, const struct socket_lane *lane)
{
    return &link->resume->lanes[lane - link->lanes];
}

/* The lane is on one way now: on the spare one it looks for the first one from time to time. */
static void await_mending(struct resume_lane *at)
{
    at->mend_nsec = tt_now_nsec() + MEND_NSEC;
    at->pause_nsec = MEND_NSEC;
}

/* ---- made and ended ---- */

static struct socket_resume *resume_create(int nlanes)
{
    struct socket_resume *resume =
        tt_calloc(1, sizeof(*resume) + (size_t)nlanes * sizeof(struct resume_lane));
    if (!resume) tt_fail(ncclSystemError, "NET/Socket: out of memory for a connection");
    for (int i = 0; resume && i < nlanes; i++)
        resume->lanes[i].reconnect.fd = -1;
    return resume;
}

ncclResult_t tt_socket_resume_sender(struct socket_link *link, struct socket_context *context,
                                     const struct socket_origin *origin)
{
    struct socket_resume *resume = resume_create(link->nlanes);
    if (!resume) return ncclSystemError;
    resume->context = resume->cuts = context;
    resume->origin = *origin;
    resume->paths[0] = origin->handle.addr;
    resume->paths[1] = origin->handle.spare;
    resume->paths[2] = origin->handle.third;
    resume->nways = origin->handle.third.sa.sa_family == origin->handle.addr.sa.sa_family ? 3 : 2;
    for (int i = 0; i < link->nlanes; i++) {
        link->lanes[i].done = SOCKET_DONE_ARRIVED;
        resume->lanes[i].way = origin->way;
        await_mending(&resume->lanes[i]);
    }
    link->resume = resume;
    return ncclSuccess;
}

/* TCP would let a single segment wait for 40 ms before it acknowledges it. */
static void acknowledge_at_once(int fd)
{
    const int yes = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_QUICKACK, &yes, sizeof(yes));
}

ncclResult_t tt_socket_resume_receiver(struct socket_link *link,
                                       const struct socket_listener *listener)
{
    struct socket_resume *resume = resume_create(link->nlanes);
    if (!resume) return ncclSystemError;
    link->resume = resume; /* destroyed with the link */
    resume->context = tt_socket_port_context(listener->port);
    resume->listener = tt_calloc(1, sizeof(*resume->listener));
    struct socket_reconnect *reconnects = tt_calloc((size_t)link->nlanes, sizeof(*reconnects));
    if (!resume->listener || !reconnects) {
        free(reconnects);
        return tt_fail(ncclSystemError, "NET/Socket: out of memory for a connection");
    }
    resume->listener->reconnects = reconnects;
    resume->listener->connection = listener->connection;
    resume->listener->nlanes = listener->nlanes;
    memcpy(resume->listener->id, listener->id, sizeof(listener->id));
    for (int i = 0; i < link->nlanes; i++) {
        reconnects[i].fd = resume->listener->ends.fds[i] = -1;
        acknowledge_at_once(link->lanes[i].fd);
    }
    return tt_socket_port_stay(listener->port, resume->listener);
}

void tt_socket_resume_destroy(struct socket_link *link)
{
    struct socket_resume *resume = link->resume;
    if (!resume) return;
    for (int i = 0; i < link->nlanes; i++) {
        struct resume_lane *at = &resume->lanes[i];
        tt_socket_connector_free(at->connector);
        if (at->reconnect.fd >= 0) close(at->reconnect.fd);
    }
    tt_socket_net_unlisten(resume->listener);
    sodium_memzero(resume, sizeof(*resume) + (size_t)link->nlanes * sizeof(struct resume_lane));
    free(resume);
    link->resume = NULL;
}

/* The lane goes on over the new descriptor, which is taken over on failure too. */
static ncclResult_t take_lane(struct socket_link *link, struct socket_lane *lane,
                              struct socket_reconnect *reconnect)
{
    const struct socket_context *context = link->resume->context;
    unsigned char key[TT_SEAL_KEY_BYTES];
    struct socket_seal *seal = NULL;
    close(lane->fd);
    lane->fd = reconnect->fd;
    reconnect->fd = -1;
    lane->misses = 0;
    lane->not_before_nsec = 0;
    lane->err = 0;
    if (!lane->seal) return ncclSuccess;
    if (tt_shake_key(&reconnect->shake, &context->trust, !link->sending, key))
        seal = tt_socket_seal_create(key);
    sodium_memzero(key, sizeof(key));
    if (!seal) return tt_socket_link_broken(link, ncclRemoteError, "no key for the lane made anew");
    tt_socket_seal_destroy(lane->seal);
    lane->seal = seal;
    return ncclSuccess;
}

/* ---- sending ---- */

/* The lane has moved to the way that `at` says. */
static void report_moved(const struct socket_link *link, const struct resume_lane *at)
{
    const struct socket_resume *resume = link->resume;
    const int left = tt_socket_way_device(resume->origin.dev, at->left);
    const int taken = tt_socket_way_device(resume->origin.dev, at->way);
    const struct tt_netif *netifs = resume->context->netifs;
    char from[64], to[64];
    tt_addr_text(&resume->paths[at->left], from, sizeof(from));
    tt_addr_text(&resume->paths[at->way], to, sizeof(to));
    atomic_fetch_and_explicit(&resume->cuts->cut_devices, ~((uint32_t)1 << taken),
                              memory_order_relaxed);
    if (at->returns) {
        tt_info(TT_LOG_NET,
                "NET/Socket: rank %d: the way from interface %s to rank %d at %s works "
                "again, and is used again",
                resume->context->trust.rank, netifs[taken].name, link->rank, to);
        return;
    }
    uint32_t bit = (uint32_t)1 << left;
    uint32_t before =
        atomic_fetch_or_explicit(&resume->cuts->cut_devices, bit, memory_order_relaxed);
    if (before & bit) return;
    tt_warn("NET/Socket: rank %d: the way from interface %s to rank %d at %s is cut (%s); it and "
            "what else would go that way goes on to %s, nothing is lost",
            resume->context->trust.rank, netifs[left].name, link->rank, from, strerror(at->err),
            to);
}

/* There is a way that was not tried since the lane was cut. */
static bool has_next(const struct socket_resume *resume, const struct resume_lane *at)
{
    return !at->returns && at->moves < resume->nways - 1;
}

/* Nothing is known to have come: the peer may not know the connection, as its proof was lost. */
static bool may_swap(const struct resume_lane *at)
{
    return !at->returns && at->held_at == 0 && at->swaps < MOST_SWAPS;
}

static ncclResult_t dial_way(struct socket_link *link, const struct socket_lane *lane, int way)
{
    struct socket_resume *resume = link->resume;
    struct resume_lane *at = state_of(link, lane);
    bool next = has_next(resume, at) || may_swap(at);
    resume->origin.handle.addr = resume->paths[way];
    at->at = (struct socket_transfer){.sending = false};
    ncclResult_t rc = tt_socket_connector_reopen(&resume->origin, (int)(lane - link->lanes),
                                                 at->returns || next, &at->connector);
    if (!rc && next) tt_socket_connector_go_on(at->connector); /* nothing to wait for */
    if (!rc && at->fresh) tt_socket_connector_begin(at->connector);
    return rc;
}

static void hang_up(struct resume_lane *at)
{
    tt_socket_connector_free(at->connector);
    at->connector = NULL;
    if (at->reconnect.fd >= 0) close(at->reconnect.fd);
    at->reconnect.fd = -1;
    at->returns = at->fresh = false;
}

/* The descriptor failed, or the way that was tried: connect the lane over the next one. */
static ncclResult_t start(struct socket_link *link, const struct socket_lane *lane)
{
    struct resume_lane *at = state_of(link, lane);
    const int nways = link->resume->nways;
    if (!at->connector || at->returns) at->left = at->way;
    hang_up(at);
    if (++at->moves > 2 * nways) /* all ways break again and again */
        return tt_socket_link_broken(link, ncclRemoteError, strerror(lane->err));
    at->way = (at->way + 1) % nways;
    at->err = lane->err;
    ncclResult_t rc = dial_way(link, lane, at->way);
    if (rc) link->error = rc; /* reported */
    return rc;
}

/* Parts that are at the peer's host up to that position of the stream. */
static void let_go(struct socket_lane *lane, struct resume_lane *at, uint64_t position)
{
    for (; lane->held != lane->first; lane->held++) {
        struct socket_part *part = &lane->parts[lane->held % LANE_PARTS];
        if (at->held_at + part->size > position) return;
        at->held_at += part->size;
        atomic_fetch_sub_explicit(&part->request->parts, 1, memory_order_relaxed);
    }
}

static int error_of(int fd)
{
    struct pollfd look = {.fd = fd};
    int err = 0;
    socklen_t len = sizeof(err);
    if (poll(&look, 1, 0) <= 0 || !(look.revents & (POLLERR | POLLHUP))) return 0;
    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) || !err ? EPIPE : err;
}

/* No acknowledgement comes of what is sent again and again, or no answer to the question whether
 * there is room again. TCP's own limit (TCP_USER_TIMEOUT) would also end lanes whose receiver is
 * merely late. */
static bool is_cut(const struct socket_lane *lane, struct resume_lane *at, uint64_t now)
{
    enum { FAILED_PROBES = 3 };
    struct tcp_info info;
    socklen_t len = sizeof(info);
    int missing = 0;
    if (now < at->watch_nsec) return false;
    at->watch_nsec = now + WATCH_NSEC;
    memset(&info, 0, sizeof(info));
    if (getsockopt(lane->fd, IPPROTO_TCP, TCP_INFO, &info, &len) ||
        ioctl(lane->fd, SIOCOUTQ, &missing))
        return false;
    uint64_t acknowledged = lane->moved - (uint64_t)missing;
    bool stalls = info.tcpi_unacked > 0 && info.tcpi_retransmits > 0;
    if (!stalls || at->stall_at != acknowledged) at->stall_nsec = 0;
    at->stall_at = acknowledged;
    if (stalls && !at->stall_nsec) at->stall_nsec = now;
    return (stalls && now - at->stall_nsec >= CUT_AFTER_NSEC) || info.tcpi_probes >= FAILED_PROBES;
}

/* Let go of what the peer's host has. A record of a sealed lane of which anything is missing there
 * counts for nothing. */
static void confirm(struct socket_lane *lane, struct resume_lane *at)
{
    int missing = 0;
    uint32_t held = lane->held;
    if (held == lane->first) return;
    if (ioctl(lane->fd, SIOCOUTQ, &missing)) {
        lane->err = errno;
        return;
    }
    uint64_t unsure = (uint64_t)missing + (lane->seal && missing ? RECORD_MOST_BYTES : 0);
    if (unsure < lane->moved) let_go(lane, at, lane->moved - unsure);
    if (lane->held != held) return;
    if (!tt_socket_lane_is_early(lane)) tt_socket_lane_missed(lane, (size_t)missing);
    uint64_t now = tt_now_nsec();
    if (now < at->look_nsec) return;
    at->look_nsec = now + CHECK_NSEC;
    lane->err = error_of(lane->fd); /* with nothing left to send no other call would see it */
}

/* The stream goes on at that position: what follows is to be sent again. */
static ncclResult_t rewind_to(struct socket_link *link, struct socket_lane *lane, uint64_t position)
{
    struct resume_lane *at = state_of(link, lane);
    if (position < at->held_at || position > lane->moved) {
        return tt_socket_link_broken(link, ncclRemoteError,
                                     "cut, and not everything that it acknowledged has arrived");
    }
    let_go(lane, at, position);
    uint64_t skip = position - at->held_at;
    tt_info(TT_LOG_NET, "NET/Socket: rank %d: %llu bytes are sent to rank %d once more",
            link->resume->context->trust.rank, (unsigned long long)(lane->moved - position),
            link->rank);
    for (uint32_t i = lane->held; i != lane->last; i++) {
        struct socket_part *part = &lane->parts[i % LANE_PARTS];
        part->at -= part->size - part->left;
        part->left = part->size;
    }
    lane->first = lane->held;
    if (skip) {
        lane->parts[lane->first % LANE_PARTS].at += skip;
        lane->parts[lane->first % LANE_PARTS].left -= skip;
    }
    lane->moved = position;
    return ncclSuccess;
}

/* Connect over the way to come, or when that is cut as well over the next one. */
static ncclResult_t connect_anew(struct socket_link *link, struct socket_lane *lane)
{
    struct resume_lane *at = state_of(link, lane);
    ncclResult_t rc =
        tt_socket_connector_reconnect(link->resume->context, at->connector, &at->reconnect);
    if (!rc || rc == ncclInProgress) return rc;
    if (has_next(link->resume, at)) {
        rc = start(link, lane);
        return rc ? rc : ncclInProgress;
    }
    if (may_swap(at)) {
        const bool fresh = !at->fresh;
        hang_up(at);
        at->fresh = fresh;
        at->swaps++;
        rc = dial_way(link, lane, at->way);
        if (!rc) return ncclInProgress;
    }
    if (!at->returns) link->error = rc; /* reported */
    return rc;
}

/* One step of connecting once more; the lane is in use again when at->connector is NULL. */
static ncclResult_t come_anew(struct socket_link *link, struct socket_lane *lane)
{
    struct resume_lane *at = state_of(link, lane);
    const struct socket_context *context = link->resume->context;
    uint64_t now = tt_now_nsec(), position = 0;
    if (now < at->look_nsec) return ncclInProgress;
    at->look_nsec = now + STEP_NSEC;
    ncclResult_t rc = at->reconnect.fd < 0 ? connect_anew(link, lane) : ncclSuccess;
    if (rc) return rc;
    if (!at->fresh)
        rc = tt_socket_transfer(at->reconnect.fd, &at->at, at->report, sizeof(at->report));
    if (rc == ncclInProgress) return rc;
    if (rc) { /* cut again before the report came; the peer may have left the way before */
        lane->err = ECONNRESET;
        at->way = at->returns ? 0 : at->way;
        rc = start(link, lane);
        return rc ? rc : ncclInProgress;
    }
    if (!at->fresh &&
        !tt_shake_read_report(&at->reconnect.shake, &context->trust, at->report, &position))
        return tt_socket_link_broken(link, ncclRemoteError, "cut; bad MAC over the other way");
    rc = rewind_to(link, lane, position);
    if (!rc) rc = take_lane(link, lane, &at->reconnect);
    if (rc) return rc;
    if (at->returns) {
        at->left = at->way;
        at->way = 0;
    }
    report_moved(link, at);
    hang_up(at);
    at->moves = at->swaps = 0;
    await_mending(at);
    return ncclSuccess;
}

/* All that was sent is acknowledged. */
static bool is_acknowledged(struct socket_lane *lane, struct resume_lane *at, uint64_t now)
{
    confirm(lane, at);
    if (lane->held == lane->first) return true;
    if (!lane->err && is_cut(lane, at, now)) lane->err = ETIMEDOUT;
    return false;
}

/* On the spare way: is the first one mended? The lane goes on until its peer has answered there.
 * Then nothing more is sent until all that was sent is acknowledged, and only then the peer gets
 * the proof: what it acknowledges later does not count. ncclInProgress: nothing may be sent. */
static ncclResult_t try_return(struct socket_link *link, struct socket_lane *lane)
{
    struct resume_lane *at = state_of(link, lane);
    uint64_t now = tt_now_nsec();
    if (!at->connector) {
        if (now < at->mend_nsec) return ncclSuccess;
        at->returns = true;
        if (dial_way(link, lane, 0)) at->connector = NULL;
    }
    bool answered = at->connector && tt_socket_connector_is_answered(at->connector);
    if (answered && !is_acknowledged(lane, at, now))
        return lane->err ? ncclSuccess : ncclInProgress;
    if (answered) tt_socket_connector_go_on(at->connector);
    ncclResult_t rc = at->connector ? come_anew(link, lane) : ncclSystemError;
    if (rc == ncclInProgress) return answered ? rc : ncclSuccess;
    if (!rc || link->error) return rc;
    hang_up(at);
    if (at->pause_nsec < MEND_MOST_NSEC) at->pause_nsec *= 2;
    at->mend_nsec = now + at->pause_nsec;
    return ncclSuccess;
}

ncclResult_t tt_socket_resume_send(struct socket_link *link, struct socket_lane *lane)
{
    struct resume_lane *at = state_of(link, lane);
    ncclResult_t rc = ncclSuccess;
    if (at->connector && !at->returns) {
        rc = come_anew(link, lane);
    } else if (at->way) {
        rc = try_return(link, lane);
    }
    if (rc) return rc == ncclInProgress ? ncclSuccess : rc;
    if (!lane->err && tt_socket_lane_is_early(lane)) return ncclSuccess;
    if (!lane->err && lane->first != lane->last) rc = tt_socket_lane_send(link, lane);
    if (!rc && !lane->err) confirm(lane, at);
    if (!rc && !lane->err && lane->held != lane->last && is_cut(lane, at, tt_now_nsec()))
        lane->err = ETIMEDOUT;
    if (!rc && lane->err) rc = start(link, lane);
    return rc;
}

bool tt_socket_resume_is_moving(const struct socket_link *link, const struct socket_lane *lane)
{
    return state_of(link, lane)->connector;
}

/* ---- receiving ---- */

/* All that the host has acknowledged; the sender has stopped using the descriptor. What does not
 * fit into memory is missing in the report, and the sender fails then. */
static void drain(struct socket_lane *lane)
{
    ssize_t n = 1;
    size_t room = lane->kept_bytes;
    while (n > 0) {
        if (lane->kept_bytes == room) {
            char *more = realloc(lane->kept, room + KEPT_STEP_BYTES);
            if (!more) return;
            lane->kept = more;
            room += KEPT_STEP_BYTES;
        }
        struct iovec piece = {lane->kept + lane->kept_bytes, room - lane->kept_bytes};
        do {
            n = lane->seal ? tt_socket_seal_recv(lane->seal, lane->fd, &piece, 1)
                           : recv(lane->fd, piece.iov_base, piece.iov_len, MSG_DONTWAIT);
        } while (n < 0 && errno == EINTR);
        if (n <= 0) return;
        lane->kept_bytes += (size_t)n;
        lane->moved += (uint64_t)n;
    }
}

static ncclResult_t receive_over(struct socket_link *link, struct socket_lane *lane,
                                 struct socket_reconnect *reconnect)
{
    const struct socket_context *context = link->resume->context;
    unsigned char report[SHAKE_REPORT_BYTES];
    drain(lane);
    tt_shake_report(&reconnect->shake, &context->trust, lane->moved, report);
    struct socket_transfer at = {.sending = true};
    ncclResult_t sent = ncclInProgress;
    for (int tries = 0; tries < REPORT_TRIES && sent == ncclInProgress; tries++)
        sent = tt_socket_transfer(reconnect->fd, &at, report, sizeof(report));
    acknowledge_at_once(reconnect->fd);
    tt_info(TT_LOG_NET,
            "NET/Socket: rank %d: what rank %d sends comes over another way from byte %llu on",
            context->trust.rank, link->rank, (unsigned long long)lane->moved);
    ncclResult_t rc = take_lane(link, lane, reconnect);
    if (!sent) return rc;
    lane->err = EPIPE;
    shutdown(lane->fd, SHUT_RDWR); /* the sender waits for the report: it is to begin again */
    return rc;
}

ncclResult_t tt_socket_resume_tend(struct socket_link *link, struct socket_lane *lane)
{
    struct socket_resume *resume = link->resume;
    struct socket_reconnect reconnect;
    ncclResult_t rc = tt_socket_port_resumed(resume->listener->port, resume->listener,
                                             (int)(lane - link->lanes), &reconnect);
    if (!rc && reconnect.fd >= 0) return receive_over(link, lane, &reconnect);
    if (rc) link->error = rc; /* reported */
    return rc;
}

ncclResult_t tt_socket_resume_look(struct socket_link *link, struct socket_lane *lane)
{
    struct resume_lane *at = state_of(link, lane);
    if (!lane->misses && !lane->err && ++at->busy % BUSY_LOOKS) return ncclSuccess;
    uint64_t now = tt_now_nsec();
    if (!at->quiet_nsec || at->quiet_at != lane->moved) at->quiet_nsec = now;
    at->quiet_at = lane->moved;
    bool quiet = lane->err || now - at->quiet_nsec >= QUIET_NSEC;
    if (now < at->look_nsec + (quiet ? 0 : BUSY_NSEC)) return ncclSuccess;
    at->look_nsec = now + LOOK_NSEC;
    return tt_socket_resume_tend(link, lane);
}
