/* The one listening socket of a communicator and device: unauthenticated peers, until they have
 * proved which listener they want. Polled by the thread that accepts; nothing but the fixed-size
 * messages of the proof is read from a connection before that. */
#include "net/socket_port.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/system/clock.h"
#include "net/socket.h"

#include <errno.h>
#include <poll.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define SILENCE_NSEC 2000000000ull /* a peer that says nothing makes room after 2 s */
#define STALL_NSEC 60000000000ull  /* a peer with the id may be slow, but not for ever */
#define REPORT_NSEC 10000000000ull /* one line about unauthenticated peers in that time */
#define PAUSE_NSEC 100000ull       /* between two looks that found nothing */
enum { LEAST_CANDIDATES = 64 };

enum candidate_state { CANDIDATE_HELLO, CANDIDATE_ANSWER, CANDIDATE_PROOF };

struct candidate { /* accepted, not proved */
    int fd;
    enum candidate_state state;
    uint64_t since_nsec;
    struct socket_transfer at;
    struct socket_hello hello;
    struct socket_shake shake;
    unsigned char key[TT_SEAL_KEY_BYTES]; /* sealed, proved: of its data */
};

struct socket_port {
    pthread_mutex_t lock;
    int fd;                               /* -1: not listening */
    union tt_addr addr, spare, third;     /* by which it is found; AF_UNSPEC for none */
    const struct socket_context *context; /* borrowed: it owns the port */
    struct socket_listener *listeners;    /* borrowed */
    size_t nlanes;                        /* of all of them */
    size_t ncandidates, capacity;
    struct candidate *candidates; /* owned */
    uint64_t pause_until_nsec;
    uint64_t unproved, reported_nsec;
};

struct socket_port *tt_socket_port_create(const struct socket_context *context)
{
    struct socket_port *port = tt_calloc(1, sizeof(*port));
    if (!port) return NULL;
    port->fd = -1;
    port->context = context;
    pthread_mutex_init(&port->lock, NULL);
    return port;
}

static void port_close(struct socket_port *port)
{
    for (size_t i = 0; i < port->ncandidates; i++)
        close(port->candidates[i].fd);
    if (port->candidates)
        sodium_memzero(port->candidates, port->capacity * sizeof(struct candidate));
    free(port->candidates);
    port->candidates = NULL;
    port->ncandidates = port->capacity = 0;
    if (port->fd >= 0) close(port->fd);
    port->fd = -1;
}

void tt_socket_port_destroy(struct socket_port *port)
{
    if (!port) return;
    port_close(port);
    pthread_mutex_destroy(&port->lock);
    free(port);
}

/* ---- listeners ---- */

/* Room for all lanes that may connect at once, twice over. */
static ncclResult_t make_room(struct socket_port *port)
{
    size_t capacity = tt_max_size(LEAST_CANDIDATES, 2 * port->nlanes);
    if (capacity <= port->capacity) return ncclSuccess;
    struct candidate *more = tt_calloc(capacity, sizeof(*more));
    if (!more) return tt_fail(ncclSystemError, "NET/Socket: out of memory for a listener");
    if (port->ncandidates)
        memcpy(more, port->candidates, port->ncandidates * sizeof(struct candidate));
    free(port->candidates);
    port->candidates = more;
    port->capacity = capacity;
    return ncclSuccess;
}

/* With a spare address the socket is bound to none: take_new() sees to it that no other serves. */
static ncclResult_t port_open(struct socket_port *port, const union tt_addr *netif,
                              const union tt_addr *const *spares)
{
    const union tt_addr none = {.sa.sa_family = AF_UNSPEC}, *spare = spares[0], *third = spares[1];
    union tt_addr bound = *netif;
    bool is_v6 = netif->sa.sa_family == AF_INET6;
    if (spare && is_v6) bound.v6.sin6_addr = in6addr_any;
    if (spare && !is_v6) bound.v4.sin_addr.s_addr = htonl(INADDR_ANY);
    ncclResult_t rc = tt_socket_listen(&bound, &port->fd);
    port->addr = *netif;
    port->spare = spare ? *spare : none;
    port->third = third ? *third : none;
    in_port_t number = is_v6 ? bound.v6.sin6_port : bound.v4.sin_port;
    if (is_v6) {
        port->addr.v6.sin6_port = port->spare.v6.sin6_port = port->third.v6.sin6_port = number;
    } else {
        port->addr.v4.sin_port = port->spare.v4.sin_port = port->third.v4.sin_port = number;
    }
    return rc;
}

/* The device's address; where only the loopback interface was there at first, of what is up now. */
static union tt_addr address_now(const union tt_addr *netif)
{
    struct tt_netif now;
    int count = 0;
    char text[64];
    if (!tt_addr_is_loopback(netif) || tt_netif_list(&now, 1, &count) || count < 1 ||
        tt_addr_is_loopback(&now.addr))
        return *netif;
    tt_info(TT_LOG_NET, "NET/Socket : Using %s:%s, which has come up", now.name,
            tt_addr_text(&now.addr, text, sizeof(text)));
    return now.addr;
}

ncclResult_t tt_socket_port_enter(struct socket_port *port, const union tt_addr *netif,
                                  const union tt_addr *const *spares,
                                  struct socket_listener *listener, struct socket_handle *handle)
{
    ncclResult_t rc = ncclSuccess;
    pthread_mutex_lock(&port->lock);
    port->nlanes += (size_t)listener->nlanes;
    if (port->fd < 0) {
        const union tt_addr addr = address_now(netif);
        rc = port_open(port, &addr, spares);
    }
    if (!rc) rc = make_room(port);
    handle->addr = port->addr;
    handle->spare = port->spare;
    handle->third = port->third;
    listener->port = port;
    listener->next = port->listeners;
    port->listeners = listener;
    pthread_mutex_unlock(&port->lock);
    return rc;
}

ncclResult_t tt_socket_port_stay(struct socket_port *port, struct socket_listener *listener)
{
    pthread_mutex_lock(&port->lock);
    port->nlanes += (size_t)listener->nlanes;
    ncclResult_t rc = make_room(port);
    listener->port = port;
    listener->next = port->listeners;
    port->listeners = listener;
    pthread_mutex_unlock(&port->lock);
    return rc;
}

bool tt_socket_port_has_spare(const struct socket_port *port)
{
    return port->spare.sa.sa_family != AF_UNSPEC;
}

const struct socket_context *tt_socket_port_context(const struct socket_port *port)
{
    return port->context;
}

void tt_socket_port_leave(struct socket_port *port, struct socket_listener *listener)
{
    pthread_mutex_lock(&port->lock);
    struct socket_listener **at = &port->listeners;
    while (*at && *at != listener)
        at = &(*at)->next;
    if (*at) {
        *at = listener->next;
        port->nlanes -= (size_t)listener->nlanes;
    }
    if (!port->listeners) port_close(port);
    pthread_mutex_unlock(&port->lock);
}

/* ---- candidates ---- */

static void drop(struct socket_port *port, size_t i)
{
    close(port->candidates[i].fd);
    port->candidates[i] = port->candidates[--port->ncandidates];
}

/* One line now and then, whatever peer connects. */
static void refuse(struct socket_port *port, size_t i, const char *why)
{
    uint64_t now = tt_now_nsec();
    drop(port, i);
    port->unproved++;
    if (port->reported_nsec && now - port->reported_nsec < REPORT_NSEC) return;
    port->reported_nsec = now;
    tt_attn("NET/Socket: rank %d refused %llu connections; the last one %s",
            port->context->trust.rank, (unsigned long long)port->unproved, why);
}

static void push_out_oldest(struct socket_port *port)
{
    size_t oldest = 0;
    for (size_t i = 1; i < port->ncandidates; i++) {
        if (port->candidates[i].since_nsec < port->candidates[oldest].since_nsec) oldest = i;
    }
    refuse(port, oldest, "made room for others");
}

static bool same_host(const union tt_addr *a, const union tt_addr *b)
{
    if (a->sa.sa_family != b->sa.sa_family) return false;
    return a->sa.sa_family == AF_INET6
               ? !memcmp(&a->v6.sin6_addr, &b->v6.sin6_addr, sizeof(a->v6.sin6_addr))
               : a->v4.sin_addr.s_addr == b->v4.sin_addr.s_addr;
}

/* Through one of the interfaces in the handle. */
static bool came_as_announced(const struct socket_port *port, int fd)
{
    union tt_addr own = {.sa.sa_family = AF_UNSPEC};
    socklen_t len = sizeof(own);
    if (port->spare.sa.sa_family == AF_UNSPEC) return true;
    if (getsockname(fd, &own.sa, &len)) return false;
    return same_host(&own, &port->addr) || same_host(&own, &port->spare) ||
           same_host(&own, &port->third);
}

/* Take what waits in the backlog; the oldest candidate makes room. */
static ncclResult_t take_new(struct socket_port *port)
{
    for (size_t taken = 0; taken < port->capacity; taken++) {
        struct pollfd waiting = {.fd = port->fd, .events = POLLIN};
        if (poll(&waiting, 1, 0) == 0) return ncclSuccess; /* accept() takes a descriptor first */
        int fd = accept4(port->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0 && (errno == EMFILE || errno == ENFILE)) {
            if (tt_socket_more_descriptors()) continue;
            return tt_socket_exhausted("NET/Socket: accept");
        }
        if (fd < 0 && (errno == EBADF || errno == EINVAL)) {
            return tt_fail(ncclSystemError, "NET/Socket: rank %d: accept: %m",
                           port->context->trust.rank);
        }
        if (fd < 0) return ncclSuccess; /* none, or one that is gone again */
        if (!came_as_announced(port, fd)) {
            close(fd);
            continue;
        }
        if (port->ncandidates == port->capacity) push_out_oldest(port);
        struct candidate *candidate = &port->candidates[port->ncandidates++];
        *candidate = (struct candidate){.fd = fd, .since_nsec = tt_now_nsec()};
    }
    return ncclSuccess;
}

/* The listener that a hello means; NULL: none of ours. */
static struct socket_listener *meant(const struct socket_port *port,
                                     const struct socket_hello *hello)
{
    bool fits =
        hello->wanted_rank == port->context->trust.rank && hello->sealed == port->context->sealed;
    struct socket_listener *found = NULL;
    for (struct socket_listener *at = port->listeners; at; at = at->next) {
        bool resumes = at->reconnects != NULL;
        if (resumes != hello->resumes || (resumes && hello->connection != at->connection)) continue;
        if (!sodium_memcmp(hello->listener, at->id, SOCKET_ID_BYTES)) found = at;
    }
    return fits && found && hello->lane < (uint32_t)found->nlanes ? found : NULL;
}

/* The candidate's proof as far as it goes: ncclSuccess when complete, ncclInProgress to be asked
 * again, else it is an unknown peer. */
static ncclResult_t examine(struct socket_port *port, struct candidate *candidate)
{
    const struct tt_net_trust *trust = &port->context->trust;
    struct socket_shake *shake = &candidate->shake;
    struct socket_transfer *at = &candidate->at;
    ncclResult_t rc = ncclSuccess;
    if (candidate->state == CANDIDATE_HELLO) {
        rc = tt_socket_transfer(candidate->fd, at, shake->hello, SHAKE_HELLO_BYTES);
        if (rc) return rc;
        if (!tt_shake_read(shake, &candidate->hello) || !meant(port, &candidate->hello))
            return ncclInvalidUsage;
        tt_shake_answer(shake, trust);
        candidate->state = CANDIDATE_ANSWER;
        at->sending = true;
    }
    if (candidate->state == CANDIDATE_ANSWER) {
        rc = tt_socket_transfer(candidate->fd, at, shake->answer, SHAKE_ANSWER_BYTES);
        if (rc) return rc;
        candidate->state = CANDIDATE_PROOF;
        at->sending = false;
    }
    rc = tt_socket_transfer(candidate->fd, at, shake->proof, SHAKE_PROOF_BYTES);
    if (rc) return rc;
    if (!tt_shake_check(shake, trust)) return ncclInvalidUsage;
    bool keyed = !port->context->sealed || tt_shake_key(shake, trust, true, candidate->key);
    return keyed ? ncclSuccess : ncclInvalidUsage;
}

/* A proved lane finds its place. Lanes of an earlier attempt of the connector are closed. */
static void place_lane(struct socket_listener *listener, const struct candidate *candidate)
{
    struct socket_ends *ends = &listener->ends;
    if (listener->connection != candidate->hello.connection) {
        for (int i = 0; i < listener->nlanes; i++) {
            if (ends->fds[i] >= 0) close(ends->fds[i]);
            ends->fds[i] = -1;
        }
        listener->nproved = 0;
        listener->connection = candidate->hello.connection;
    }
    int *entry = &ends->fds[candidate->hello.lane];
    if (*entry >= 0) {
        close(*entry);
    } else {
        listener->nproved++;
    }
    *entry = candidate->fd;
    memcpy(ends->keys[candidate->hello.lane], candidate->key, sizeof(candidate->key));
    ends->rank = candidate->hello.own_rank;
    tt_socket_tune(candidate->fd);
}

static void replace_lane(struct socket_listener *listener, const struct candidate *candidate)
{
    struct socket_reconnect *entry = &listener->reconnects[candidate->hello.lane];
    if (entry->fd >= 0) close(entry->fd);
    *entry = (struct socket_reconnect){candidate->fd, candidate->shake};
    tt_socket_tune(candidate->fd);
}

/* Proved: its listener takes it, unless that has gone meanwhile. */
static void admit(struct socket_port *port, size_t i)
{
    struct socket_listener *listener = meant(port, &port->candidates[i].hello);
    if (!listener) {
        drop(port, i);
        return;
    }
    if (listener->reconnects) {
        replace_lane(listener, &port->candidates[i]);
    } else {
        place_lane(listener, &port->candidates[i]);
    }
    port->candidates[i] = port->candidates[--port->ncandidates];
}

/* True when the candidate left its place in the list. */
static bool examine_one(struct socket_port *port, size_t i)
{
    struct candidate *candidate = &port->candidates[i];
    ncclResult_t rc = examine(port, candidate);
    if (!rc) {
        admit(port, i);
        return true;
    }
    uint64_t timeout_nsec = candidate->state > CANDIDATE_HELLO ? STALL_NSEC : SILENCE_NSEC;
    bool late = tt_now_nsec() - candidate->since_nsec > timeout_nsec;
    if (rc == ncclInProgress && !late) return false;
    refuse(port, i,
           late                    ? "stayed silent"
           : rc == ncclRemoteError ? "went away"
                                   : "did not prove that it belongs to us");
    return true;
}

/* Many listeners ask in turn: one look serves all. */
static ncclResult_t look(struct socket_port *port)
{
    bool moved = false;
    if (tt_now_nsec() < port->pause_until_nsec) return ncclSuccess;
    ncclResult_t rc = take_new(port);
    for (size_t i = 0; i < port->ncandidates;) {
        bool left = examine_one(port, i);
        moved |= left;
        if (!left) i++;
    }
    if (!moved && port->listeners->next) port->pause_until_nsec = tt_now_nsec() + PAUSE_NSEC;
    return rc;
}

ncclResult_t tt_socket_port_resumed(struct socket_port *port, struct socket_listener *listener,
                                    int lane, struct socket_reconnect *reconnect_out)
{
    ncclResult_t rc = ncclSuccess;
    struct socket_reconnect *entry = &listener->reconnects[lane];
    pthread_mutex_lock(&port->lock);
    if (entry->fd < 0) rc = look(port);
    *reconnect_out = *entry;
    entry->fd = -1;
    pthread_mutex_unlock(&port->lock);
    return rc;
}

ncclResult_t tt_socket_port_serve(struct socket_port *port, struct socket_listener *listener,
                                  struct socket_ends *ends_out)
{
    ncclResult_t rc = ncclSuccess;
    pthread_mutex_lock(&port->lock);
    if (listener->nproved < listener->nlanes) rc = look(port);
    if (!rc && listener->nproved < listener->nlanes) rc = ncclInProgress;
    if (!rc) {
        *ends_out = listener->ends;
        sodium_memzero(listener->ends.keys, sizeof(listener->ends.keys));
        for (int i = 0; i < listener->nlanes; i++)
            listener->ends.fds[i] = -1;
        listener->nproved = 0;
    }
    pthread_mutex_unlock(&port->lock);
    return rc;
}
