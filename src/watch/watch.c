/* The watchdog: one thread that looks a few times a second whether operations are being finished.
 * No progress for TUTTI_WATCHDOG seconds: one report. For TUTTI_TIMEOUT seconds: the communicator
 * is aborted with ncclTimeout. A process that exited without goodbye while work waits for what it
 * will never do: ncclRemoteError. Time in which this process itself was stopped does not count. */
#include "watch/watch.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "base/member.h"
#include "base/param.h"
#include "base/wait.h"
#include "bootstrap/bootstrap.h"
#include "exec/exec.h"
#include "transport/transport.h"
#include "watch/compare.h"
#include "watch/diagnose.h"
#include "watch/flight.h"
#include "watch/inquiry.h"
#include "watch/process.h"
#include "watch/serve.h"
#include "watch/verdict.h"
#include "watch/watch_state.h"

#include <endian.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TICK_NSEC 50000000ull
#define STOPPED_NSEC 1000000000ull /* between two looks: this process did not run */
#define EXIT_TICK_NSEC 20000000ull /* while somebody has exited and work waits */
#define EXIT_PATIENCE_NSEC 500000000ull
#define LEFT_PATIENCE_NSEC 1000000000ull /* for what a rank that left well has sent before */
#define LISTED_WAITS 8
#define INQUIRY_NSEC 1500000000ull      /* who has not answered then is silent */
#define STOPPED_LOOK_NSEC 3000000000ull /* of standing still: is somebody stopped? */
#define DEFER_NSEC 20000000ull          /* each rank leaves so much time to the one before it */
#define DEFER_RANKS 50
#define BEFORE_ABORT_NSEC 3000000000ull /* a verdict is asked for so long before TUTTI_TIMEOUT */
#define AGAIN_NSEC 2000000000ull /* after a question that found nobody to blame; then doubled */
#define REPORT_NSEC 5000000000ull
#define STRICT_TIMEOUT_SEC 120 /* of TUTTI_STRICT where TUTTI_TIMEOUT is not set */
#define NSEC 1000000000ull
#define TT_WATCH_SENTENCE_BYTES 700
enum { TAG_VERDICT = TT_TAG_OWNER + 8 };
enum {
    REPORTED_NOTHING,
    REPORTED_EARLY,
    REPORTED_DUE
}; /* of a verdict: that somebody is stopped, or any */

static void raise_abort(struct tt_watch *watch, ncclResult_t rc, const char *sentence)
{
    struct tt_member *member = watch->subject.member;
    if (tt_member_aborted(member)) return;
    /* the others hear the reason before this rank's caller can give up and tell them that */
    tt_bootstrap_fail(watch->subject.bootstrap, rc, sentence);
    tt_error_keep("comm 0x%llx rank %d: %s", (unsigned long long)member->comm_id, member->rank,
                  sentence); /* threads that see the flag ask for it at once */
    if (!tt_member_abort_why(member, rc, sentence)) return;
    tt_fail(rc, "comm 0x%llx rank %d: %s", (unsigned long long)member->comm_id, member->rank,
            sentence);
}

static void describe_wait(const struct tt_watch *watch, const struct tt_wait *wait, uint64_t now,
                          char *text, size_t text_bytes)
{
    double age_sec = (double)(now - wait->since_nsec) * 1e-9;
    if (wait->peer < 0) {
        snprintf(text, text_bytes, "%s, for %.0f s", wait->what, age_sec);
        return;
    }
    int pid;
    const char *host = tt_bootstrap_peer(watch->subject.bootstrap, wait->peer, &pid);
    snprintf(text, text_bytes, "%s rank %d on host %s (pid %d), for %.0f s", wait->what, wait->peer,
             host, pid, age_sec);
}

/* The verdict on one line, then what each waiting step waits for. */
static void report(struct tt_watch *watch, uint64_t issued, uint64_t now)
{
    const struct tt_member *member = watch->subject.member;
    struct tt_wait waits[LISTED_WAITS];
    char text[256];
    int count = tt_wait_list(member, waits, LISTED_WAITS);
    tt_warn("comm 0x%llx \"%s\" rank %d of %d: no operation was finished for %.0f s; operation "
            "%llu of %llu issued is next; %d wait(s) known",
            (unsigned long long)member->comm_id, member->name ? member->name : "", member->rank,
            member->nranks, (double)(now - watch->since_nsec) * 1e-9,
            (unsigned long long)watch->served + 1, (unsigned long long)issued, count);
    for (int i = 0; i < count && i < LISTED_WAITS; i++) {
        describe_wait(watch, &waits[i], now, text, sizeof(text));
        tt_warn("comm 0x%llx rank %d waits: %s", (unsigned long long)member->comm_id, member->rank,
                text);
    }
}

/* Ranks of low numbers ask first; what they find out they send to the others, which then need not
 * ask.
 */
static uint64_t deferred_nsec(const struct tt_watch *watch)
{
    int rank = watch->subject.member->rank;
    return (uint64_t)(rank < DEFER_RANKS ? rank : DEFER_RANKS) * DEFER_NSEC;
}

/* When a verdict is wanted: with the report, or in time for the abort, whose sentence has it. */
static uint64_t verdict_nsec(void)
{
    uint64_t end = tt_watches.watchdog.abort_nsec;
    uint64_t before = end > 2 * BEFORE_ABORT_NSEC ? end - BEFORE_ABORT_NSEC : end / 2;
    return end && before < tt_watches.watchdog.report_nsec ? before
                                                           : tt_watches.watchdog.report_nsec;
}

/* The first time only whether a process stands still, which is worth a line at once; when the
 * report is due, whatever keeps this rank waiting. */
static void inquire(struct tt_watch *watch, uint64_t now)
{
    if (watch->issued == watch->served || tt_member_aborted(watch->subject.member)) return;
    uint64_t due_nsec = verdict_nsec(), idle_nsec = now - watch->since_nsec;
    uint64_t soon = STOPPED_LOOK_NSEC < due_nsec ? STOPPED_LOOK_NSEC : due_nsec;
    bool first = idle_nsec >= soon + deferred_nsec(watch) && !watch->looked;
    bool second = idle_nsec >= due_nsec + deferred_nsec(watch) && !watch->asked;
    bool others_ask =
        now - tt_watches.watchdog.inquiry.asked_nsec < INQUIRY_NSEC + DEFER_RANKS * DEFER_NSEC;
    if (others_ask || now < watch->again_nsec) return; /* they will say what they found */
    if (!tt_watches.watchdog.report_nsec || watch->subject.member->nranks == 1 ||
        !(first || second))
        return;
    watch->looked = true;
    if (second) watch->asked = true;
    watch->wants = tt_inquiry_want(&tt_watches.watchdog.inquiry, tt_watches.watchdog.subjects, now,
                                   INQUIRY_NSEC, TT_INQUIRY_JUDGES);
    watch->until_nsec = now + INQUIRY_NSEC;
}

static void tell_verdict(struct tt_watch *watch, const char *sentence)
{
    const struct tt_member *member = watch->subject.member;
    tt_warn("comm 0x%llx \"%s\" rank %d of %d waits: %s", (unsigned long long)member->comm_id,
            member->name ? member->name : "", member->rank, member->nranks, sentence);
    snprintf(watch->verdict, sizeof(watch->verdict), ": %.380s", sentence);
}

static bool stands_still(const struct tt_verdict *verdict)
{
    return verdict->kind == TT_VERDICT_STOPPED || verdict->kind == TT_VERDICT_ENDED ||
           verdict->kind == TT_VERDICT_SILENT;
}

/* How it comes to the other ranks. */
struct verdict_message {
    uint64_t comm_id;       /* of the rank to blame, */
    uint32_t rank;          /* and the rank: little-endian, as is the other */
    unsigned char due;      /* the report is */
    unsigned char is_still; /* it is said to be stopped, gone or silent */
    unsigned char pad[2];
    char sentence[sizeof(((struct tt_verdict *)0)->sentence)];
};

static void share_verdict(const struct tt_watch *watch, const struct tt_verdict *verdict)
{
    const struct tt_member *member = watch->subject.member;
    struct verdict_message message = {.comm_id = htole64(verdict->comm_id),
                                      .rank = htole32((uint32_t)verdict->rank),
                                      .due = watch->asked,
                                      .is_still = stands_still(verdict)};
    snprintf(message.sentence, sizeof(message.sentence), "%s", verdict->sentence);
    for (int rank = 0; rank < member->nranks; rank++) {
        if (rank == member->rank) continue;
        tt_bootstrap_send(watch->subject.bootstrap, rank, TAG_VERDICT, &message, sizeof(message));
    }
}

/* That this process stood still is no news to it: it reads the message after it has gone on. */
static bool blames_own(const struct verdict_message *message)
{
    const struct tt_watch *watch = tt_watches.watchdog.subjects;
    while (watch && (watch->subject.member->comm_id != le64toh(message->comm_id) ||
                     (uint32_t)watch->subject.member->rank != le32toh(message->rank)))
        watch = watch->next;
    return message->is_still && watch;
}

/* Another rank has found out why this one waits, too. */
static void hear_verdict(struct tt_watch *watch)
{
    struct verdict_message message;
    size_t bytes = 0;
    while (!tt_bootstrap_poll(watch->subject.bootstrap, TT_ANY_PEER, TAG_VERDICT, &message,
                              sizeof(message), &bytes)) {
        int level = message.due ? REPORTED_DUE : REPORTED_EARLY;
        if (bytes != sizeof(message) || watch->judged >= level || watch->served == watch->issued ||
            blames_own(&message))
            continue;
        message.sentence[sizeof(message.sentence) - 1] = 0;
        for (char *c = message.sentence; *c; c++) {
            if ((unsigned char)*c < ' ') *c = '?';
        }
        watch->judged = level;
        watch->looked = true;
        watch->asked |= message.due;
        tell_verdict(watch, message.sentence);
    }
}

/* Nobody stood still long enough to be seen: others may be busy, or their waits not listed yet. */
static void ask_again(struct tt_watch *watch, uint64_t now)
{
    uint64_t pause_nsec = watch->pause_nsec ? 2 * watch->pause_nsec : AGAIN_NSEC;
    watch->pause_nsec =
        pause_nsec < tt_watches.watchdog.report_nsec ? pause_nsec : tt_watches.watchdog.report_nsec;
    watch->again_nsec = now + watch->pause_nsec;
    watch->asked = false;
}

/* An inquiry is over: report its result to those that wanted it, and to the other ranks. */
static void judge(struct tt_watch *watch, uint64_t now)
{
    const struct tt_member *member = watch->subject.member;
    struct tt_verdict verdict;
    if (!watch->wants ||
        !tt_inquiry_is_due(&tt_watches.watchdog.inquiry, watch->wants, watch->until_nsec, now))
        return;
    watch->wants = 0;
    tt_verdict_find(&tt_watches.watchdog.inquiry, tt_watches.watchdog.subjects, member->comm_id,
                    member->rank, &verdict);
    bool due = watch->asked || stands_still(&verdict);
    if (watch->asked && verdict.kind == TT_VERDICT_NONE) ask_again(watch, now);
    if (!due || verdict.kind == TT_VERDICT_NONE) return;
    int level = watch->asked ? REPORTED_DUE : REPORTED_EARLY;
    if (watch->judged >= level) return;
    watch->judged = level;
    tell_verdict(watch, verdict.sentence);
    share_verdict(watch, &verdict);
}

/* NCCL_RUN_RAS_DIAGNOSTICS: a report on each new communicator, by its rank 0, is asked for ... */
static void want_report(struct tt_watch *watch, uint64_t now)
{
    if (!watch->diagnoses || watch->report) return;
    watch->report = tt_inquiry_want(&tt_watches.watchdog.inquiry, tt_watches.watchdog.subjects, now,
                                    REPORT_NSEC, TT_INQUIRY_SETTINGS);
    watch->report_nsec = now + REPORT_NSEC;
}

/* ... and printed. */
static void diagnose(struct tt_watch *watch, uint64_t now)
{
    if (!watch->diagnoses || !watch->report ||
        !tt_inquiry_is_due(&tt_watches.watchdog.inquiry, watch->report, watch->report_nsec, now))
        return;
    watch->diagnoses = false;
    tt_diagnose_report(stdout, &tt_watches.watchdog.inquiry, watch->subject.member->comm_id);
    fflush(stdout);
}

/* How long a wait for a rank that is gone may last: all that it sent is here or on the way, and a
 * thread that has no processor needs its time to take it. UINT64_MAX: nobody waits for such a rank,
 * or its transport says more. */
static uint64_t patience_with_gone(const struct tt_watch *watch, uint64_t idle_nsec)
{
    uint64_t least = UINT64_MAX;
    const struct tt_watch_subject *subject = &watch->subject;
    struct tt_wait waits[LISTED_WAITS];
    int count = tt_wait_list(subject->member, waits, LISTED_WAITS);
    for (int i = 0; i < count && i < LISTED_WAITS; i++) {
        int peer = waits[i].peer;
        if (!tt_bootstrap_rank_ended(subject->bootstrap, peer)) continue;
        if (idle_nsec < tt_transport_patience(subject->transport, peer)) continue;
        bool exited = tt_bootstrap_rank_exited(subject->bootstrap, peer);
        uint64_t patience_nsec = exited ? EXIT_TICK_NSEC : LEFT_PATIENCE_NSEC;
        if (patience_nsec < least) least = patience_nsec;
    }
    return least;
}

/* Somebody is gone: in an operation which that rank never began, at once; in a wait for that rank
 * when it has lasted and nothing was finished meanwhile. */
static bool cannot_succeed(struct tt_watch *watch, uint64_t idle_nsec, uint64_t now)
{
    const struct tt_watch_subject *subject = &watch->subject;
    if (!tt_bootstrap_someone_ended(subject->bootstrap)) return false;
    if (!subject->transport) return idle_nsec >= EXIT_PATIENCE_NSEC;
    uint32_t theirs = tt_bootstrap_exit_begun(subject->bootstrap);
    uint32_t ours = (uint32_t)atomic_load_explicit(tt_transport_begun(subject->transport),
                                                   memory_order_relaxed);
    if ((int32_t)(ours - theirs) > 0) return true;
    uint64_t patience_nsec = patience_with_gone(watch, idle_nsec);
    if (patience_nsec == UINT64_MAX) {
        watch->alone_nsec = 0;
        return false;
    }
    if (!watch->alone_nsec) watch->alone_nsec = now;
    return now - watch->alone_nsec >= patience_nsec;
}

/* Who is gone, and in what this rank waits. */
static bool tell_ended(const struct tt_watch *watch, char *text, size_t text_bytes)
{
    const struct tt_watch_subject *subject = &watch->subject;
    char gone[TT_WHY_BYTES], call_text[TT_CALL_BYTES];
    struct tt_wait waits[LISTED_WAITS];
    struct tt_call call = {0};
    if (!tt_bootstrap_ended(subject->bootstrap, gone, sizeof(gone))) return false;
    int count = tt_wait_list(subject->member, waits, LISTED_WAITS);
    if (count > 0) memcpy(&call, waits[0].call, sizeof(call));
    bool message = call.known != 0;
    if (!message && subject->transport)
        tt_call_log_get(subject->transport, count > 0 ? waits[0].op_seq : watch->begun, &call);
    tt_call_text(&call, false, call_text);
    if (message) {
        snprintf(text, text_bytes, "%.400s; rank %d waits in %s", gone, subject->member->rank,
                 call_text);
    } else if (call.known) {
        snprintf(text, text_bytes, "%.400s; rank %d waits in %s as operation %llu", gone,
                 subject->member->rank, call_text,
                 (unsigned long long)(count > 0 ? waits[0].op_seq : watch->begun));
    } else {
        snprintf(text, text_bytes, "%s", gone);
    }
    return true;
}

static void look(struct tt_watch *watch, uint64_t now)
{
    char sentence[TT_WATCH_SENTENCE_BYTES];
    const struct tt_issue_queue *queue = watch->subject.queue;
    uint64_t served = atomic_load_explicit(&queue->served, memory_order_acquire);
    uint64_t issued = atomic_load_explicit(&queue->issued, memory_order_acquire);
    if (served != watch->served || issued == served) {
        watch->served = served;
        watch->since_nsec = now;
        watch->reported = watch->looked = watch->asked = false;
        watch->alone_nsec = 0;
        watch->judged = REPORTED_NOTHING;
        watch->verdict[0] = 0;
        watch->wants = watch->again_nsec = watch->pause_nsec = 0;
    }
    watch->issued = issued;
    if (issued == served) return;
    uint64_t idle_nsec = now - watch->since_nsec;
    if (tt_member_aborted(watch->subject.member)) return;
    if (tt_watches.watchdog.report_nsec && idle_nsec >= tt_watches.watchdog.report_nsec &&
        !watch->reported) {
        watch->reported = true;
        report(watch, issued, now);
    }
    if (tt_watches.watchdog.abort_nsec && idle_nsec >= tt_watches.watchdog.abort_nsec) {
        snprintf(sentence, sizeof(sentence),
                 "no operation was finished for %.0f s (TUTTI_TIMEOUT); operation %llu is next%s",
                 (double)idle_nsec * 1e-9, (unsigned long long)served + 1, watch->verdict);
        raise_abort(watch, ncclTimeout, sentence);
    } else if (cannot_succeed(watch, idle_nsec, now) &&
               tell_ended(watch, sentence, sizeof(sentence))) {
        raise_abort(watch, ncclRemoteError, sentence);
    }
}

/* Some subject has work while one of its ranks is gone. */
static bool exit_pending(void)
{
    for (const struct tt_watch *watch = tt_watches.watchdog.subjects; watch; watch = watch->next) {
        const struct tt_issue_queue *queue = watch->subject.queue;
        if (tt_bootstrap_someone_ended(watch->subject.bootstrap) &&
            !tt_member_aborted(watch->subject.member) &&
            atomic_load_explicit(&queue->issued, memory_order_relaxed) != watch->served)
            return true;
    }
    return false;
}

/* Until an event comes or it is time to look. The lock is let go of meanwhile. */
static void sleep_until_event(struct pollfd fds[1 + TT_SERVE_FDS])
{
    int nfds = 1 + tt_serve_poll(&tt_watches.watchdog.serve, fds + 1, tt_now_nsec());
    fds[0] = (struct pollfd){.fd = tt_watches.watchdog.event_fd, .events = POLLIN};
    uint64_t pause_nsec = exit_pending() ? EXIT_TICK_NSEC : TICK_NSEC;
    eventfd_t count;
    while (nfds > 1 && fds[nfds - 1].fd < 0) /* no more than descriptors are allowed, else poll */
        nfds--;                              /* would not wait */
    pthread_mutex_unlock(&tt_watches.watchdog.lock);
    poll(fds, (nfds_t)nfds, (int)(pause_nsec / 1000000));
    if (fds[0].revents) eventfd_read(fds[0].fd, &count);
    pthread_mutex_lock(&tt_watches.watchdog.lock);
}

static uint64_t begun_of(const struct tt_watch *watch)
{
    const struct tt_transport *transport = watch->subject.transport;
    return transport ? atomic_load_explicit(tt_transport_begun(transport), memory_order_relaxed)
                     : 0;
}

/* One communicator, once a turn. The time that this process lost does not count. */
static void turn(struct tt_watch *watch, uint64_t lost_nsec, uint64_t now)
{
    uint64_t begun = begun_of(watch);
    watch->since_nsec += lost_nsec;
    if (watch->since_nsec > now) watch->since_nsec = now; /* it began while the time was lost */
    if (lost_nsec) watch->alone_nsec = 0;
    if (begun != watch->begun || !watch->begun_nsec) {
        watch->begun = begun;
        watch->begun_nsec = now;
    }
    look(watch, now);
    diagnose(watch, now);
    if (tt_member_aborted(watch->subject.member)) return;
    hear_verdict(watch);
    judge(watch, now);
    if (!watch->compares) return;
    tt_compare_look(&watch->compare, &watch->subject, now);
    tt_closing_look(&watch->closing, &watch->subject);
    tt_unreceived_look(&watch->unreceived, &watch->subject);
}

static void *watch_main(void *arg)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL); /* numbers with a point, for programs */
    (void)arg;
    if (plain) uselocale(plain);
    tt_serve_resolve(&tt_watches.watchdog.serve);
    uint64_t last = tt_now_nsec();
    pthread_mutex_lock(&tt_watches.watchdog.lock);
    while (tt_watches.watchdog.subjects || tt_watches.watchdog.inits) {
        struct pollfd fds[1 + TT_SERVE_FDS];
        sleep_until_event(fds);
        uint64_t now = tt_now_nsec();
        uint64_t lost = now - last > STOPPED_NSEC ? now - last : 0; /* we were stopped */
        last = now;
        tt_inquiry_step(&tt_watches.watchdog.inquiry, tt_watches.watchdog.subjects, now);
        for (struct tt_watch *watch = tt_watches.watchdog.subjects; watch; watch = watch->next)
            turn(watch, lost, now);
        tt_serve_report(&tt_watches.watchdog.serve, &tt_watches.watchdog.inquiry,
                        tt_watches.watchdog.subjects, now);
        for (struct tt_watch *watch = tt_watches.watchdog.subjects; watch; watch = watch->next) {
            inquire(watch, now); /* now that all have had what the last inquiry found */
            want_report(watch, now);
        }
        for (struct tt_watch *watch = tt_watches.watchdog.subjects; watch; watch = watch->next)
            tt_flight_look(watch, now, watch->reported);
        tt_serve_monitor(&tt_watches.watchdog.serve, tt_watches.watchdog.subjects, now);
        tt_serve_step(&tt_watches.watchdog.serve, fds + 1, &tt_watches.watchdog.inquiry,
                      tt_watches.watchdog.subjects, now);
    }
    tt_serve_close(&tt_watches.watchdog.serve);
    tt_inquiry_reset(&tt_watches.watchdog.inquiry);
    tt_watches.watchdog.inquiry.ended =
        tt_watches.watchdog.inquiry.number; /* nobody answers any more */
    tt_watches.watchdog.running = false;
    pthread_cond_broadcast(&tt_watches.watchdog.changed);
    pthread_mutex_unlock(&tt_watches.watchdog.lock);
    uselocale(LC_GLOBAL_LOCALE);
    if (plain) freelocale(plain);
    return NULL;
}

/* ---- fork: the child has no watchdog and no subjects ---- */

static void fork_prepare(void)
{
    pthread_mutex_lock(&tt_watches.watchdog.lock);
}

static void fork_parent(void)
{
    pthread_mutex_unlock(&tt_watches.watchdog.lock);
}

static void fork_child(void)
{
    pthread_mutex_init(&tt_watches.watchdog.lock, NULL);
    pthread_cond_init(&tt_watches.watchdog.changed, NULL);
    if (tt_watches.watchdog.event_fd >= 0)
        close(tt_watches.watchdog.event_fd); /* the parent's: it would be woken */
    tt_watches.watchdog.event_fd = -1;
    tt_watches.watchdog.running = tt_watches.watchdog.joinable = false;
    tt_watches.watchdog.subjects = NULL; /* each is freed when its communicator is */
    tt_flight_forget();
    tt_watches.watchdog.inits = NULL;
    tt_watches.watchdog.inquiry.inits = NULL;
    tt_serve_close(&tt_watches.watchdog.serve);
    tt_inquiry_reset(&tt_watches.watchdog.inquiry);
    memset(&tt_watches.watchdog.inquiry.self, 0,
           sizeof(tt_watches.watchdog.inquiry.self)); /* another process */
}

/* ---- subjects ---- */

/* False: errno says why; without an event_fd there is no descriptor. */
static bool thread_start(void)
{
    pthread_cond_broadcast(&tt_watches.watchdog.changed); /* let_end(): it goes on after all */
    if (tt_watches.watchdog.running) return true;
    if (tt_watches.watchdog.joinable)
        pthread_join(tt_watches.watchdog.thread, NULL); /* it has left, or is about to */
    tt_watches.watchdog.joinable = false;
    if (tt_watches.watchdog.event_fd < 0)
        tt_watches.watchdog.event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (tt_watches.watchdog.event_fd < 0) return false;
    if (!tt_watches.watchdog.hooked) pthread_atfork(fork_prepare, fork_parent, fork_child);
    tt_watches.watchdog.hooked = true;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(&tt_watches.watchdog.thread, NULL, watch_main, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    if (error) return false;
    pthread_setname_np(tt_watches.watchdog.thread, "tutti-watch");
    tt_watches.watchdog.running = tt_watches.watchdog.joinable = true;
    return true;
}

/* The thread ends with what it watches; the caller that took the last one away waits for that. */
static void let_end(void)
{
    while (!tt_watches.watchdog.subjects && !tt_watches.watchdog.inits &&
           tt_watches.watchdog.running) { /* or something was added meanwhile */
        eventfd_write(tt_watches.watchdog.event_fd, 1);
        pthread_cond_wait(&tt_watches.watchdog.changed, &tt_watches.watchdog.lock);
    }
    bool join = !tt_watches.watchdog.running && tt_watches.watchdog.joinable;
    pthread_t thread = tt_watches.watchdog.thread;
    if (join) tt_watches.watchdog.joinable = false;
    pthread_mutex_unlock(&tt_watches.watchdog.lock);
    if (join) pthread_join(thread, NULL);
}

struct tt_watch_init *tt_watch_init_begin(const struct tt_member *member)
{
    struct tt_watch_init *init = calloc(1, sizeof(*init));
    char *settings = tt_diagnose_settings();
    if (init) {
        *init = (struct tt_watch_init){.comm_id = member->comm_id,
                                       .since_nsec = tt_now_nsec(),
                                       .rank = member->rank,
                                       .nranks = member->nranks,
                                       .device = member->device};
        snprintf(init->name, sizeof(init->name), "%s", member->name ? member->name : "");
        tt_status_clean(init->name);
    }
    pthread_mutex_lock(&tt_watches.watchdog.lock);
    free(tt_watches.watchdog.settings);
    tt_watches.watchdog.inquiry.own_settings = tt_watches.watchdog.settings = settings;
    if (init) {
        init->next = tt_watches.watchdog.inits;
        tt_watches.watchdog.inquiry.inits = tt_watches.watchdog.inits = init;
        (void)thread_start(); /* or it is not listed: a caller that needs it says so */
    }
    pthread_mutex_unlock(&tt_watches.watchdog.lock);
    return init;
}

void tt_watch_init_end(struct tt_watch_init *init)
{
    if (!init) return;
    pthread_mutex_lock(&tt_watches.watchdog.lock);
    struct tt_watch_init **link = &tt_watches.watchdog.inits;
    while (*link && *link != init)
        link = &(*link)->next;
    if (*link) *link = init->next;
    tt_watches.watchdog.inquiry.inits = tt_watches.watchdog.inits;
    let_end();
    free(init);
}

ncclResult_t tt_watch_add(const struct tt_watch_subject *subject, struct tt_watch **watch_out)
{
    int64_t report_sec = tt_param_int("TUTTI_WATCHDOG");
    int64_t abort_sec = tt_param_int("TUTTI_TIMEOUT");
    if (tt_param_bool("TUTTI_STRICT") && !tt_param_is_set("TUTTI_TIMEOUT"))
        abort_sec = STRICT_TIMEOUT_SEC;
    *watch_out = NULL;
    struct tt_watch *watch = calloc(1, sizeof(*watch));
    if (!watch) return tt_fail(ncclSystemError, "watchdog: out of memory");
    watch->subject = *subject;
    watch->since_nsec = tt_now_nsec();
    watch->diagnoses = subject->member->rank == 0 && tt_param_bool("NCCL_RUN_RAS_DIAGNOSTICS");
    watch->compares =
        subject->transport && subject->member->nranks > 1 && tt_param_bool("TUTTI_CHECK_MATCH");
    if (watch->compares) tt_unreceived_init(&watch->unreceived, subject->member->nranks);
    pthread_mutex_lock(&tt_watches.watchdog.lock);
    tt_watches.watchdog.report_nsec = report_sec > 0 ? (uint64_t)report_sec * NSEC : 0;
    tt_watches.watchdog.abort_nsec = abort_sec > 0 ? (uint64_t)abort_sec * NSEC : 0;
    watch->next = tt_watches.watchdog.subjects;
    tt_watches.watchdog.subjects = watch;
    bool runs = thread_start(), has_descriptor = tt_watches.watchdog.event_fd >= 0;
    if (!runs) tt_watches.watchdog.subjects = watch->next;
    if (runs) tt_flight_add(watch);
    pthread_mutex_unlock(&tt_watches.watchdog.lock);
    if (!runs) {
        tt_unreceived_fini(&watch->unreceived);
        free(watch);
        if (!has_descriptor) return tt_fail(ncclSystemError, "watchdog: no descriptor: %m");
        return tt_fail(ncclSystemError, "watchdog: cannot start its thread: %m");
    }
    *watch_out = watch;
    return ncclSuccess;
}

ncclResult_t tt_watch_close(struct tt_watch *watch)
{
    if (!watch || !watch->compares) return ncclSuccess;
    ncclResult_t rc =
        tt_closing_wait(&watch->closing, &watch->subject, tt_watches.watchdog.event_fd);
    if (!rc) tt_unreceived_close(&watch->unreceived, &watch->subject);
    return rc;
}

void tt_watch_remove(struct tt_watch *watch)
{
    if (!watch) return;
    pthread_mutex_lock(&tt_watches.watchdog.lock);
    tt_flight_remove(watch);
    struct tt_watch **link = &tt_watches.watchdog.subjects;
    while (*link && *link != watch)
        link = &(*link)->next;
    if (*link) *link = watch->next;
    let_end();
    tt_closing_fini(&watch->closing);
    tt_unreceived_fini(&watch->unreceived);
    free(watch);
}

int tt_watch_event(void)
{
    return tt_watches.watchdog.event_fd;
}
