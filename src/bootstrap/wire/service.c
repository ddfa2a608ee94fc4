/* Life of the service thread, its doors and listeners, and what fork and exit mean for them.
 * Only the thread waits in epoll; whoever holds the lock may add, remove and send. */
#include "bootstrap/wire/service.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/join/id.h"
#include "bootstrap/join/root.h"
#include "bootstrap/local/local.h"
#include "bootstrap/tree/tree.h"
#include "bootstrap/wire/conn.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 64
#define TOKEN_WAKE 1ull
#define TICK_NSEC 20000000ull /* resolution of deadlines */
#define SETTLE_NSEC 1000000000ull

/* The process has one: descriptors and the thread are process-wide by nature. */
static struct tt_service the_service = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .ended = PTHREAD_COND_INITIALIZER,
    .epoll_fd = -1,
    .event_fd = -1,
    .next_token = TOKEN_WAKE + 1,
};

struct tt_service *tt_service(void)
{
    return &the_service;
}

void tt_service_lock(void)
{
    pthread_mutex_lock(&the_service.lock);
}

void tt_service_unlock(void)
{
    pthread_mutex_unlock(&the_service.lock);
}

void tt_service_wake(void)
{
    uint64_t one = 1;
    if (the_service.event_fd < 0) return;
    ssize_t done = write(the_service.event_fd, &one, sizeof(one));
    (void)done; /* full means: already awake */
}

/* ---- the thread ---- */

static struct tt_conn *find_conn(uint64_t token)
{
    struct tt_conn *conn = the_service.conns;
    while (conn && conn->token != token)
        conn = conn->next;
    return conn;
}

static struct tt_listener *find_listener(uint64_t token)
{
    struct tt_listener *listener = the_service.listeners;
    while (listener && listener->token != token)
        listener = listener->next;
    return listener;
}

static void serve_event(const struct epoll_event *event)
{
    uint64_t count;
    if (event->data.u64 == TOKEN_WAKE) {
        ssize_t done = read(the_service.event_fd, &count, sizeof(count));
        (void)done;
        return;
    }
    struct tt_conn *conn = find_conn(event->data.u64);
    if (conn) {
        tt_conn_event(conn, event->events);
        return;
    }
    struct tt_listener *listener = find_listener(event->data.u64);
    if (listener) tt_gate_accept(listener);
}

static void bury(void)
{
    while (the_service.corpses) {
        struct tt_conn *conn = the_service.corpses;
        the_service.corpses = conn->next;
        tt_conn_free(conn);
    }
}

/* Act on passed deadlines; milliseconds to the next turn, -1 when nothing has one. */
static int serve_deadlines(void)
{
    uint64_t now = tt_now_nsec();
    bool root_pending = tt_root_tick(now);
    bool pending = tt_tree_tick(now) || root_pending;
    struct tt_conn *next;
    for (struct tt_conn *conn = the_service.conns; conn; conn = next) {
        next = conn->next;
        if (conn->deadline_nsec && conn->deadline_nsec <= now) {
            tt_conn_expire(conn);
            next = the_service.conns; /* a callback may have closed any other */
            continue;
        }
        pending |= conn->deadline_nsec != 0;
    }
    return pending ? (int)(TICK_NSEC / 1000000) : -1;
}

static void close_all(void)
{
    while (the_service.conns)
        tt_conn_close(the_service.conns);
    if (!the_service.quit) bury(); /* else members that outlive the thread still look at theirs */
    while (the_service.listeners)
        tt_service_unlisten(the_service.listeners);
    the_service.main_listener = NULL;
    if (the_service.epoll_fd >= 0) close(the_service.epoll_fd);
    if (the_service.event_fd >= 0) close(the_service.event_fd);
    the_service.epoll_fd = the_service.event_fd = -1;
}

static void *service_main(void *arg)
{
    struct epoll_event events[EVENTS];
    (void)arg;
    tt_service_lock();
    while (the_service.users > 0 && !the_service.quit) {
        int timeout_msec = serve_deadlines();
        bury();
        if (the_service.users == 0) break;
        tt_service_unlock();
        int n = epoll_wait(the_service.epoll_fd, events, EVENTS, timeout_msec);
        tt_service_lock();
        for (int i = 0; i < n && !the_service.quit; i++)
            serve_event(&events[i]);
        if (!the_service.quit) bury();
    }
    close_all();
    the_service.state = TT_SERVICE_ENDED;
    pthread_cond_broadcast(&the_service.ended);
    tt_service_unlock();
    return NULL;
}

/* ---- fork and exit ---- */

static void fork_prepare(void)
{
    tt_service_lock();
}

static void fork_parent(void)
{
    tt_service_unlock();
}

/* The child has no service thread and must not hold the sockets: peers would see no end of file
 * when the parent dies. What it inherits is dead by `epoch`; closing an inherited descriptor says
 * nothing to the peers, the parent's copies stay open. */
static void fork_child(void)
{
    pthread_mutex_init(&the_service.lock, NULL);
    pthread_cond_init(&the_service.ended, NULL);
    tt_tree_orphan(the_service.members);
    tt_local_orphan();
    tt_root_orphan();
    close_all();
    the_service.doors = NULL;
    the_service.members = NULL;
    the_service.users = 0;
    the_service.state = TT_SERVICE_STOPPED;
    the_service.epoch++;
}

/* CLOCK_REALTIME, as pthread_cond_timedwait and pthread_mutex_timedlock want it. */
static struct timespec in_nsec(uint64_t nsec)
{
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    nsec += (uint64_t)at.tv_nsec;
    at.tv_sec += (time_t)(nsec / 1000000000);
    at.tv_nsec = (long)(nsec % 1000000000);
    return at;
}

/* Process exit: say goodbye for every live membership, stop the thread. At most 2 s. */
static void at_process_exit(int code, void *arg)
{
    (void)arg;
    struct timespec until = in_nsec(SETTLE_NSEC);
    if (pthread_mutex_timedlock(&the_service.lock, &until)) return;
    if (the_service.state == TT_SERVICE_RUNNING) {
        for (struct tt_bootstrap *b = the_service.members; b; b = tt_tree_next(b)) {
            tt_tree_exit(b, code);
        }
        while (tt_root_has_word()) { /* ranks that come late, or wait for a reason */
            if (pthread_cond_timedwait(&the_service.ended, &the_service.lock, &until)) break;
        }
        tt_root_exit();
        the_service.quit = true;
        tt_service_wake();
        until = in_nsec(SETTLE_NSEC); /* the words may have used up the first second */
        while (the_service.state == TT_SERVICE_RUNNING) {
            if (pthread_cond_timedwait(&the_service.ended, &the_service.lock, &until)) break;
        }
    }
    if (the_service.state == TT_SERVICE_ENDED) {
        pthread_join(the_service.thread, NULL);
        the_service.state = TT_SERVICE_STOPPED;
    }
    the_service.quit = true;
    tt_service_unlock();
}

/* ---- users ---- */

static ncclResult_t service_start(void)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = TOKEN_WAKE};
    the_service.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    the_service.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (the_service.epoll_fd < 0 || the_service.event_fd < 0 ||
        epoll_ctl(the_service.epoll_fd, EPOLL_CTL_ADD, the_service.event_fd, &event)) {
        ncclResult_t rc = tt_fail(ncclSystemError, "bootstrap: cannot make its descriptors: %m");
        close_all();
        return rc;
    }
    if (!the_service.hooked) {
        pthread_atfork(fork_prepare, fork_parent, fork_child);
        on_exit(at_process_exit, NULL);
        the_service.hooked = true;
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&the_service.thread, NULL, service_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        errno = error;
        ncclResult_t rc = tt_fail(ncclSystemError, "bootstrap: cannot start its thread: %m");
        close_all();
        return rc;
    }
    pthread_setname_np(the_service.thread, "tutti-bootstrap");
    the_service.state = TT_SERVICE_RUNNING;
    return ncclSuccess;
}

/* The old thread has no users left: let it go. */
static void service_reap(void)
{
    while (the_service.state == TT_SERVICE_RUNNING && the_service.users == 0) {
        tt_service_wake();
        pthread_cond_wait(&the_service.ended, &the_service.lock);
    }
    if (the_service.state == TT_SERVICE_ENDED && !the_service.quit) {
        pthread_join(the_service.thread, NULL); /* it has let go of the lock for the last time */
        the_service.state = TT_SERVICE_STOPPED;
    }
}

ncclResult_t tt_service_acquire(void)
{
    if (the_service.quit) return tt_fail(ncclInvalidUsage, "bootstrap: the process is exiting");
    if (the_service.users == 0) service_reap();
    if (the_service.state == TT_SERVICE_STOPPED) {
        ncclResult_t rc = service_start();
        if (rc) return rc;
    }
    the_service.users++;
    return ncclSuccess;
}

void tt_service_release(void)
{
    if (--the_service.users == 0) tt_service_wake();
}

void tt_service_settle(void)
{
    struct timespec until = in_nsec(SETTLE_NSEC);
    tt_service_lock();
    while (the_service.state == TT_SERVICE_RUNNING && the_service.users == 0) {
        if (pthread_cond_timedwait(&the_service.ended, &the_service.lock, &until)) break;
    }
    if (the_service.users == 0 && the_service.state == TT_SERVICE_ENDED) service_reap();
    tt_service_unlock();
}

/* ---- listeners and doors ---- */

ncclResult_t tt_service_listen(int fd, bool local, struct tt_listener **listener_out)
{
    struct tt_listener *listener = calloc(1, sizeof(*listener));
    if (!listener) return tt_fail(ncclSystemError, "bootstrap: out of memory");
    listener->fd = fd;
    listener->local = local;
    listener->token = the_service.next_token++;
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = listener->token};
    if (epoll_ctl(the_service.epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
        free(listener);
        return tt_fail(ncclSystemError, "bootstrap: epoll: %m");
    }
    listener->next = the_service.listeners;
    the_service.listeners = listener;
    *listener_out = listener;
    return ncclSuccess;
}

void tt_service_unlisten(struct tt_listener *listener)
{
    struct tt_listener **link = &the_service.listeners;
    while (*link && *link != listener)
        link = &(*link)->next;
    if (!*link) return;
    *link = listener->next;
    close(listener->fd);
    free(listener);
}

ncclResult_t tt_service_main_listener(union tt_addr *addr_out)
{
    if (!the_service.main_listener) {
        union tt_addr addr;
        int fd;
        ncclResult_t rc = tt_bootstrap_netif(&addr);
        if (!rc) rc = tt_socket_listen(&addr, &fd);
        if (rc) return rc;
        rc = tt_service_listen(fd, false, &the_service.main_listener);
        if (rc) {
            close(fd);
            return rc;
        }
        the_service.main_listener->addr = addr;
    }
    *addr_out = the_service.main_listener->addr;
    return ncclSuccess;
}

struct tt_door *tt_door_find(const struct tt_hello *hello, bool local)
{
    for (struct tt_door *door = the_service.doors; door; door = door->next) {
        bool ours =
            door->kind == TT_KEY_ROOT ? hello->wanted_rank < 0 : hello->wanted_rank == door->rank;
        if (!ours || door->kind != hello->kind || local != (door->kind == TT_KEY_LOCAL)) continue;
        if (memcmp(door->key.name, hello->key_name, TT_KEY_NAME_BYTES) != 0) continue;
        if (door->admits(door, hello)) return door;
    }
    return NULL;
}

void tt_door_open(struct tt_door *door)
{
    door->next = the_service.doors;
    the_service.doors = door;
    struct tt_conn *next;
    for (struct tt_conn *conn = the_service.conns; conn; conn = next) {
        next = conn->next;
        if (conn->state == TT_CONN_PARKED) tt_conn_unpark(conn);
    }
}

void tt_door_close(struct tt_door *door)
{
    struct tt_door **link = &the_service.doors;
    while (*link && *link != door)
        link = &(*link)->next;
    if (!*link) return;
    *link = door->next;
    struct tt_conn *next;
    for (struct tt_conn *conn = the_service.conns; conn; conn = next) {
        next = conn->next;
        if (conn->door == door && conn->state == TT_CONN_PROOF) tt_conn_close(conn);
    }
}
