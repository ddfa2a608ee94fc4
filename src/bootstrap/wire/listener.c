/* What unauthenticated peers may cost: a bounded number of connections, none that blocks another.
 * Nothing is allocated by what they send; the oldest silent one makes room for the next. */
#include "bootstrap/wire/listener.h"

#include "base/error.h"
#include "base/system/clock.h"
#include "bootstrap/wire/address.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/service.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PENDING_LEAST 64
#define ACCEPTS_PER_TURN 64
#define SILENT_NSEC 100000000ull
#define EXHAUSTED_USEC 2000
#define YOUNG_NSEC 20000000ull /* its first words may be on their way */

/* ---- life ---- */

ncclResult_t tt_listener_open(int fd, bool local, struct tt_listener **listener_out)
{
    struct tt_listener *listener = calloc(1, sizeof(*listener));
    if (!listener) return tt_fail(ncclSystemError, "bootstrap: out of memory");
    listener->fd = fd;
    listener->local = local;
    listener->token = tt_service()->next_token++;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = listener->token};
    if (epoll_ctl(tt_service()->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
        free(listener);
        return tt_fail(ncclSystemError, "bootstrap: epoll: %m");
    }
    listener->next = tt_service()->listeners;
    tt_service()->listeners = listener;
    *listener_out = listener;
    return ncclSuccess;
}

void tt_listener_close(struct tt_listener *listener)
{
    struct tt_listener **link = &tt_service()->listeners;
    while (*link && *link != listener)
        link = &(*link)->next;
    if (!*link) return;
    *link = listener->next;
    close(listener->fd);
    free(listener);
}

ncclResult_t tt_listener_main(union tt_addr *addr_out)
{
    struct tt_service *service = tt_service();
    const struct tt_listener *main = service->main_listener;
    if (!main || tt_addr_is_loopback(&main->addr)) {
        union tt_addr addr;
        int fd;
        ncclResult_t rc = tt_bootstrap_netif(&addr);
        if (!rc && main && tt_addr_same_ip(&addr, &main->addr)) {
            *addr_out = main->addr;
            return ncclSuccess;
        }
        if (!rc) rc = tt_socket_listen(&addr, &fd);
        if (rc) return rc;
        rc = tt_listener_open(fd, false, &service->main_listener); /* an earlier one stays open */
        if (rc) {
            close(fd);
            return rc;
        }
        service->main_listener->addr = addr;
    }
    *addr_out = service->main_listener->addr;
    return ncclSuccess;
}

void tt_listener_spare(union tt_addr *addr_out)
{
    struct tt_service *service = tt_service();
    union tt_addr addr;
    int fd;
    *addr_out = (union tt_addr){.sa.sa_family = AF_UNSPEC};
    tt_bootstrap_spare_netif(&addr);
    if (!service->spare_listener && addr.sa.sa_family != AF_UNSPEC) {
        if (tt_socket_listen(&addr, &fd)) return;
        if (tt_listener_open(fd, false, &service->spare_listener)) {
            close(fd);
            return;
        }
        service->spare_listener->addr = addr;
    }
    if (service->spare_listener) *addr_out = service->spare_listener->addr;
}

/* ---- limits ---- */

/* Local connections come from our own user: they are not counted. */
static bool pending(const struct tt_conn *conn)
{
    return conn->server && !conn->local && conn->state != TT_CONN_OPEN &&
           conn->state != TT_CONN_DEAD;
}

/* Oldest connection that has said nothing (else: that gets no answer); of one source, or of all
 * when `from` is NULL. */
static struct tt_conn *least_wanted(const union tt_addr *from)
{
    struct tt_conn *worst = NULL;
    for (struct tt_conn *conn = tt_service()->conns; conn; conn = conn->next) {
        bool idle = conn->state == TT_CONN_HELLO || conn->state == TT_CONN_PARKED;
        if (!pending(conn) || !idle || (from && !tt_addr_same_ip(&conn->from, from))) continue;
        bool better = !worst || conn->state < worst->state ||
                      (conn->state == worst->state && conn->accepted_nsec < worst->accepted_nsec);
        if (better) worst = conn;
    }
    return worst;
}

static void push_out(struct tt_conn *conn)
{
    tt_service_refused("pushed out by newer ones");
    tt_conn_close(conn);
}

/* Make room for one more. False: there is none, the newcomer has to go. */
static bool make_room(const union tt_addr *from)
{
    uint32_t all = 0, source = 0;
    for (struct tt_conn *conn = tt_service()->conns; conn; conn = conn->next) {
        all += pending(conn);
        source += pending(conn) && tt_addr_same_ip(&conn->from, from);
    }
    uint32_t cap = 2 * tt_service()->expected;
    if (cap < PENDING_LEAST) cap = PENDING_LEAST;
    if (all >= cap) {
        struct tt_conn *worst = least_wanted(source >= cap / 4 ? from : NULL);
        if (worst) push_out(worst);
        return worst != NULL;
    }
    if (source < cap / 4) return true;
    /* many ranks of one host are legitimate as long as they talk */
    struct tt_conn *worst = least_wanted(from);
    bool silent = worst && worst->state == TT_CONN_HELLO &&
                  tt_now_nsec() - worst->accepted_nsec > SILENT_NSEC;
    if (silent) push_out(worst);
    return true;
}

static bool same_user(int fd)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);
    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len)) return false;
    return peer.uid == geteuid();
}

/* No descriptor for a new connection: close one that has sent nothing for a while; else pause.
 * Roots and members look how long this lasts (tt_service_cannot_accept()). */
static void out_of_descriptors(int error)
{
    struct tt_conn *worst = least_wanted(NULL);
    if (error == EMFILE && !tt_service()->exhausted) { /* ENFILE: the system's, no limit of ours */
        (void)tt_socket_exhausted("bootstrap: accept");
        tt_service()->exhausted = true;
    }
    tt_service_refused("out of descriptors");
    if (worst && tt_now_nsec() - worst->accepted_nsec > YOUNG_NSEC) {
        tt_conn_close(worst);
    } else {
        if (error == EMFILE) tt_service_accepted_none(tt_now_nsec());
        tt_sleep_usec(EXHAUSTED_USEC);
    }
}

/* One connection; false when there is none to take now. */
static bool accept_one(const struct tt_listener *listener)
{
    union tt_addr from = {0};
    socklen_t len = sizeof(from);
    int fd = accept4(listener->fd, listener->local ? NULL : &from.sa, listener->local ? NULL : &len,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
        int error = errno;
        if (error == EMFILE && tt_socket_more_descriptors()) return true;
        if (error == EMFILE || error == ENFILE) out_of_descriptors(error);
        return error == EINTR || error == ECONNABORTED;
    }
    tt_service()->exhausted_nsec = 0;
    if (listener->local && !same_user(fd)) {
        tt_service_refused("another user");
        close(fd);
    } else if (!listener->local && !make_room(&from)) {
        tt_service_refused("too many at once");
        close(fd);
    } else {
        tt_conn_serve(fd, listener->local, &from);
    }
    return true;
}

void tt_listener_accept(struct tt_listener *listener)
{
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        if (!accept_one(listener)) return;
    }
}
