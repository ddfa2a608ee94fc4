/* Writes what the ranks of this process did last. A signal handler may do it: everything below
 * tt_flight_write() calls nothing but write() and looks at atomic fields, takes no lock and no
 * memory. A communicator in the list stays until no writer looks at the list any more. */
#include "watch/flight.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/member.h"
#include "base/param.h"
#include "base/wait.h"
#include "exec/exec.h"
#include "plugin/profiler.h"
#include "watch/process.h"
#include "watch/status.h"
#include "watch/watch_state.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ID_SHIFT = 40, WRITER_PATIENCE = 200 };
#define WRITER_NAP_USEC 5000

/* ---- text ---- */

static void flush(struct flight_out *out)
{
    size_t done = 0;
    while (done < out->used && !out->error) {
        ssize_t n = write(out->fd, out->text + done, out->used - done);
        if (n > 0) done += (size_t)n;
        if (n < 0 && errno != EINTR) out->error = errno;
        if (n == 0) out->error = ENOSPC;
    }
    out->used = 0;
}

static void put(struct flight_out *out, char c)
{
    if (out->used == sizeof(out->text)) flush(out);
    out->text[out->used++] = c;
}

static void text(struct flight_out *out, const char *from)
{
    while (*from)
        put(out, *from++);
}

/* Somebody else's text inside quotes. */
static void quoted(struct flight_out *out, const char *from)
{
    put(out, '"');
    for (; *from; from++) {
        bool plain = *from >= ' ' && *from <= '~' && *from != '"' && *from != '\\';
        put(out, (char)(plain ? *from : '?'));
    }
    put(out, '"');
}

static void digits(struct flight_out *out, uint64_t number, unsigned int base)
{
    char reversed[20];
    int n = 0;
    do {
        reversed[n++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number);
    for (; base == 16 && n < 16; n++)
        reversed[n] = '0';
    while (n > 0)
        put(out, reversed[--n]);
}

/* ,"name":number */
static void number(struct flight_out *out, const char *name, int64_t value)
{
    text(out, ",\"");
    text(out, name);
    text(out, "\":");
    if (value < 0) put(out, '-');
    digits(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value, 10);
}

static void word(struct flight_out *out, const char *name, const char *value)
{
    text(out, ",\"");
    text(out, name);
    text(out, "\":");
    quoted(out, value);
}

/* ---- one communicator ---- */

struct own { /* of a communicator, while it is written */
    const struct tt_watch *watch;
    int c; /* its number in the file */
    uint64_t now, begun, ended, first;
    uint64_t starts, stops;
};

/* Since when the counter is `least` or more, as far as it was seen; `now` where it was not. */
static uint64_t seen_at(const struct own *own, uint64_t least, bool ends)
{
    const struct tt_flight *flight = &own->watch->flight;
    uint64_t n = atomic_load_explicit(&flight->nlooks, memory_order_acquire);
    uint64_t at_nsec = own->now;
    for (uint64_t k = 0; k < n && k < TT_BOARD_CALLS; k++) { /* newest first */
        const struct tt_flight_look *look = &flight->looks[(n - 1 - k) % TT_BOARD_CALLS];
        if (atomic_load_explicit(ends ? &look->ended : &look->begun, memory_order_relaxed) < least)
            break;
        at_nsec = atomic_load_explicit(&look->nsec, memory_order_relaxed);
    }
    return at_nsec;
}

static void put_event(struct flight_out *out, struct own *own, uint64_t id,
                      const struct tt_call *call, uint64_t since_nsec)
{
    text(out, "{\"t\":\"ev\"");
    number(out, "id", (int64_t)((uint64_t)own->c << ID_SHIFT | id));
    number(out, "c", own->c);
    number(out, "tid", own->c);
    number(out, "ts", (int64_t)since_nsec);
    own->starts++;
    word(out, "func", tt_func_name((enum tt_func)call->func));
    word(out, "datatype", tt_prof_type_name((ncclDataType_t)call->type));
    number(out, "count", (int64_t)call->count);
}

static void put_operation(struct flight_out *out, struct own *own, uint64_t k)
{
    struct tt_call call;
    uint64_t since_nsec = seen_at(own, k, false);
    if (!tt_board_call(own->watch->subject.transport, k, &call)) return; /* just overwritten */
    put_event(out, own, k, &call, since_nsec);
    if (k <= own->ended) {
        number(out, "dur", (int64_t)(seen_at(own, k, true) - since_nsec));
        own->stops++;
    }
    word(out, "type", "Coll");
    number(out, "seq", (int64_t)k);
    number(out, "root", call.root);
    number(out, "redop", call.op);
    word(out, "algo", tt_algo_name((enum tt_algo)call.algo));
    word(out, "proto", tt_proto_name((enum tt_proto)call.proto));
    number(out, "channels", call.nchannels);
    text(out, "}\n");
}

static bool is_message(const struct tt_wait *wait, struct tt_call *call)
{
    memcpy(call, wait->call, sizeof(*call));
    return call->known && tt_func_is_message((enum tt_func)call->func);
}

/* How far the rank is, whom it waits for, and messages that wait. */
static void put_state(struct flight_out *out, struct own *own, const struct tt_wait *waits,
                      int nwaits)
{
    const struct tt_watch_subject *subject = &own->watch->subject;
    uint64_t served = atomic_load(&subject->queue->served);
    uint64_t issued = atomic_load(&subject->queue->issued);
    uint64_t left = issued > served ? issued - served : 0;
    uint64_t queued = left && own->begun > own->ended ? left - 1 : left;
    text(out, "{\"t\":\"flight\"");
    number(out, "c", own->c);
    number(out, "begun", (int64_t)own->begun);
    number(out, "ended", (int64_t)own->ended);
    number(out, "issued", (int64_t)issued);
    number(out, "queued", (int64_t)queued);
    number(out, "abort", (int64_t)tt_member_abort_code(subject->member));
    if (nwaits > 0) {
        word(out, "waits", waits[0].what);
        number(out, "peer", waits[0].peer);
        number(out, "since", (int64_t)waits[0].since_nsec);
    }
    text(out, "}\n");
    for (int i = 0; i < nwaits; i++) {
        struct tt_call call;
        if (!is_message(&waits[i], &call)) continue;
        put_event(out, own, (uint64_t)1 << (ID_SHIFT - 1) | (uint64_t)i, &call,
                  waits[i].since_nsec);
        word(out, "type", "P2p");
        number(out, "peer", call.root);
        text(out, "}\n");
    }
    for (int r = 0; subject->transport && r < subject->member->nranks; r++) {
        uint32_t sent = tt_transport_messages(subject->transport, r, true);
        uint32_t received = tt_transport_messages(subject->transport, r, false);
        if (!sent && !received) continue;
        text(out, "{\"t\":\"messages\"");
        number(out, "c", own->c);
        number(out, "peer", r);
        number(out, "sent", sent);
        number(out, "received", received);
        text(out, "}\n");
    }
}

/* All that began before the oldest collective that waits has ended, or all, when nothing is left to
 * do; else all but the last one, unless it was seen to end. */
static uint64_t ended_of(const struct own *own, bool idle, const struct tt_wait *waits, int nwaits)
{
    const struct tt_flight *flight = &own->watch->flight;
    uint64_t n = atomic_load_explicit(&flight->nlooks, memory_order_acquire);
    /* the newest look; before the first one it says 0 */
    const struct tt_flight_look *look = &flight->looks[(n + TT_BOARD_CALLS - 1) % TT_BOARD_CALLS];
    uint64_t least = atomic_load_explicit(&look->ended, memory_order_relaxed);
    if (idle) least = own->begun;
    if (idle || own->begun == 0) return least;
    uint64_t ended = own->begun - 1;
    for (int i = 0; i < nwaits; i++) {
        if (waits[i].op_seq > 0 && waits[i].op_seq <= ended) ended = waits[i].op_seq - 1;
    }
    return tt_max_size(ended, least);
}

static void put_member(struct flight_out *out, struct own *own)
{
    const struct tt_watch_subject *subject = &own->watch->subject;
    const struct tt_member *member = subject->member;
    struct tt_wait waits[TT_STATUS_WAITS];
    uint64_t served = atomic_load(&subject->queue->served);
    bool idle = served == atomic_load(&subject->queue->issued);
    int nwaits = tt_wait_list(member, waits, TT_STATUS_WAITS);
    own->begun = subject->transport ? atomic_load(tt_transport_begun(subject->transport)) : 0;
    own->ended = ended_of(own, idle, waits, nwaits);
    text(out, "{\"t\":\"comm\"");
    number(out, "c", own->c);
    text(out, ",\"comm\":\"");
    digits(out, member->comm_id, 16);
    put(out, '"');
    word(out, "name", member->name ? member->name : "");
    number(out, "rank", member->rank);
    number(out, "nranks", member->nranks);
    text(out, "}\n{\"t\":\"thread\"");
    number(out, "tid", own->c);
    text(out, ",\"name\":\"operations\"}\n");
    uint64_t most = (uint64_t)tt_watches.flights.most;
    own->first = own->begun > most ? own->begun - most + 1 : 1;
    for (uint64_t k = own->first; k <= own->begun; k++)
        put_operation(out, own, k);
    put_state(out, own, waits, nwaits);
}

static void write_all(struct flight_out *out, const char *reason)
{
    struct own own = {.now = tt_now_nsec()};
    text(out, "{\"t\":\"head\",\"v\":1");
    word(out, "flight", reason);
    word(out, "host", tt_watches.flights.host);
    number(out, "pid", tt_watches.flights.pid);
    word(out, "exe", tt_watches.flights.exe);
    number(out, "start_wall_ns",
           (int64_t)(tt_watches.flights.wall_nsec + (own.now - tt_watches.flights.mono_nsec)));
    number(out, "start_mono_ns", (int64_t)own.now);
    text(out, ",\"clock\":\"monotonic\",\"api\":0,\"mask\":0}\n");
    atomic_fetch_add(&tt_watches.flights.readers,
                     1); /* pairs with the wait in tt_flight_remove() */
    for (int slot = 0; slot < FLIGHT_LISTED_MOST; slot++) {
        own.watch = atomic_load(&tt_watches.flights.listed[slot]);
        if (!own.watch) continue;
        own.c++;
        put_member(out, &own);
    }
    atomic_fetch_sub(&tt_watches.flights.readers, 1);
    text(out, "{\"t\":\"end\"");
    number(out, "starts", (int64_t)own.starts);
    number(out, "states", 0);
    number(out, "stops", (int64_t)own.stops);
    number(out, "open", (int64_t)(own.starts - own.stops));
    text(out, "}\n");
    flush(out);
    if (out->error) atomic_store(&tt_watches.flights.complaint, out->error);
}

void tt_flight_write(int fd, const char *reason)
{
    struct flight_out out = {.fd = fd};
    write_all(&out, reason);
}

/* ---- the file ---- */

/* An earlier file that tells of communicators which have ended since is kept under another name. */
static void keep_earlier(void)
{
    struct flight_out *name = &tt_watches.flights.out;
    if (!atomic_exchange(&tt_watches.flights.parted, false)) return;
    name->used = 0;
    for (const char *c = tt_watches.flights.path; *c && name->used + 16 < sizeof(name->text); c++)
        put(name, *c);
    put(name, '.');
    digits(name, (uint64_t)atomic_fetch_add(&tt_watches.flights.nfiles, 1) + 1, 10);
    put(name, '\0');
    (void)rename(tt_watches.flights.path, name->text);
}

/* A write beyond the limit of file sizes, or to a FIFO whose reader has gone, is an error of the
 * file and no end of the process. */
static void write_file(const char *reason)
{
    static const struct timespec at_once = {0};
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    sigset_t ours, before;
    sigemptyset(&ours);
    sigaddset(&ours, SIGXFSZ);
    sigaddset(&ours, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    keep_earlier();
    int fd = open(tt_watches.flights.path, flags, 0644);
    if (fd < 0) {
        atomic_store(&tt_watches.flights.complaint, errno);
    } else {
        tt_watches.flights.out.fd = fd;
        tt_watches.flights.out.used = 0;
        tt_watches.flights.out.error = 0;
        write_all(&tt_watches.flights.out, reason);
        close(fd);
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
        if (k == WRITER_PATIENCE) return;
        tt_sleep_usec(WRITER_NAP_USEC);
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

/* Dump, then end by the signal as without us. A file that tells of a failure stays. */
static void on_signal(int number)
{
    const int error = errno;
    const struct flight_signal *row = signals;
    while (row->number != number)
        row++;
    bool told =
        atomic_load(&tt_watches.flights.failed) || atomic_load(&tt_watches.flights.standing) > 0;
    if (!row->ends || !told) dump(row->reason, row->ends);
    if (row->ends) raise(number); /* its disposition is the default again */
    errno = error;
}

/* Signals that the program handles itself are the program's. */
static void hear_signals(void)
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

/* Make the file's folder: that it cannot be written is told before it is needed. */
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
    tt_watches.flights.pid = getpid();
    tt_watches.flights.most =
        (int)(most < 1 || most > TT_BOARD_CALLS - 1 ? TT_BOARD_CALLS - 1 : most);
    gethostname(tt_watches.flights.host, sizeof(tt_watches.flights.host) - 1);
    tt_watches.flights.host[strcspn(tt_watches.flights.host, ".")] = '\0';
    snprintf(tt_watches.flights.exe, sizeof(tt_watches.flights.exe), "%s", program_invocation_name);
    clock_gettime(CLOCK_REALTIME, &wall);
    tt_watches.flights.wall_nsec = (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec;
    tt_watches.flights.mono_nsec = tt_now_nsec();
    if (!path || !*path) return;
    set_path(path);
    make_folder();
    if (tt_watches.flights.path[0]) hear_signals();
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
    struct own own = {.watch = watch};
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
    own.begun = atomic_load(tt_transport_begun(subject->transport));
    uint64_t served = atomic_load(&subject->queue->served);
    bool idle = served == atomic_load(&subject->queue->issued);
    uint64_t n = atomic_load_explicit(&flight->nlooks, memory_order_relaxed);
    const struct tt_flight_look *last = &flight->looks[(n + TT_BOARD_CALLS - 1) % TT_BOARD_CALLS];
    if (atomic_load(&last->begun) == own.begun && atomic_load(&last->ended) == own.begun) return;
    int nwaits = idle ? 0 : tt_wait_list(subject->member, waits, TT_STATUS_WAITS);
    uint64_t ended = ended_of(&own, idle, waits, nwaits);
    if (atomic_load(&last->begun) == own.begun && atomic_load(&last->ended) == ended) return;
    struct tt_flight_look *next = &flight->looks[n % TT_BOARD_CALLS];
    atomic_store_explicit(&next->nsec, now, memory_order_relaxed);
    atomic_store_explicit(&next->begun, own.begun, memory_order_relaxed);
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
