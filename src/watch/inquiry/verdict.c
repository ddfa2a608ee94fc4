/* From one rank's wait to its cause. A rank waits for a peer; the peer waits for the next, or is
 * not there (stopped, ended, silent), or has not made the call. In the last case it may be kept
 * from it by another communicator, where its process waits: then the way goes on there. Each rank
 * is passed once, so the way ends, at the latest where it meets itself: a circle. */
#include "watch/inquiry/verdict.h"

#include "base/member.h"
#include "base/text/rank_list.h"
#include "bootstrap/bootstrap.h"
#include "transport/transport.h"
#include "watch/inquiry/circle.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { MAX_STEPS = 512, NAMED_RANKS = 8, BLOCKED_MSEC = 500 };

const char *tt_verdict_name(enum tt_verdict_kind kind)
{
    static const char *const names[] = {"none",       "stopped",  "ended",  "silent",
                                        "not called", "queued",   "circle", "graphs",
                                        "init",       "not come", "unknown"};
    return names[kind];
}

/* ---- those that do not answer ---- */

/* The letter of a process's state in /proc; 0: there is none. */
static char state_of_pid(int pid)
{
    char path[32], text[256];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    ssize_t bytes = read(fd, text, sizeof(text) - 1);
    close(fd);
    if (bytes <= 0) return 0;
    text[bytes] = 0;
    const char *end = strrchr(text, ')'); /* of the name, which may hold anything */
    if (!end || end[1] != ' ') return '?';
    return end[2];
}

enum tt_verdict_kind tt_verdict_process(int pid)
{
    char state = state_of_pid(pid);
    if (state == 'T' || state == 't') return TT_VERDICT_STOPPED;
    return state == 'Z' || state == 'X' || state == 0 ? TT_VERDICT_ENDED : TT_VERDICT_NONE;
}

static const struct tt_watch *watch_in(const struct tt_watch *watches, uint64_t comm_id)
{
    while (watches && watches->subject.member->comm_id != comm_id)
        watches = watches->next;
    return watches;
}

/* The rank's process can be looked up in /proc here: containers of one host may be called alike. */
static bool is_here(const struct tt_watch *watch, int rank, const char *host, const char *own_host)
{
    const struct tt_peer_reach *peers = watch->subject.peers;
    return peers ? peers[rank].same_pids : !strcmp(host, own_host);
}

/* Of a communicator in its init only the root knows who has come. That a process has ended the root
 * notices itself; the pid may be one of another container whose host has the same name. */
static struct tt_absent absent_from_init(const struct tt_inquiry *inquiry, uint64_t comm_id,
                                         int rank)
{
    struct tt_absent absent = {.kind = TT_VERDICT_UNKNOWN, .pid = -1, .host = "?"};
    const struct tt_joined joined = tt_bootstrap_joined(comm_id, rank);
    if (joined.known) absent.kind = joined.came ? TT_VERDICT_INIT : TT_VERDICT_AWAITED;
    if (!joined.came) return absent;
    absent.pid = joined.pid;
    snprintf(absent.host, sizeof(absent.host), "%s", joined.host);
    tt_status_clean(absent.host);
    if (strcmp(absent.host, inquiry->self.host) != 0) return absent;
    const enum tt_verdict_kind kind = tt_verdict_process(joined.pid);
    absent.runs = kind == TT_VERDICT_NONE;
    if (kind == TT_VERDICT_STOPPED) absent.kind = kind;
    return absent;
}

struct tt_absent tt_verdict_absent(const struct tt_inquiry *inquiry, const struct tt_watch *watches,
                                   uint64_t comm_id, int rank)
{
    struct tt_absent absent = {.kind = TT_VERDICT_SILENT, .pid = -1, .host = "?"};
    const struct tt_inquiry_comm *comm = tt_inquiry_comm(inquiry, comm_id);
    if (comm && comm->in_init) return absent_from_init(inquiry, comm_id, rank);
    const struct tt_watch *watch = watch_in(watches, comm_id);
    if (!watch || rank >= watch->subject.member->nranks) return absent;
    snprintf(absent.host, sizeof(absent.host), "%s",
             tt_bootstrap_peer(watch->subject.bootstrap, rank, &absent.pid));
    tt_status_clean(absent.host);
    tt_bootstrap_address(watch->subject.bootstrap, rank, absent.addr, sizeof(absent.addr));
    if (tt_bootstrap_rank_exited(watch->subject.bootstrap, rank)) {
        absent.kind = TT_VERDICT_ENDED;
    } else if (absent.pid > 0 && is_here(watch, rank, absent.host, inquiry->self.host)) {
        enum tt_verdict_kind kind = tt_verdict_process(absent.pid);
        absent.runs = kind == TT_VERDICT_NONE;
        if (kind != TT_VERDICT_NONE) absent.kind = kind;
    }
    return absent;
}

/* ---- sentences ---- */

struct search {
    const struct tt_inquiry *inquiry;
    const struct tt_watch *watches;
    uint64_t origin; /* communicator in which it began */
    struct tt_verdict *verdict;
};

static void conclude(const struct search *search, const struct tt_verdict *found, const char *fmt,
                     ...) __attribute__((format(printf, 3, 4)));
static void conclude(const struct search *search, const struct tt_verdict *found, const char *fmt,
                     ...)
{
    struct tt_verdict *verdict = search->verdict;
    char other[40] = "";
    va_list args;
    *verdict = *found;
    if (found->comm_id != search->origin)
        snprintf(other, sizeof(other), "in comm 0x%llx: ", (unsigned long long)found->comm_id);
    int used = snprintf(verdict->sentence, sizeof(verdict->sentence), "%s", other);
    va_start(args, fmt);
    vsnprintf(verdict->sentence + used, sizeof(verdict->sentence) - (size_t)used, fmt, args);
    va_end(args);
}

/* The first rank on the way to a silent one that has not answered either. */
static int silent_before(const struct search *search, const struct tt_inquiry_comm *comm, int rank)
{
    const struct tt_watch *watch = watch_in(search->watches, comm->comm_id);
    if (!watch || watch->subject.member->rank == rank) return rank;
    const struct tt_bootstrap *bootstrap = watch->subject.bootstrap;
    int at = tt_bootstrap_next(bootstrap, watch->subject.member->rank, rank);
    while (at != rank && comm->rank[at] & TT_INQUIRY_FOUND)
        at = tt_bootstrap_next(bootstrap, at, rank);
    return at;
}

/* The question to a rank may have passed through one that is stopped, or silent itself: it is that
 * one then. */
static struct tt_absent absent_before(const struct search *search, uint64_t comm_id, int *rank)
{
    const struct tt_inquiry_comm *comm = tt_inquiry_comm(search->inquiry, comm_id);
    struct tt_absent absent = tt_verdict_absent(search->inquiry, search->watches, comm_id, *rank);
    if (!comm || absent.kind != TT_VERDICT_SILENT) return absent;
    for (int other = 0; other < comm->nranks; other++) {
        if (comm->rank[other] & TT_INQUIRY_FOUND) continue;
        const struct tt_absent stopped =
            tt_verdict_absent(search->inquiry, search->watches, comm_id, other);
        if (stopped.kind != TT_VERDICT_STOPPED) continue;
        *rank = other;
        return stopped;
    }
    *rank = silent_before(search, comm, *rank);
    return tt_verdict_absent(search->inquiry, search->watches, comm_id, *rank);
}

static void conclude_absent(const struct search *search, uint64_t comm_id, int rank)
{
    const struct tt_absent absent = absent_before(search, comm_id, &rank);
    const struct tt_verdict found = {.kind = absent.kind, .comm_id = comm_id, .rank = rank};
    const char *what = "does not answer: its process is stopped, or cannot be reached";
    if (absent.runs) {
        what = "does not answer for this communicator, though its process runs: it has destroyed "
               "or aborted it, or its threads do not get to run";
    }
    if (absent.kind == TT_VERDICT_STOPPED) what = "is stopped";
    if (absent.kind == TT_VERDICT_ENDED) what = "has ended";
    conclude(search, &found, "rank %d on host %s (pid %d) %s", rank, absent.host, absent.pid, what);
}

/* A rank that has done all its calls, and is not in the operation with that number. */
static bool lacks_call(const struct tt_status *status, uint64_t number)
{
    return status->begun < number && !tt_status_has_work(status);
}

/* "rank 3 on host h (pid 9) has", or "ranks 3, 5, 6, ... (12 in all) have" not called. */
static void name_lacking(const struct search *search, const struct tt_status *first,
                         uint64_t number, char *text, size_t text_bytes)
{
    struct tt_rank_list ranks = {.count = 0};
    for (int rank = 0; rank < first->nranks; rank++) {
        const struct tt_status *status = tt_inquiry_find(search->inquiry, first->comm_id, rank);
        if (status && lacks_call(status, number)) tt_rank_list_add(&ranks, rank);
    }
    if (ranks.count > 1) {
        snprintf(text, text_bytes, "ranks %s have", ranks.text);
    } else {
        snprintf(text, text_bytes, "rank %d on host %s (pid %d) has", first->rank,
                 first->process.host, first->process.pid);
    }
}

/* A thread that calls for several ranks, one after the other, waits in the first call. */
static const char *group_hint(const struct tt_status *status, const struct tt_status *waiting)
{
    return status->process.key == waiting->process.key && !status->grouped
               ? "; the ranks are of one process: what one thread calls for several ranks must be "
                 "between one ncclGroupStart and its ncclGroupEnd"
               : "";
}

static void conclude_not_called(const struct search *search, const struct tt_status *status,
                                const struct tt_status *waiting, const struct tt_status_wait *wait)
{
    const struct tt_verdict found = {
        .kind = TT_VERDICT_NOT_CALLED, .comm_id = status->comm_id, .rank = status->rank};
    char call[TT_CALL_BYTES], last[TT_CALL_BYTES], last_text[TT_CALL_BYTES + 200],
        who[TT_RANK_LIST_BYTES + 16];
    tt_call_text(&wait->call, false, call);
    tt_call_text(&status->last, false, last);
    if (status->begun) {
        snprintf(last_text, sizeof(last_text),
                 "the last of rank %d: %s as operation %llu, %u s ago", status->rank, last,
                 (unsigned long long)status->begun, status->quiet_msec / 1000);
    } else {
        snprintf(last_text, sizeof(last_text), "rank %d has called no collective yet",
                 status->rank);
    }
    if (status->grouped) {
        size_t used = strlen(last_text);
        snprintf(last_text + used, sizeof(last_text) - used,
                 "; rank %d has opened a group with calls and not ended it (ncclGroupEnd)",
                 status->rank);
    }
    if (wait->call.known && tt_func_is_message((enum tt_func)wait->call.func)) {
        conclude(search, &found,
                 "rank %d on host %s (pid %d) has not called its end of rank %d's %s; %s%s",
                 status->rank, status->process.host, status->process.pid, waiting->rank, call,
                 last_text, group_hint(status, waiting));
        return;
    }
    name_lacking(search, status, wait->number, who, sizeof(who));
    conclude(search, &found, "%s not called %s as operation %llu; %s%s", who, call,
             (unsigned long long)wait->number, last_text, group_hint(status, waiting));
}

/* Where the process of a rank waits in an exchange to which that of `from` has not come; NULL. */
static const struct tt_status *exchange_of(const struct search *search,
                                           const struct tt_status *status,
                                           const struct tt_standing *from)
{
    for (size_t i = 0; i < search->inquiry->nfound; i++) {
        const struct tt_status *other = &search->inquiry->found[i];
        if (other->process.key != status->process.key || other->device != status->device ||
            other->exchange_msec < BLOCKED_MSEC)
            continue;
        const struct tt_status *own =
            tt_circle_in_comm(search->inquiry, from->status, other->comm_id);
        if (own && !own->exchange_msec) return other;
    }
    return NULL;
}

/* It stands in a split or the like, to which the rank that waits for it does not come: that might
 * still come, as another thread may make the call. */
static bool conclude_exchange(const struct search *search, const struct tt_status *status,
                              const struct tt_standing *from)
{
    struct tt_verdict found = {
        .kind = TT_VERDICT_CIRCLE, .comm_id = status->comm_id, .rank = status->rank};
    char call[TT_CALL_BYTES], where[40] = "";
    const struct tt_status *standing = exchange_of(search, status, from);
    if (!standing) return false;
    if (standing->comm_id != status->comm_id)
        snprintf(where, sizeof(where), " of comm 0x%llx", (unsigned long long)standing->comm_id);
    tt_call_text(&from->wait.call, false, call);
    tt_circle_exchange(from, standing, &found);
    conclude(search, &found,
             "ranks called different operations: rank %d called %s and waits for rank %d, which "
             "waits for all ranks in a split or registration%s; all ranks must make "
             "the same calls in the same order",
             from->status->rank, call, status->rank, where);
    return true;
}

static void conclude_queued(const struct search *search, const struct tt_status *status)
{
    const struct tt_verdict found = {
        .kind = TT_VERDICT_QUEUED, .comm_id = status->comm_id, .rank = status->rank};
    conclude(
        search, &found,
        "rank %d on host %s (pid %d) has called operation %llu, but its stream has not come to "
        "it",
        status->rank, status->process.host, status->process.pid,
        (unsigned long long)status->served + 1);
}

/* ---- the way ---- */

/* Under load a wait is listed late: then a rank waits for a rank that is behind what it began last.
 */
static struct tt_standing step_to(const struct tt_status *status)
{
    struct tt_standing step = {.status = status, .wait = status->waits[0]};
    if (!status->nwaits) {
        step.wait =
            (struct tt_status_wait){.peer = -1, .number = status->begun, .call = status->last};
    }
    return step;
}

static void conclude_circle(const struct search *search, const struct tt_standing *steps, int first,
                            int count)
{
    const struct tt_status *status = steps[first].status;
    struct tt_verdict found = {
        .kind = TT_VERDICT_CIRCLE, .comm_id = status->comm_id, .rank = status->rank};
    bool several = false, messages = true; /* communicators; nothing else */
    char text[460] = "", call[TT_CALL_BYTES];
    const char *cure = "";
    size_t used = 0;
    for (int i = first; i < count; i++) {
        const struct tt_call *own = &steps[i].wait.call;
        several |= steps[i].status->comm_id != status->comm_id;
        messages &= own->known && tt_func_is_message((enum tt_func)own->func);
    }
    for (int i = first; i < count && i < first + NAMED_RANKS && used < sizeof(text) - 1; i++) {
        char where[80] = "";
        if (several) {
            const char *name = steps[i].status->name, *quote = *name ? "\"" : "";
            snprintf(where, sizeof(where), " of comm 0x%llx%s%s%s%s",
                     (unsigned long long)steps[i].status->comm_id, *name ? " " : "", quote, name,
                     quote);
        }
        tt_call_text(&steps[i].wait.call, false, call);
        int wrote = snprintf(text + used, sizeof(text) - used, "%srank %d%s in %s",
                             i > first ? ", " : "", steps[i].status->rank, where, call);
        used += (size_t)wrote;
    }
    if (messages) cure = "; Sends and Recvs that need each other go into one group";
    if (several) {
        cure = "; all ranks must use communicators in the same order";
        tt_circle_describe(search->inquiry, &steps[first], count - first, &found);
    }
    conclude(search, &found, "%d ranks wait for each other: %s%s", count - first, text, cure);
}

/* A communicator in which the process of a rank waits long: what keeps it from calling elsewhere.
 * Where a wait is listed it stands; other operations that it has called come later on its stream.
 */
static const struct tt_status *blocked_elsewhere(const struct search *search,
                                                 const struct tt_status *status)
{
    const struct tt_status *longest = NULL;
    for (size_t i = 0; i < search->inquiry->nfound; i++) {
        const struct tt_status *other = &search->inquiry->found[i];
        if (other->process.key != status->process.key || other->device != status->device ||
            other->comm_id == status->comm_id || !tt_status_has_work(other))
            continue;
        if (other->idle_msec < BLOCKED_MSEC) continue;
        const bool waits = other->nwaits > 0, waited = longest && longest->nwaits > 0;
        if (longest && (waits != waited ? waited : other->idle_msec <= longest->idle_msec))
            continue;
        longest = other;
    }
    return longest;
}

/* The rank that a wait without a peer is for: it is not there, or has not begun the operation; -1:
 * none.
 */
static int missing_from(const struct search *search, const struct tt_status *status,
                        uint64_t number)
{
    int late = -1;
    for (int rank = 0; rank < status->nranks; rank++) {
        const struct tt_status *other = tt_inquiry_find(search->inquiry, status->comm_id, rank);
        if (!other) return rank;
        if (other->begun < number && late < 0) late = rank;
    }
    return late;
}

/* Where the way goes on from a rank; false when it ends there, with or without a verdict. */
static bool go_on(const struct search *search, const struct tt_standing *from,
                  struct tt_standing *next)
{
    int peer = from->wait.peer;
    uint64_t number = from->wait.number;
    if (peer < 0) peer = missing_from(search, from->status, number);
    if (peer < 0) return false;
    const struct tt_status *status = tt_inquiry_find(search->inquiry, from->status->comm_id, peer);
    if (!status) {
        conclude_absent(search, from->status->comm_id, peer);
        return false;
    }
    *next = step_to(status);
    bool works = tt_status_has_work(status);
    if (works && status->nwaits) return true;
    const struct tt_status *other = blocked_elsewhere(search, status);
    if (other) {
        *next = step_to(other);
        return true;
    }
    if (!works && conclude_exchange(search, status, from)) return false;
    bool message = from->wait.call.known && tt_func_is_message((enum tt_func)from->wait.call.func);
    if (!works && (message || status->begun < number)) {
        conclude_not_called(search, status, from->status, &from->wait);
    } else if (works && status->begun < number) {
        conclude_queued(search, status);
    }
    return false;
}

void tt_verdict_find(const struct tt_inquiry *inquiry, const struct tt_watch *watches,
                     uint64_t comm_id, int rank, struct tt_verdict *verdict_out)
{
    struct tt_standing steps[MAX_STEPS];
    const struct search search = {inquiry, watches, comm_id, verdict_out};
    *verdict_out = (struct tt_verdict){.kind = TT_VERDICT_NONE, .rank = -1};
    const struct tt_status *status = tt_inquiry_find(inquiry, comm_id, rank);
    if (!status || !tt_status_has_work(status)) return;
    steps[0] = step_to(status);
    for (int count = 1; count < MAX_STEPS && go_on(&search, &steps[count - 1], &steps[count]);
         count++) {
        for (int i = 0; i < count; i++) {
            if (steps[i].status != steps[count].status) continue;
            conclude_circle(&search, steps, i, count);
            return;
        }
    }
}
