/* Life of the service thread, and what fork and exit mean for it. Only the thread waits in epoll;
 * a thread that holds the lock may add, remove and send. */
#include "bootstrap/wire/loop.h"

#include "base/error.h"
#include "base/launcher.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/listener.h"
#include "bootstrap/wire/service.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS 64
#define TICK_NSEC 20000000ull /* resolution of deadlines */
#define IDLE_NSEC 1000000000ull
#define NEEDED_NSEC 10000000000ull /* as long as a proxy waits for peers to take what it sent */
#define EXIT_SLEEP_USEC 1000

/* ---- the thread ---- */

static void serve_event(struct tt_service *service, const struct epoll_event *event)
{
    if (event->data.u64 == TT_TOKEN_WAKE) {
        uint64_t count;
        ssize_t done = read(service->event_fd, &count, sizeof(count));
        (void)done;
        return;
    }
    struct tt_conn *conn = service->conns;
    while (conn && conn->token != event->data.u64)
        conn = conn->next;
    if (conn) {
        tt_conn_event(conn, event->events);
        return;
    }
    struct tt_listener *listener = service->listeners;
    while (listener && listener->token != event->data.u64)
        listener = listener->next;
    if (listener) tt_listener_accept(listener);
}

static void free_closed(struct tt_service *service)
{
    while (service->closed) {
        struct tt_conn *conn = service->closed;
        service->closed = conn->next;
        tt_conn_free(conn);
    }
}

/* Act on passed deadlines; milliseconds to the next turn. */
static int serve_deadlines(struct tt_service *service)
{
    uint64_t now = tt_now_nsec();
    bool pending = false;
    for (int i = 0; i < TT_SERVICE_CLIENTS; i++) {
        const struct tt_service_client *client = service->clients[i];
        if (client && client->tick) pending |= client->tick(now);
    }
    struct tt_conn *next;
    for (struct tt_conn *conn = service->conns; conn; conn = next) {
        next = conn->next;
        if (conn->deadline_nsec && conn->deadline_nsec <= now) {
            tt_conn_expire(conn);
            next = service->conns; /* a callback may have closed any other */
            continue;
        }
        pending |= conn->deadline_nsec != 0;
    }
    /* never for ever: a set of descriptors that the process has closed ends no wait */
    return (int)((pending ? TICK_NSEC : IDLE_NSEC) / 1000000);
}

static void close_all(struct tt_service *service)
{
    while (service->conns)
        tt_conn_close(service->conns);
    if (!service->quit)
        free_closed(service); /* else members that outlive the thread look at them */
    while (service->listeners)
        tt_listener_close(service->listeners);
    service->main_listener = service->spare_listener = NULL;
    if (service->epoll_fd >= 0) close(service->epoll_fd);
    if (service->event_fd >= 0) close(service->event_fd);
    tt_service_spend_reserve();
    service->epoll_fd = service->event_fd = -1;
    service->exhausted_nsec = 0;
}

/* The process has closed descriptors of the service, or put others in their place: nothing would be
 * heard any more. */
static void lose_all(struct tt_service *service)
{
    service->robbed = false;
    while (service->conns)
        tt_conn_rob(service->conns);
    tt_service_unlock();
    tt_sleep_usec(TICK_NSEC / 1000);
    tt_service_lock();
}

static void *service_main(void *arg)
{
    struct tt_service *service = arg;
    struct epoll_event events[EVENTS];
    tt_service_lock();
    while (service->users > 0 && !service->quit) {
        int timeout_msec = serve_deadlines(service);
        free_closed(service);
        if (service->users == 0) break;
        tt_service_unlock();
        int n = epoll_wait(service->epoll_fd, events, EVENTS, timeout_msec);
        const bool robbed = n < 0 && errno != EINTR;
        tt_service_lock();
        if ((robbed || service->robbed) && !service->quit) lose_all(service);
        for (int i = 0; i < n && !service->quit; i++)
            serve_event(service, &events[i]);
        if (!service->quit) free_closed(service);
    }
    close_all(service);
    service->state = TT_SERVICE_ENDED;
    pthread_cond_broadcast(&service->ended);
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
    struct tt_service *service = tt_service();
    pthread_mutex_init(&service->lock, NULL);
    pthread_cond_init(&service->ended, NULL);
    for (int i = 0; i < TT_SERVICE_CLIENTS; i++) {
        const struct tt_service_client *client = service->clients[i];
        if (client && client->fork_child) client->fork_child();
    }
    close_all(service);
    service->acceptors = NULL;
    service->members = NULL;
    service->users = 0;
    service->state = TT_SERVICE_STOPPED;
    service->epoch++;
}

static void hook_fork(struct tt_service *service)
{
    if (!service->fork_hooked) pthread_atfork(fork_prepare, fork_parent, fork_child);
    service->fork_hooked = true;
}

void tt_bootstrap_hook_fork(void)
{
    tt_service_lock();
    hook_fork(tt_service());
    tt_service_unlock();
}

/* False when something ended the wait: the time, in practice. Lock held. */
static bool await_end(struct tt_service *service, uint64_t until_nsec)
{
    const struct timespec at = tt_clock_at(until_nsec);
    return !pthread_cond_clockwait(&service->ended, &service->lock, CLOCK_MONOTONIC, &at);
}

/* The lock of a process that exits: another thread may hold it for ever. */
static bool lock_until(struct tt_service *service, uint64_t until_nsec)
{
    while (pthread_mutex_trylock(&service->lock)) {
        if (tt_now_nsec() >= until_nsec) return false;
        tt_sleep_usec(EXIT_SLEEP_USEC);
    }
    return true;
}

static bool some_busy(const struct tt_service *service)
{
    for (int i = 0; i < TT_SERVICE_CLIENTS; i++) {
        const struct tt_service_client *client = service->clients[i];
        if (client && client->busy && client->busy()) return true;
    }
    return false;
}

static bool some_needed(const struct tt_service *service)
{
    for (int i = 0; i < TT_SERVICE_CLIENTS; i++) {
        const struct tt_service_client *client = service->clients[i];
        if (client && client->needed && client->needed()) return true;
    }
    return false;
}

/* Clients send to their peers, before `until` where they can, and then what no thread waits for. */
static void say_goodbye(struct tt_service *service, int code, uint64_t until_nsec)
{
    for (int i = 0; i < TT_SERVICE_CLIENTS; i++) {
        const struct tt_service_client *client = service->clients[i];
        if (client && client->goodbye) client->goodbye(code);
    }
    while (some_busy(service) && await_end(service, until_nsec)) {
    }
    for (int i = 0; i < TT_SERVICE_CLIENTS; i++) {
        const struct tt_service_client *client = service->clients[i];
        if (client && client->last_word) client->last_word();
    }
}

/* Tell `tutti run`, if it started this process, before peers fail for want of this rank and end
 * sooner than it. */
static void report_launcher(int code)
{
    char name[TT_LAUNCHER_BYTES];
    if (!code) return;
    tt_launcher_name(name);
    tt_launcher_report(name, &(struct tt_launcher_note){.kind = TT_LAUNCHER_EXIT, .status = code});
}

/* Process exit: peers learn of it, also ranks that come late or wait for a reason; then the thread
 * stops. At most 2 s; at the end of a program that went well 10 s more, while peers that have not
 * come to their end reach each other through this process. */
static void at_process_exit(int code, void *arg)
{
    struct tt_service *service = arg;
    uint64_t until_nsec = tt_now_nsec() + IDLE_NSEC;
    if (!lock_until(service, until_nsec)) return;
    const uint64_t last_nsec = until_nsec + NEEDED_NSEC;
    while (!code && service->state == TT_SERVICE_RUNNING && some_needed(service) &&
           await_end(service, last_nsec)) {
    }
    until_nsec = tt_now_nsec() + IDLE_NSEC;
    if (service->state == TT_SERVICE_RUNNING) {
        report_launcher(code);
        say_goodbye(service, code, until_nsec);
        service->quit = true;
        tt_service_wake();
        until_nsec = tt_now_nsec() + IDLE_NSEC; /* the first second may be used up */
        while (service->state == TT_SERVICE_RUNNING && await_end(service, until_nsec)) {
        }
    }
    if (service->state == TT_SERVICE_ENDED) {
        pthread_join(service->thread, NULL);
        service->state = TT_SERVICE_STOPPED;
    }
    service->quit = true;
    tt_service_unlock();
}

/* ---- users ---- */

static ncclResult_t service_start(struct tt_service *service)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = TT_TOKEN_WAKE};
    for (int tries = 0; tries < 2; tries++) {
        if (service->epoll_fd < 0) service->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
        if (service->event_fd < 0) service->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        const bool both = service->epoll_fd >= 0 && service->event_fd >= 0;
        if (both || errno != EMFILE || !tt_socket_more_descriptors()) break;
    }
    if (service->epoll_fd < 0 || service->event_fd < 0 ||
        epoll_ctl(service->epoll_fd, EPOLL_CTL_ADD, service->event_fd, &event)) {
        ncclResult_t rc = errno == EMFILE ? tt_socket_exhausted("bootstrap")
                                          : tt_fail(ncclSystemError,
                                                    "bootstrap: cannot make its descriptors: %m");
        close_all(service);
        return rc;
    }
    tt_service_keep_reserve();
    hook_fork(service);
    if (!service->hooked) on_exit(at_process_exit, service);
    service->hooked = true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&service->thread, NULL, service_main, service);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) {
        errno = error;
        ncclResult_t rc = tt_fail(ncclSystemError, "bootstrap: cannot start its thread: %m");
        close_all(service);
        return rc;
    }
    pthread_setname_np(service->thread, "tutti-bootstrap");
    service->state = TT_SERVICE_RUNNING;
    return ncclSuccess;
}

/* The old thread has no users left: let it go. */
static void service_reap(struct tt_service *service)
{
    while (service->state == TT_SERVICE_RUNNING && service->users == 0) {
        tt_service_wake();
        pthread_cond_wait(&service->ended, &service->lock);
    }
    if (service->state == TT_SERVICE_ENDED && !service->quit) {
        pthread_join(service->thread, NULL); /* it has let go of the lock for the last time */
        service->state = TT_SERVICE_STOPPED;
    }
}

ncclResult_t tt_service_acquire(const struct tt_service_client *client)
{
    struct tt_service *service = tt_service();
    if (service->quit) return tt_fail(ncclInvalidUsage, "bootstrap: the process is exiting");
    if (service->users == 0) service_reap(service);
    if (service->state == TT_SERVICE_STOPPED) {
        ncclResult_t rc = service_start(service);
        if (rc) return rc;
    }
    service->users++;
    if (!client) return ncclSuccess;
    int slot = 0;
    while (slot < TT_SERVICE_CLIENTS - 1 && service->clients[slot] &&
           service->clients[slot] != client)
        slot++;
    assert(!service->clients[slot] || service->clients[slot] == client);
    service->clients[slot] = client;
    return ncclSuccess;
}

void tt_service_release(void)
{
    if (--tt_service()->users == 0) tt_service_wake();
}

void tt_service_wait_idle(void)
{
    struct tt_service *service = tt_service();
    uint64_t until_nsec = tt_now_nsec() + IDLE_NSEC;
    tt_service_lock();
    while (service->state == TT_SERVICE_RUNNING && service->users == 0 &&
           await_end(service, until_nsec)) {
    }
    if (service->users == 0 && service->state == TT_SERVICE_ENDED) service_reap(service);
    tt_service_unlock();
}
