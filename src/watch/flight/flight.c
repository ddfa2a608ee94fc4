/* When what the ranks of this process did last is written: at a failure, a stand-still, a signal,
 * and on demand. flight_lines.c writes it. A communicator in the list stays until no writer looks
 * at the list any more. */
#include "watch/flight/flight.h"

#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "base/wait.h"
#include "exec/exec.h"
#include "watch/inquiry/status.h"
#include "watch/process.h"
#include "watch/watch_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITER_TRIES = 200 };
#define WRITER_SLEEP_USEC 5000

void tt_flight_write(int fd, const char *reason)
{
    struct flight_out out = {.fd = fd};
    tt_flight_lines(&out, reason);
}

/* ---- the file ---- */

static void let_go(void)
{
    if (tt_watches.flights.held >= 0) close(tt_watches.flights.held);
    tt_watches.flights.held = -1;
}

/* An earlier file about communicators which have ended since is kept under another name. */
static void keep_earlier(void)
{
    if (!atomic_exchange(&tt_watches.flights.parted, false)) return;
    let_go();
    uint64_t number = (uint64_t)atomic_fetch_add(&tt_watches.flights.nfiles, 1) + 1;
    (void)rename(tt_watches.flights.path,
                 tt_flight_numbered(&tt_watches.flights.out, tt_watches.flights.path, number));
}

/* The file is still where this process locked it. */
static bool holds(void)
{
    struct stat own, there;
    return tt_watches.flights.held >= 0 && !fstat(tt_watches.flights.held, &own) &&
           !stat(tt_watches.flights.path, &there) && own.st_dev == there.st_dev &&
           own.st_ino == there.st_ino;
}

/* Open the file, empty; a regular one is locked until the process ends. -1: errno, EWOULDBLOCK
 * where another process has it. */
static int open_file(void)
{
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    struct stat status;
    if (!holds()) let_go();
    int fd = tt_watches.flights.held;
    if (fd < 0) {
        fd = open(tt_watches.flights.path, flags, 0644);
        if (fd < 0 || fstat(fd, &status) || !S_ISREG(status.st_mode)) return fd;
        if (flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
            close(fd);
            errno = EWOULDBLOCK;
            return -1;
        }
        tt_watches.flights.held = fd;
    }
    if (ftruncate(fd, 0) || lseek(fd, 0, SEEK_SET)) let_go();
    return tt_watches.flights.held;
}

/* A write beyond the limit of file sizes, or to a FIFO whose reader has gone, is an error of the
 * file and no end of the process. */
static void write_file(const char *reason)
{
    static const struct timespec at_once = {0};
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, SIGXFSZ);
    sigaddset(&ours, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    keep_earlier();
    int fd = open_file();
    if (fd < 0) {
        atomic_store(&tt_watches.flights.complaint, errno);
    } else {
        tt_watches.flights.out.fd = fd;
        tt_watches.flights.out.used = 0;
        tt_watches.flights.out.error = 0;
        tt_flight_lines(&tt_watches.flights.out, reason);
        if (fd != tt_watches.flights.held) close(fd);
    }
    if (atomic_load(&tt_watches.flights.complaint)) sigtimedwait(&ours, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* One writer at a time; a handler that interrupted one gives up soon. */
static void dump(const char *reason, bool failed)
{
    const int error = errno;
    if (!tt_watches.flights.path[0]) return;
    for (int k = 0; atomic_exchange(&tt_watches.flights.writing, true); k++) {
        if (k == WRITER_TRIES) return;
        tt_sleep_usec(WRITER_SLEEP_USEC);
    }
    write_file(reason);
    if (failed) atomic_store(&tt_watches.flights.failed, true);
    atomic_store(&tt_watches.flights.writing, false);
    errno = error;
}

static void complain(void)
{
    int error = atomic_exchange(&tt_watches.flights.complaint, 0);
    if (!error) return;
    errno = error;
    if (error == EWOULDBLOCK) {
        tt_warn("TUTTI_FLIGHT_FILE: %s: another process writes it: its name needs %%p",
                tt_watches.flights.path);
        return;
    }
    tt_warn("TUTTI_FLIGHT_FILE: %s: %m; what the ranks did last is not written",
            tt_watches.flights.path);
}

/* ---- signals ---- */

struct flight_signal {
    int number;
    bool ends; /* the process ends by it */
    const char *reason;
};
static const struct flight_signal signals[] = {
    {SIGUSR2, false, "asked for by SIGUSR2"},
    {SIGSEGV, true, "SIGSEGV"},
    {SIGBUS, true, "SIGBUS"},
    {SIGFPE, true, "SIGFPE"},
    {SIGILL, true, "SIGILL"},
    {SIGABRT, true, "SIGABRT"},
    {SIGTERM, true, "SIGTERM"},
};

/* Dump, then end by the signal as without us. A file about a failure stays. */
static void on_signal(int number)
{
    const int error = errno;
    const struct flight_signal *row = signals;
    while (row->number != number)
        row++;
    bool reported =
        atomic_load(&tt_watches.flights.failed) || atomic_load(&tt_watches.flights.standing) > 0;
    if (!row->ends || !reported) dump(row->reason, row->ends);
    if (row->ends) raise(number); /* its disposition is the default again */
    errno = error;
}

/* Signals that the program handles itself are the program's. */
static void receive_signals(void)
{
    for (size_t i = 0; i < TT_LEN(signals); i++) {
        struct sigaction now, ours = {.sa_handler = on_signal};
        ours.sa_flags = SA_ONSTACK | (signals[i].ends ? (int)SA_RESETHAND : SA_RESTART);
        if (sigaction(signals[i].number, NULL, &now)) continue;
        if (!(now.sa_flags & SA_SIGINFO) && now.sa_handler == SIG_DFL)
            sigaction(signals[i].number, &ours, NULL);
    }
}

/* ---- the list ---- */

static void set_path(const char *from)
{
    size_t used = 0;
    for (; *from && used + sizeof(tt_watches.flights.host) + 1 < sizeof(tt_watches.flights.path);
         from++) {
        bool host = from[0] == '%' && from[1] == 'h', pid = from[0] == '%' && from[1] == 'p';
        size_t room = sizeof(tt_watches.flights.path) - used;
        char *at = tt_watches.flights.path + used;
        if (host) {
            used += (size_t)snprintf(at, room, "%s", tt_watches.flights.host);
        } else if (pid) {
            used += (size_t)snprintf(at, room, "%d", (int)tt_watches.flights.pid);
        } else {
            *at = *from;
            used++;
        }
        from += host || pid;
    }
    tt_watches.flights.path[used] = '\0';
}

/* Make the file's folder: that it cannot be written is reported before it is needed. */
static void make_folder(void)
{
    char *slash = strrchr(tt_watches.flights.path, '/');
    if (!slash || slash == tt_watches.flights.path) return;
    *slash = '\0';
    int error = mkdir(tt_watches.flights.path, 0777) && errno != EEXIST ? errno : 0;
    *slash = '/';
    if (!error) return;
    atomic_store(&tt_watches.flights.complaint, error);
    complain();
    tt_watches.flights.path[0] = '\0';
}

static void prepare(void)
{
    const char *path = tt_param_str("TUTTI_FLIGHT_FILE");
    int64_t most = tt_param_int("TUTTI_FLIGHT_OPERATIONS");
    struct timespec wall;
    tt_watches.flights.prepared = true;
    tt_watches.flights.held = -1;
    tt_watches.flights.pid = getpid();
    tt_watches.flights.most =
        (int)(most < 1 || most > TT_CALL_LOG_LEN - 1 ? TT_CALL_LOG_LEN - 1 : most);
    gethostname(tt_watches.flights.host, sizeof(tt_watches.flights.host) - 1);
    tt_watches.flights.host[strcspn(tt_watches.flights.host, ".")] = '\0';
    snprintf(tt_watches.flights.exe, sizeof(tt_watches.flights.exe), "%s", program_invocation_name);
    clock_gettime(CLOCK_REALTIME, &wall);
    tt_watches.flights.wall_nsec = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    tt_watches.flights.mono_nsec = tt_now_nsec();
    if (!path || !*path) return;
    set_path(path);
    make_folder();
    if (tt_watches.flights.path[0]) receive_signals();
}

ncclResult_t tt_flight_check(const struct tt_watch_subject *subject)
{
    const char *path = tt_param_str("TUTTI_FLIGHT_FILE");
    struct stat status;
    bool shared = false;
    if (!path || !*path || strstr(path, "%p") || !subject->peers) return ncclSuccess;
    for (int rank = 0; rank < subject->member->rank && !shared; rank++)
        shared = subject->peers[rank].reach == TT_REACH_MAPPED;
    if (!shared || (!stat(path, &status) && !S_ISREG(status.st_mode))) return ncclSuccess;
    if (!atomic_exchange(&tt_watches.flights.said_shared, true)) {
        tt_warn_setting("TUTTI_FLIGHT_FILE: %s: another process writes it: its name needs %%p",
                        path);
    }
    return tt_param_check();
}

void tt_flight_add(struct tt_watch *watch)
{
    if (!tt_watches.flights.prepared) prepare();
    for (int slot = 0; slot < FLIGHT_LISTED_MOST; slot++) {
        struct tt_watch *none = NULL;
        if (!atomic_compare_exchange_strong(&tt_watches.flights.listed[slot], &none, watch))
            continue;
        watch->flight.slot = slot + 1;
        return;
    }
}

/* What is known of a communicator that fails or stands still, and of all others. False: it is
 * written already. */
static bool dump_trouble(struct tt_watch *watch, const char *what, bool failed)
{
    struct tt_member *member = watch->subject.member;
    char why[TT_WHY_BYTES], reason[TT_WHY_BYTES + 80];
    if (!tt_watches.flights.path[0] || atomic_exchange(&watch->flight.dumped, true)) return false;
    tt_member_why(member, why);
    snprintf(reason, sizeof(reason), "comm %016llx rank %d %s%s%s",
             (unsigned long long)member->comm_id, member->rank, what, *why ? ": " : "", why);
    dump(reason, failed);
    complain();
    return true;
}

/* It goes on, or has failed in it: then what was written stays. */
static void end_standing(struct tt_flight *flight, bool failed)
{
    if (!flight->stands) return;
    flight->stands = false;
    if (failed) atomic_store(&tt_watches.flights.failed, true);
    if (!failed) atomic_store(&flight->dumped, false);
    atomic_fetch_sub(&tt_watches.flights.standing, 1);
}

void tt_flight_look(struct tt_watch *watch, uint64_t now, bool stands_still)
{
    const struct tt_watch_subject *subject = &watch->subject;
    struct tt_flight *flight = &watch->flight;
    struct tt_wait waits[TT_STATUS_WAITS];
    bool failed = tt_member_aborted(subject->member);
    if (failed || !stands_still) end_standing(flight, failed);
    if (failed) {
        (void)dump_trouble(watch, "failed", true);
    } else if (stands_still && dump_trouble(watch, "stands still", false)) {
        flight->stands = true;
        atomic_fetch_add(&tt_watches.flights.standing, 1);
    }
    if (!subject->transport) return;
    /* in this order: what had begun by then has ended when nothing is left to do afterwards */
    uint64_t begun = atomic_load(tt_transport_begun(subject->transport));
    uint64_t served = atomic_load(&subject->queue->served);
    bool idle = served == atomic_load(&subject->queue->issued);
    uint64_t n = atomic_load_explicit(&flight->nlooks, memory_order_relaxed);
    const struct tt_flight_look *last = &flight->looks[(n + TT_CALL_LOG_LEN - 1) % TT_CALL_LOG_LEN];
    if (atomic_load(&last->begun) == begun && atomic_load(&last->ended) == begun) return;
    int nwaits = idle ? 0 : tt_wait_list(subject->member, waits, TT_STATUS_WAITS);
    uint64_t ended = tt_flight_ended(flight, begun, idle, waits, nwaits);
    if (atomic_load(&last->begun) == begun && atomic_load(&last->ended) == ended) return;
    struct tt_flight_look *next = &flight->looks[n % TT_CALL_LOG_LEN];
    atomic_store_explicit(&next->nsec, now, memory_order_relaxed);
    atomic_store_explicit(&next->begun, begun, memory_order_relaxed);
    atomic_store_explicit(&next->ended, ended, memory_order_relaxed);
    atomic_store_explicit(&flight->nlooks, n + 1, memory_order_release); /* pairs with seen_at() */
}

void tt_flight_remove(struct tt_watch *watch)
{
    int slot = watch->flight.slot;
    if (!slot) return;
    bool failed = tt_member_aborted(watch->subject.member);
    if (failed) (void)dump_trouble(watch, "ended by abort", true);
    end_standing(&watch->flight, failed);
    if (atomic_load(&watch->flight.dumped)) atomic_store(&tt_watches.flights.parted, true);
    struct tt_watch *listed = watch; /* in a child of fork it is not there any more */
    atomic_compare_exchange_strong(&tt_watches.flights.listed[slot - 1], &listed, NULL);
    while (atomic_load(&tt_watches.flights.readers)) /* pairs with tt_flight_write() */
        tt_sleep_usec(1);
    watch->flight.slot = 0;
}

void tt_flight_forget(void)
{
    for (int slot = 0; slot < FLIGHT_LISTED_MOST; slot++)
        atomic_store(&tt_watches.flights.listed[slot], NULL);
    atomic_store(&tt_watches.flights.readers, 0);
    atomic_store(&tt_watches.flights.writing, false);
    atomic_store(&tt_watches.flights.failed, false);
    atomic_store(&tt_watches.flights.parted, false);
    atomic_store(&tt_watches.flights.standing, 0);
    atomic_store(&tt_watches.flights.nfiles, 0);
    tt_watches.flights.path[0] =
        '\0'; /* the parent's; the child's first communicator names its own */
    tt_watches.flights.prepared = false;
}

/* A process that ends by itself before the watchdog has looked at its failure. Other threads may
 * just end communicators. */
__attribute__((destructor)) static void dump_at_exit(void)
{
    if (!tt_watches.flights.path[0] || tt_watches.flights.pid != getpid()) return;
    atomic_fetch_add(&tt_watches.flights.readers,
                     1); /* pairs with the wait in tt_flight_remove() */
    for (int slot = 0; slot < FLIGHT_LISTED_MOST; slot++) {
        struct tt_watch *watch = atomic_load(&tt_watches.flights.listed[slot]);
        if (watch && tt_member_aborted(watch->subject.member))
            (void)dump_trouble(watch, "failed", true);
    }
    atomic_fetch_sub(&tt_watches.flights.readers, 1);
}
