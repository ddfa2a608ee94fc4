/* The watchdog: one thread looks a few times a second at all communicators of the process
 * (progress.c), asks the other ranks when one makes no progress (judge.c), and answers clients.
 * Time in which this process itself was stopped does not count. */
#include "watch/watch.h"

#include "base/error.h"
#include "base/log.h"
#include "base/member.h"
#include "base/param.h"
#include "base/system/clock.h"
#include "bootstrap/bootstrap.h"
#include "transport/transport.h"
#include "watch/compare/compare.h"
#include "watch/flight/flight.h"
#include "watch/inquiry/inquiry.h"
#include "watch/judge.h"
#include "watch/process.h"
#include "watch/progress.h"
#include "watch/ras/diagnose.h"
#include "watch/ras/serve.h"
#include "watch/watch_state.h"

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
#define EXIT_TICK_NSEC 20000000ull /* while a process has exited and work waits */
#define STOPPED_NSEC 1000000000ull /* between two looks: this process did not run */
#define REPORT_NSEC 5000000000ull
#define INIT_WAITS_NSEC 2000000000ull /* in an init: the launcher is told */
#define INIT_AGAIN_NSEC 1000000000ull /* and again */
#define STRICT_TIMEOUT_SEC 120        /* of TUTTI_STRICT where TUTTI_TIMEOUT is not set */
#define NSEC 1000000000ull

/* NCCL_RUN_RAS_DIAGNOSTICS: a report on each new communicator, by its rank 0, is asked for ... */
static void want_report(struct tt_watch *watch, uint64_t now)
{
    if (!watch->diagnoses || watch->report) return;
    watch->report = tt_inquiry_want(&tt_watches.watchdog.inquiry, tt_watches.watchdog.subjects, now,
                                    REPORT_NSEC, TT_INQUIRY_SETTINGS);
    watch->report_nsec = now + REPORT_NSEC;
}

/* ... and made, to be printed. */
static void diagnose(struct tt_watch *watch, uint64_t now)
{
    if (!watch->diagnoses || !watch->report ||
        !tt_inquiry_is_due(&tt_watches.watchdog.inquiry, watch->report, watch->report_nsec, now))
        return;
    if (tt_watches.watchdog.unprinted) return; /* one after the other */
    watch->diagnoses = false;
    tt_watches.watchdog.unprinted =
        tt_diagnose_text(&tt_watches.watchdog.inquiry, watch->subject.member->comm_id);
}

/* Until an event comes or it is time to look. The lock is let go of meanwhile. */
static void sleep_until_event(struct pollfd fds[1 + TT_SERVE_FDS])
{
    int nfds = 1 + tt_serve_poll(&tt_watches.watchdog.serve, fds + 1, tt_now_nsec());
    fds[0] = (struct pollfd){.fd = tt_watches.watchdog.event_fd, .events = POLLIN};
    uint64_t pause_nsec = tt_progress_exit_pending() ? EXIT_TICK_NSEC : TICK_NSEC;
    eventfd_t count;
    char *text = tt_watches.watchdog.unprinted;
    tt_watches.watchdog.unprinted = NULL;
    while (nfds > 1 && fds[nfds - 1].fd < 0) /* no more than descriptors are allowed, else poll */
        nfds--;                              /* would not wait */
    pthread_mutex_unlock(&tt_watches.watchdog.lock);
    if (text) tt_diagnose_print(text); /* without the lock: its reader may be slow */
    free(text);
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

/* What the thread says from now on is about this communicator. */
static void speak_of(const struct tt_watch *watch)
{
    tt_log_set_device(watch->subject.member->device);
}

/* One communicator, once a turn. The time that this process lost does not count. */
static void turn(struct tt_watch *watch, uint64_t lost_nsec, uint64_t now)
{
    uint64_t begun = begun_of(watch);
    speak_of(watch);
    watch->since_nsec += lost_nsec;
    if (watch->since_nsec > now) watch->since_nsec = now; /* it began while the time was lost */
    if (lost_nsec) watch->alone_nsec = 0;
    if (begun != watch->begun || !watch->begun_nsec) {
        watch->begun = begun;
        watch->begun_nsec = now;
    }
    tt_progress_look(watch, now);
    diagnose(watch, now);
    if (tt_member_aborted(watch->subject.member)) return;
    tt_judge_receive(watch, now);
    tt_judge_end(watch, now);
    if (!watch->compares) return;
    tt_compare_look(&watch->compare, &watch->subject, now);
    tt_closing_look(&watch->closing, &watch->subject);
    tt_unreceived_look(&watch->unreceived, &watch->subject);
}

static void report_inits(const struct tt_watch_init *last)
{
    struct tt_launcher_note note = {.kind = TT_LAUNCHER_INITS,
                                    .rank = last->rank,
                                    .nranks = last->nranks,
                                    .comm_id = last->comm_id};
    for (const struct tt_watch_init *init = tt_watches.watchdog.inits; init; init = init->next)
        note.status += init->reported;
    tt_launcher_report(last->launcher, &note);
}

/* `tutti run` sees ranks end without having come, which those that wait for them do not. */
static void report_waits(uint64_t now)
{
    const struct tt_watch_init *due = NULL;
    for (struct tt_watch_init *init = tt_watches.watchdog.inits; init; init = init->next) {
        if (now < init->since_nsec + INIT_WAITS_NSEC) continue;
        if (!init->reported || now >= tt_watches.watchdog.reported_nsec + INIT_AGAIN_NSEC)
            due = init;
        init->reported = true;
    }
    if (!due) return;
    tt_watches.watchdog.reported_nsec = now;
    report_inits(due);
}

static void *watch_main(void *arg)
{
    locale_t plain = newlocale(LC_ALL_MASK, "C", NULL); /* numbers with a point, for programs */
    (void)arg;
    if (plain) uselocale(plain);
    tt_ports_resolve(&tt_watches.watchdog.serve.ports);
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
        report_waits(now);
        tt_serve_report(&tt_watches.watchdog.serve, &tt_watches.watchdog.inquiry,
                        tt_watches.watchdog.subjects, now);
        for (struct tt_watch *watch = tt_watches.watchdog.subjects; watch; watch = watch->next) {
            speak_of(watch);
            tt_judge_ask(watch, now); /* now that all have had what the last inquiry found */
            want_report(watch, now);
        }
        for (struct tt_watch *watch = tt_watches.watchdog.subjects; watch; watch = watch->next) {
            speak_of(watch);
            tt_flight_look(watch, now, watch->reported);
        }
        tt_serve_monitor(&tt_watches.watchdog.serve, tt_watches.watchdog.subjects, now);
        tt_serve_step(&tt_watches.watchdog.serve, fds + 1, &tt_watches.watchdog.inquiry,
                      tt_watches.watchdog.subjects, now);
    }
    tt_serve_close(&tt_watches.watchdog.serve);
    tt_inquiry_reset(&tt_watches.watchdog.inquiry);
    tt_watches.watchdog.inquiry.ended =
        tt_watches.watchdog.inquiry.number; /* answers are not waited for any more */
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
    if (!tt_watches.watchdog.hooked) {
        tt_bootstrap_hook_fork(); /* a fork takes our lock first, as our thread does */
        pthread_atfork(fork_prepare, fork_parent, fork_child);
    }
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
        tt_launcher_name(init->launcher);
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
    if (init->reported) report_inits(init);
    let_end();
    free(init);
}

uint64_t tt_watch_abort_nsec(void)
{
    int64_t abort_sec = tt_param_int("TUTTI_TIMEOUT");
    if (tt_param_bool("TUTTI_STRICT") && !tt_param_is_set("TUTTI_TIMEOUT"))
        abort_sec = STRICT_TIMEOUT_SEC;
    return abort_sec > 0 ? (uint64_t)abort_sec * NSEC : 0;
}

ncclResult_t tt_watch_add(const struct tt_watch_subject *subject, struct tt_watch **watch_out)
{
    int64_t report_sec = tt_param_int("TUTTI_WATCHDOG");
    *watch_out = NULL;
    ncclResult_t rc = tt_flight_check(subject);
    if (rc) return rc;
    struct tt_watch *watch = calloc(1, sizeof(*watch));
    if (!watch) return tt_fail(ncclSystemError, "watchdog: out of memory");
    watch->subject = *subject;
    watch->since_nsec = tt_now_nsec();
    watch->diagnoses = subject->member->rank == 0 && tt_param_bool("NCCL_RUN_RAS_DIAGNOSTICS");
    watch->compares = subject->transport && subject->member->nranks > 1 && subject->compares;
    if (watch->compares) tt_unreceived_init(&watch->unreceived, subject->member->nranks);
    pthread_mutex_lock(&tt_watches.watchdog.lock);
    tt_watches.watchdog.report_nsec = report_sec > 0 ? (uint64_t)report_sec * NSEC : 0;
    tt_watches.watchdog.abort_nsec = tt_watch_abort_nsec();
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
    if (rc) return rc;
    pthread_mutex_lock(&tt_watches.watchdog.lock);
    tt_unreceived_end(&watch->unreceived, &watch->subject);
    pthread_mutex_unlock(&tt_watches.watchdog.lock);
    tt_unreceived_wait(&watch->unreceived, &watch->subject);
    return ncclSuccess;
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
