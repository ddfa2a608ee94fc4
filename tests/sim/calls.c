/* What the library asks the system for, in the place of libc's functions: a program's own functions
 * go before those of its libraries. Descriptors from SIM_FD on are the simulation's; others, and
 * threads outside it, get the real thing. */
#include "simulation.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TICK_NSEC = 200, PUNCTUAL = 8, LATE_NSEC = 50000, LATE_DOUBLES = 11 };

static struct sim_socket *at_fd(int fd)
{
    return fd >= SIM_FD && fd < SIM_FD + SIM_SOCKETS ? &sim->sockets[fd - SIM_FD] : NULL;
}

/* As the system tells errors. */
static ssize_t set_errno(ssize_t n)
{
    if (n >= 0) return n;
    errno = (int)-n;
    return -1;
}

static uint64_t nsec_of(const struct timespec *time)
{
    return (uint64_t)time->tv_sec * SIM_SEC + (uint64_t)time->tv_nsec;
}

/* ---- time ---- */

int clock_gettime(clockid_t clock, struct timespec *now)
{
    if (!sim_self()) return (int)syscall(SYS_clock_gettime, clock, now);
    sim->now += TICK_NSEC;
    now->tv_sec = (time_t)(sim->now / SIM_SEC);
    now->tv_nsec = (long)(sim->now % SIM_SEC);
    return 0;
}

/* When the clock ends a wait. That is late, as on a busy machine, for threads that have
 * found nothing new some times in a row: so seconds in which nothing happens take few turns. */
static uint64_t ends_at(uint64_t until)
{
    struct sim_thread *own = sim_self();
    uint64_t happened = sim->procs[own->proc].happened;
    own->fruitless = own->seen == happened ? own->fruitless + 1 : 0;
    own->seen = happened;
    if (own->fruitless < PUNCTUAL || until == SIM_NEVER) return until;
    uint32_t doubles = own->fruitless - PUNCTUAL;
    return until + sim_chance(LATE_NSEC << (doubles < LATE_DOUBLES ? doubles : LATE_DOUBLES));
}

static void sleep_until(uint64_t until)
{
    sim_self()->wait = SIM_SLEEPS;
    sim_self()->until = until;
    sim_turn();
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *time, struct timespec *left)
{
    if (!sim_self()) return (int)syscall(SYS_clock_nanosleep, clock, flags, time, left);
    sleep_until(ends_at(flags & TIMER_ABSTIME ? nsec_of(time) : sim->now + nsec_of(time)));
    return 0;
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
    if (!sim_self()) return (int)syscall(SYS_nanosleep, time, left);
    sleep_until(ends_at(sim->now + nsec_of(time)));
    return 0;
}

int sched_yield(void)
{
    if (!sim_self()) return (int)syscall(SYS_sched_yield);
    sleep_until(sim->now + 1000);
    return 0;
}

/* ---- threads ---- */

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);

struct start {
    void *(*function)(void *arg);
    void *arg;
    int thread;
};
/* By thread of the simulation: whom a join means. The process's own. */
static pthread_t handles[SIM_THREADS];

static void *run_thread(void *arg)
{
    struct start start = *(struct start *)arg;
    free(arg);
    sim_thread_begin(start.thread);
    void *result = start.function(start.arg);
    sim_thread_end();
    return result;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*function)(void *arg),
                   void *arg)
{
    int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
    if (!sim_self()) return create(thread, attr, function, arg);
    int own = sim_thread_new(sim_self()->proc);
    struct start *start = own < 0 ? NULL : __libc_malloc(sizeof(*start));
    if (!start) return EAGAIN;
    *start = (struct start){function, arg, own};
    int error = create(thread, attr, run_thread, start); /* which frees it */
    if (!error) handles[own] = *thread;
    if (!error) return 0;
    free(start);
    sim->threads[own].wait = SIM_FREE;
    return error;
}

int pthread_join(pthread_t thread, void **result)
{
    int (*join)(pthread_t, void **);
    *(void **)&join = dlsym(RTLD_NEXT, "pthread_join");
    for (int i = 0; sim_self() && i < SIM_THREADS; i++) {
        const struct sim_thread *one = &sim->threads[i];
        bool meant = one->wait != SIM_FREE && one->proc == sim_self()->proc &&
                     pthread_equal(handles[i], thread);
        if (!meant) continue;
        sim_self()->wait = SIM_JOIN;
        sim_self()->on = i;
        sim_turn();
        sim->threads[i].wait = SIM_FREE;
    }
    return join(thread, result);
}

/* Threads of the process that wait for it: how many can go on. */
static int wake(const void *cond, int most)
{
    int n = 0;
    for (int i = 0; sim_self() && i < SIM_THREADS && n < most; i++) {
        struct sim_thread *thread = &sim->threads[i];
        bool waits = thread->wait == SIM_COND && thread->proc == sim_self()->proc;
        if (!waits || thread->cond != cond || thread->woken) continue;
        thread->woken = true;
        n++;
    }
    return n;
}

static int wake_for_news(const void *cond, int most)
{
    int n = wake(cond, most);
    if (n) sim->procs[sim_self()->proc].happened++;
    return 0;
}

static void take(pthread_mutex_t *mutex)
{
    struct sim_thread *own = sim_self();
    while (pthread_mutex_trylock(mutex)) {
        own->wait = SIM_COND;
        own->cond = mutex;
        own->woken = false;
        own->until = SIM_NEVER;
        sim->procs[own->proc].at_locks++;
        sim_turn();
        sim->procs[own->proc].at_locks--;
    }
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    static int (*lock)(pthread_mutex_t *);
    if (!sim_self()) {
        if (!lock) *(void **)&lock = dlsym(RTLD_NEXT, "pthread_mutex_lock");
        return lock(mutex);
    }
    if (sim_chance((uint64_t)sim->plan.switch_one_in) == 0) sim_turn();
    take(mutex);
    return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    static int (*unlock)(pthread_mutex_t *);
    if (!unlock) *(void **)&unlock = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    int error = unlock(mutex);
    if (sim_self() && sim->procs[sim_self()->proc].at_locks) wake(mutex, 1);
    return error;
}

/* 0: not yet, 1: a thread is at it, 2: done, as in libc, which would wait for real. */
int pthread_once(pthread_once_t *once, void (*function)(void))
{
    while (*once == 1 && sim_self())
        sleep_until(sim->now + TICK_NSEC);
    if (*once == 2) return 0;
    *once = 1;
    function();
    *once = 2;
    return 0;
}

static int cond_wait(const void *cond, pthread_mutex_t *mutex, uint64_t until)
{
    struct sim_thread *own = sim_self();
    own->wait = SIM_COND;
    own->cond = cond;
    own->woken = false;
    own->until = ends_at(until);
    pthread_mutex_unlock(mutex);
    sim_turn();
    bool woken = own->woken;
    own->wait = SIM_RUNS;
    take(mutex);
    return woken ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    return cond_wait(cond, mutex, SIM_NEVER);
}

int pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                           const struct timespec *until)
{
    (void)clock;
    return cond_wait(cond, mutex, nsec_of(until));
}

int pthread_cond_signal(pthread_cond_t *cond)
{
    return wake_for_news(cond, 1);
}

int pthread_cond_broadcast(pthread_cond_t *cond)
{
    return wake_for_news(cond, SIM_THREADS);
}

/* ---- memory ---- */

/* With an own sequence: how often the C library asks is no part of a job. */
static bool is_poor(void)
{
    static uint64_t sequence;
    const struct sim_thread *own = sim_self();
    if (!own || sim->procs[own->proc].poor_until <= sim->now) return false;
    sequence = sequence * 6364136223846793005u + 1442695040888963407u;
    if (sequence >> 62) return false;
    errno = ENOMEM;
    return true;
}

void *malloc(size_t bytes)
{
    return is_poor() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes)
{
    return is_poor() ? NULL : __libc_calloc(n, bytes);
}

void *realloc(void *at, size_t bytes)
{
    return is_poor() ? NULL : __libc_realloc(at, bytes);
}

/* ---- descriptors ---- */

static int new_fd(enum sim_kind kind)
{
    sim_call();
    if (sim_network_is_full(sim_self()->proc)) return (int)set_errno(-EMFILE);
    int own = sim_socket_new(sim_self()->proc, kind);
    return own < 0 ? (int)set_errno(own) : SIM_FD + own;
}

int epoll_create1(int flags)
{
    return sim_self() ? new_fd(SIM_SET) : (int)syscall(SYS_epoll_create1, flags);
}

int eventfd(unsigned int count, int flags)
{
    if (!sim_self()) return (int)syscall(SYS_eventfd2, count, flags);
    int fd = new_fd(SIM_EVENT);
    if (fd >= 0) at_fd(fd)->count = count;
    return fd;
}

/* A copy of an event's is what the library keeps in reserve: it is used only to be closed. */
int fcntl(int fd, int what, ...)
{
    va_list args;
    va_start(args, what);
    void *arg = va_arg(args, void *);
    va_end(args);
    if (!at_fd(fd)) return (int)syscall(SYS_fcntl, fd, what, arg);
    return what == F_DUPFD_CLOEXEC ? new_fd(SIM_EVENT) : 0;
}

int close(int fd)
{
    struct sim_socket *at = at_fd(fd);
    if (!at) return (int)syscall(SYS_close, fd);
    sim_call();
    sim_socket_close(at);
    return 0;
}

ssize_t read(int fd, void *bytes, size_t len)
{
    struct sim_socket *at = at_fd(fd);
    if (!at) return syscall(SYS_read, fd, bytes, len);
    if (!at->count) return set_errno(-EAGAIN);
    memcpy(bytes, &at->count, sizeof(at->count));
    at->count = 0;
    return sizeof(at->count);
}

ssize_t write(int fd, const void *bytes, size_t len)
{
    struct sim_socket *at = at_fd(fd);
    if (!at) return syscall(SYS_write, fd, bytes, len);
    at->count++;
    return (ssize_t)len;
}

int epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event)
{
    struct sim_socket *set = at_fd(epoll_fd);
    if (!set) return (int)syscall(SYS_epoll_ctl, epoll_fd, what, fd, event);
    for (uint32_t i = 0; i < set->nwatched && what == EPOLL_CTL_MOD; i++) {
        if (set->watched[i].socket != fd - SIM_FD) continue;
        set->watched[i].events = event->events;
        set->watched[i].word = event->data.u64;
    }
    if (what != EPOLL_CTL_ADD) return 0;
    if (set->nwatched == SIM_WATCHED) return (int)set_errno(-ENOSPC);
    set->watched[set->nwatched++] = (struct sim_watch){fd - SIM_FD, event->events, event->data.u64};
    return 0;
}

static int take_events(const struct sim_socket *set, struct epoll_event *events, int most)
{
    int n = 0;
    for (uint32_t i = 0; i < set->nwatched && n < most; i++) {
        uint32_t now;
        sim_ready_at(&sim->sockets[set->watched[i].socket], set->watched[i].events, &now);
        if (!now) continue;
        events[n].events = now;
        events[n++].data.u64 = set->watched[i].word;
    }
    return n;
}

int epoll_wait(int fd, struct epoll_event *events, int most, int timeout_msec)
{
    const struct sim_socket *set = at_fd(fd);
    if (!set) return (int)syscall(SYS_epoll_pwait, fd, events, most, timeout_msec, NULL, 8);
    sim_self()->wait = SIM_EPOLL;
    sim_self()->on = fd - SIM_FD;
    sim_self()->until =
        ends_at(timeout_msec < 0 ? SIM_NEVER : sim->now + (uint64_t)timeout_msec * 1000000u);
    sim_turn();
    int n = take_events(set, events, most);
    sim->procs[sim_self()->proc].happened += n > 0;
    return n;
}

/* ---- addresses ---- */

/* 10.77.0.1 of process 0 at its first interface; with one interface all are at 127.0.0.1. */
static void make_address(struct sockaddr_in *in, int proc, int way, uint16_t port)
{
    const uint32_t own = 10u << 24 | (uint32_t)(77 + way) << 16 | (uint32_t)(proc + 1);
    *in = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(port)};
    in->sin_addr.s_addr = htonl(sim->plan.nways < 2 ? INADDR_LOOPBACK : way < 0 ? 0 : own);
}

static int way_of(const struct sockaddr_in *in)
{
    const uint32_t address = ntohl(in->sin_addr.s_addr);
    return sim->plan.nways < 2 || !address ? -1 : (int)(address >> 16 & 0xff) - 77;
}

int getifaddrs(struct ifaddrs **all)
{
    static struct ifaddrs netifs[SIM_PATHS]; /* of the process */
    static struct sockaddr_in addresses[SIM_PATHS];
    static const char *const names[SIM_PATHS] = {"sim0", "sim1"};
    int (*get)(struct ifaddrs **);
    *(void **)&get = dlsym(RTLD_NEXT, "getifaddrs");
    if (!sim_self() || sim->plan.nways < 2) return get(all);
    for (int w = 0; w < SIM_PATHS; w++) {
        make_address(&addresses[w], sim_self()->proc, w, 0);
        memcpy(&netifs[w].ifa_name, &names[w], sizeof(char *));
        netifs[w].ifa_flags = IFF_UP | IFF_RUNNING;
        netifs[w].ifa_addr = (struct sockaddr *)&addresses[w];
        netifs[w].ifa_next = w + 1 < SIM_PATHS ? &netifs[w + 1] : NULL;
    }
    *all = netifs;
    return 0;
}

void freeifaddrs(struct ifaddrs *all)
{
    void (*release)(struct ifaddrs *);
    *(void **)&release = dlsym(RTLD_NEXT, "freeifaddrs");
    if (!sim_self() || sim->plan.nways < 2) release(all);
}

/* ---- sockets ---- */

int socket(int family, int type, int protocol)
{
    if (!sim_self() || family != AF_INET) return (int)syscall(SYS_socket, family, type, protocol);
    return new_fd(SIM_FRESH);
}

int bind(int fd, const struct sockaddr *addr, socklen_t len)
{
    struct sim_socket *at = at_fd(fd);
    if (!at) return (int)syscall(SYS_bind, fd, addr, len);
    struct sockaddr_in in;
    memcpy(&in, addr, sizeof(in));
    at->way = way_of(&in);
    at->port = sim->next_port++; /* no program here asks for a certain one */
    return 0;
}

int listen(int fd, int backlog)
{
    struct sim_socket *at = at_fd(fd);
    if (!at) return (int)syscall(SYS_listen, fd, backlog);
    at->kind = SIM_LISTENER;
    return 0;
}

static int put_address(struct sockaddr *addr, socklen_t *len, const struct sim_socket *at,
                       bool of_peer)
{
    struct sockaddr_in in;
    if (!addr) return 0;
    make_address(&in, of_peer ? at->peer_proc : at->proc, at->way,
                 of_peer ? at->peer_port : at->port);
    memcpy(addr, &in, *len < sizeof(in) ? *len : sizeof(in));
    *len = sizeof(in);
    return 0;
}

int getsockname(int fd, struct sockaddr *addr, socklen_t *len)
{
    const struct sim_socket *at = at_fd(fd);
    if (!at) return (int)syscall(SYS_getsockname, fd, addr, len);
    return put_address(addr, len, at, false);
}

int getpeername(int fd, struct sockaddr *addr, socklen_t *len)
{
    const struct sim_socket *at = at_fd(fd);
    if (!at) return (int)syscall(SYS_getpeername, fd, addr, len);
    return put_address(addr, len, at, true);
}

int accept4(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
    struct sim_socket *at = at_fd(fd);
    if (!at) return (int)syscall(SYS_accept4, fd, addr, len, flags);
    sim_call();
    int own = sim_accept(at);
    if (own < 0) return (int)set_errno(own);
    put_address(addr, len, &sim->sockets[own], true);
    return SIM_FD + own;
}

int connect(int fd, const struct sockaddr *addr, socklen_t len)
{
    struct sim_socket *at = at_fd(fd);
    struct sockaddr_in in;
    if (!at) return (int)syscall(SYS_connect, fd, addr, len);
    sim_call();
    memcpy(&in, addr, sizeof(in));
    return (int)set_errno(sim_connect(at, ntohs(in.sin_port), way_of(&in)));
}

int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
    if (!at_fd(fd)) return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
    return 0;
}

int getsockopt(int fd, int level, int name, void *value, socklen_t *len)
{
    struct sim_socket *at = at_fd(fd);
    if (!at) return (int)syscall(SYS_getsockopt, fd, level, name, value, len);
    if (level == IPPROTO_TCP && name == TCP_INFO) {
        struct tcp_info info = {.tcpi_unacked = (uint32_t)sim_missing(at)};
        info.tcpi_retransmits = info.tcpi_unacked && sim_repeats(at);
        memcpy(value, &info, *len < sizeof(info) ? *len : sizeof(info));
        return 0;
    }
    int error = level == SOL_SOCKET && name == SO_ERROR && at->error_at <= sim->now ? at->error : 0;
    memcpy(value, &error, sizeof(error));
    return 0;
}

/* SIOCOUTQ is all that the library asks of a socket. */
int ioctl(int fd, unsigned long what, ...)
{
    va_list args;
    va_start(args, what);
    void *arg = va_arg(args, void *);
    va_end(args);
    const struct sim_socket *at = at_fd(fd);
    if (!at) return (int)syscall(SYS_ioctl, fd, what, arg);
    const int missing = (int)sim_missing(at);
    memcpy(arg, &missing, sizeof(missing));
    return 0;
}

/* Of one socket of the simulation; events have the bits of epoll. false: of something else. Not in
 * line, as the declaration of poll() says that it reads nothing. */
__attribute__((noinline)) static bool poll_socket(struct pollfd *asked)
{
    const struct sim_socket *at = at_fd(asked->fd);
    uint32_t now = 0;
    if (at) sim_ready_at(at, (uint32_t)asked->events, &now);
    if (at) asked->revents = (short)now;
    return at;
}

/* The library waits in no poll() that is about sockets. */
int poll(struct pollfd *fds, nfds_t n, int timeout_msec)
{
    if (n == 1 && poll_socket(fds)) return fds->revents != 0;
    return (int)syscall(SYS_poll, fds, n, timeout_msec);
}

int shutdown(int fd, int how)
{
    struct sim_socket *at = at_fd(fd);
    if (!at) return (int)syscall(SYS_shutdown, fd, how);
    sim_call();
    sim_shutdown(at);
    return 0;
}

ssize_t send(int fd, const void *bytes, size_t len, int flags)
{
    struct sim_socket *at = at_fd(fd);
    if (!at) return syscall(SYS_sendto, fd, bytes, len, flags, NULL, 0);
    sim_call();
    return set_errno(sim_send(at, bytes, len));
}

ssize_t recv(int fd, void *bytes, size_t len, int flags)
{
    struct sim_socket *at = at_fd(fd);
    if (!at) return syscall(SYS_recvfrom, fd, bytes, len, flags, NULL, NULL);
    sim_call();
    return set_errno(sim_recv(at, bytes, len));
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    struct sim_socket *at = at_fd(fd);
    ssize_t sum = 0;
    if (!at) return syscall(SYS_sendmsg, fd, message, flags);
    sim_call();
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *piece = &message->msg_iov[i];
        if (!piece->iov_len) continue;
        ssize_t n = sim_send(at, piece->iov_base, piece->iov_len);
        if (n < 0) return sum ? sum : set_errno(n);
        sum += n;
        if ((size_t)n < piece->iov_len) break;
    }
    return sum;
}

ssize_t recvmsg(int fd, struct msghdr *message, int flags)
{
    struct sim_socket *at = at_fd(fd);
    ssize_t sum = 0;
    if (!at) return syscall(SYS_recvmsg, fd, message, flags);
    sim_call();
    for (size_t i = 0; i < message->msg_iovlen; i++) {
        const struct iovec *piece = &message->msg_iov[i];
        if (!piece->iov_len) continue;
        ssize_t n = sim_recv(at, piece->iov_base, piece->iov_len);
        if (n <= 0) return sum ? sum : set_errno(n);
        sum += n;
        if ((size_t)n < piece->iov_len) break;
    }
    return sum;
}
