/* Has all ranks started (start.c), watches them, ends all within two seconds when one fails or a
 * signal comes. Only processes started here are ever signalled (each is leader of its own process
 * group). */
#include "launch.h"

#include "inits.h"
#include "linkage.h"
#include "pmi.h"
#include "report.h"
#include "same.h"
#include "start.h"

#include "base/launcher.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* HOLD                how long a failure on another host is held back, for one that caused it to be
 *                     reported
 * HOLD_EXITING        how long one is held back for a rank that said before it that it exits, whose
 *                     exit handlers may still change its status */
enum { KILL_AFTER_MSEC = 1000, LOOK_EVERY = 32, HOLD_MSEC = 800, HOLD_EXITING_MSEC = 1000 };

static long since_msec(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - then->tv_sec) * 1000 + (now.tv_nsec - then->tv_nsec) / 1000000;
}

static void signal_all(const struct launch *launch, int signal)
{
    for (int r = 0; r < launch->options->nranks; r++) {
        if (launch->children[r].pid > 0) kill(-launch->children[r].pid, signal);
    }
}

/* Note in which order ranks said that they exit, and which wait in an init. */
static void take_notes(struct launch *launch)
{
    struct tt_launcher_note note;
    for (pid_t pid; (pid = launch_env_note(&launch->env, &note)) > 0;) {
        const pid_t group = getpgid(pid); /* a rank is a group; its program may have ended */
        for (int r = 0; r < launch->options->nranks; r++) {
            struct launch_child *child = &launch->children[r];
            if (launch->ending || child->pid <= 0 || (child->pid != pid && child->pid != group))
                continue;
            if (note.kind != TT_LAUNCHER_EXIT) launch_inits_take(launch->inits, r, pid, &note);
            if (note.kind != TT_LAUNCHER_EXIT || child->said) continue;
            child->said = ++launch->nsaid;
            child->said_status = note.status & 0xff;
        }
    }
}

static void end_all(struct launch *launch, int status)
{
    if (launch->first_status < 0) launch->first_status = status;
    if (launch->ending) return;
    take_notes(launch); /* those do not end because of the signal */
    launch->ending = true;
    clock_gettime(CLOCK_MONOTONIC, &launch->ending_since);
    signal_all(launch, SIGTERM);
}

static const char *name_of(const struct launch *launch)
{
    return launch->options->name ? launch->options->name : "run";
}

/* Say how a rank failed, unless the others are being ended already. */
static void report_failure(const struct launch *launch, int rank, int status, bool signalled)
{
    if (launch->ending) return;
    if (!status) {
        fprintf(stderr,
                "tutti %s: rank %d ended between MPI_Init and MPI_Finalize; ending the others\n",
                name_of(launch), rank);
        return;
    }
    const int number = signalled ? status - 128 : status;
    const char *how = signalled ? "was ended by signal" : "exited with";
    int host = launch_slot_of(launch->options, rank).host;
    if (launch->children[rank].err.awaited) {
        const char *name = launch->options->hosts[host].name;
        fprintf(stderr,
                "tutti %s: rank %d did not start on %s: the remote shell %s %d; ending the others\n"
                "tutti %s: %s %s true has to work without a password\n",
                name_of(launch), rank, name, how, number, name_of(launch), launch_remote_shell(),
                name);
        return;
    }
    const char *meaning = signalled ? strsignal(number) : NULL;
    fprintf(stderr, "tutti %s: rank %d %s %d%s%s%s; ending the others\n", name_of(launch), rank,
            how, number, meaning ? " (" : "", meaning ? meaning : "", meaning ? ")" : "");
}

/* Who said before this rank that it exits: it may have failed because of that one. */
static int first_exiting(const struct launch *launch, int rank)
{
    int first = rank;
    for (int r = 0; launch->children[rank].said && r < launch->options->nranks; r++) {
        const struct launch_child *child = &launch->children[r];
        if (child->said && child->said < launch->children[first].said) first = r;
    }
    return first;
}

/* The exit status that a shell would give. Of a rank on another host that a signal ended, its shell
 * there has said it so. */
static int status_of(const struct launch *launch, const struct launch_child *child, bool *signalled)
{
    const bool far = launch->options->nhosts > 0;
    if (WIFSIGNALED(child->status)) {
        *signalled = true;
        return 128 + WTERMSIG(child->status);
    }
    *signalled = far && WEXITSTATUS(child->status) > 128 &&
                 sigabbrev_np(WEXITSTATUS(child->status) - 128) != NULL;
    return WEXITSTATUS(child->status);
}

static void blame(struct launch *launch, int rank)
{
    bool signalled = false;
    const int status = status_of(launch, &launch->children[rank], &signalled);
    report_failure(launch, rank, status, signalled);
    launch_report_blame(launch->report, rank);
    end_all(launch, status ? status : 1);
}

/* One that said that it exits is to blame, with the status that it ends with; when it takes long,
 * with the one that it said. */
static void finish_exiting(struct launch *launch)
{
    int first = 0;
    for (int r = 0; r < launch->options->nranks; r++) {
        if (launch->children[r].held == 1) first = first_exiting(launch, r);
    }
    const struct launch_child *cause = &launch->children[first];
    if (cause->pid > 0 && since_msec(&launch->held_since) < HOLD_EXITING_MSEC) return;
    if (cause->pid <= 0 && cause->status) {
        blame(launch, first);
        return;
    }
    report_failure(launch, first, cause->said_status, false);
    launch_report_blame(launch->report, first);
    end_all(launch, cause->said_status);
}

/* Remote shells end in any order: a rank that failed because of another one may be heard of before
 * it. The one that ranks' warnings name is to blame when it has failed, else the first. */
static void finish_held(struct launch *launch)
{
    if (!launch->nheld || launch->ending) return;
    if (!launch->options->nhosts) {
        finish_exiting(launch);
        return;
    }
    const int named = launch_report_blamed(launch->report);
    int first = named >= 0 && launch->children[named].held ? named : -1;
    if (first < 0 && launch->nalive && since_msec(&launch->held_since) < HOLD_MSEC) return;
    for (int r = 0; first < 0 && r < launch->options->nranks; r++) {
        if (launch->children[r].held == 1) first = r;
    }
    blame(launch, first);
}

static void reap_rank(struct launch *launch, int rank)
{
    struct launch_child *child = &launch->children[rank];
    if (child->pid <= 0 || waitpid(child->pid, &child->status, WNOHANG) != child->pid) return;
    take_notes(launch);         /* what it said itself is there by now */
    kill(-child->pid, SIGKILL); /* what it left behind in its group */
    launch->guard.groups[rank] = 0;
    child->pid = 0;
    if (child->script_fd >= 0) close(child->script_fd);
    child->script_fd = -1;
    launch->nalive--;
    bool finalized = !launch->pmi || launch_pmi_ended(launch->pmi, rank);
    const bool sent =
        launch->ending && child->status && (!child->said || WIFSIGNALED(child->status));
    launch_report_end(launch->report, rank, child->status, sent);
    if (!child->status) launch_inits_ended(launch->inits, rank);
    if (!child->status && finalized) return;
    launch_output_drain(&child->err);
    const bool may_follow =
        launch->options->nhosts ? !child->err.awaited : first_exiting(launch, rank) != rank;
    if (may_follow && !launch->ending) {
        child->held = ++launch->nheld;
        if (child->held == 1) clock_gettime(CLOCK_MONOTONIC, &launch->held_since);
        return;
    }
    blame(launch, rank);
}

/* first   the process that ended first, as far as the kernel says; the others may fail because of
 *         it, and be as dead by now */
static void reap(struct launch *launch, pid_t first)
{
    take_notes(launch);
    for (int r = 0; r < launch->options->nranks; r++) {
        if (first > 0 && launch->children[r].pid == first) reap_rank(launch, r);
    }
    for (int r = 0; r < launch->options->nranks; r++)
        reap_rank(launch, r);
    finish_held(launch);
}

static void read_signals(struct launch *launch)
{
    struct signalfd_siginfo seen;
    pid_t first = 0; /* a second SIGCHLD is dropped while one waits to be read */
    while (read(launch->signal_fd, &seen, sizeof(seen)) == (ssize_t)sizeof(seen)) {
        if (seen.ssi_signo == SIGCHLD) {
            if (!first) first = (pid_t)seen.ssi_pid;
            continue;
        }
        if (!launch->ending) {
            /* a terminal has just shown ^C at the beginning of this line */
            fprintf(stderr, "%stutti %s: %s; ending %d rank(s)\n",
                    isatty(STDERR_FILENO) ? "\n" : "", name_of(launch),
                    strsignal((int)seen.ssi_signo), launch->nalive);
        }
        launch_same_hush(launch->same);
        launch_report_interrupt(launch->report);
        end_all(launch, 128 + (int)seen.ssi_signo);
    }
    reap(launch, first);
}

/* Ranks have ended well, and all others wait for them in an init: it would last until the init's
 * time-out. */
static void end_hung(struct launch *launch)
{
    struct launch_stand stand;
    if (launch->ending || launch->nheld || !launch_inits_stand(launch->inits, &stand)) return;
    fprintf(stderr, "tutti %s: %s; ending the job\n", name_of(launch), stand.sentence);
    launch_report_hang(launch->report, stand.sentence, stand.waits, stand.ended);
    end_all(launch, 1);
}

static void read_pmi(struct launch *launch, int rank)
{
    int status = 0;
    if (launch_pmi_read(launch->pmi, rank, &status) != LAUNCH_PMI_ABORT) return;
    if (!launch->ending) {
        fprintf(stderr, "tutti %s: rank %d called MPI_Abort(%d); ending the others\n",
                name_of(launch), rank, status);
        launch_report_blame(launch->report, rank);
    }
    end_all(launch, status ? status : 1);
}

/* What a rank may say something on. */
enum { OUT, ERR, PMI, NCHANNELS };

/* Fill in each rank's channels; poll() skips the closed ones. True when output may still come. */
static bool list_channels(const struct launch *launch, struct pollfd *polls)
{
    bool open = false;
    for (int r = 0; r < launch->options->nranks; r++) {
        const struct launch_child *child = &launch->children[r];
        struct pollfd *three = &polls[(size_t)r * NCHANNELS];
        open = open || child->out.fd >= 0 || child->err.fd >= 0;
        three[OUT] = (struct pollfd){child->out.fd, POLLIN, 0};
        three[ERR] = (struct pollfd){child->err.fd, POLLIN, 0};
        three[PMI] = (struct pollfd){launch->pmi ? launch_pmi_fd(launch->pmi, r) : -1, POLLIN, 0};
    }
    return open;
}

/* One turn of waiting: output, signals, the end of the grace. Returns false when all is over.
 * polls   for each rank's channels, then for signals, what is typed, and what processes tell */
static bool turn(struct launch *launch, struct pollfd *polls)
{
    const int n = launch->options->nranks * NCHANNELS;
    if (!list_channels(launch, polls) && !launch->nalive) return false;
    polls[n] = (struct pollfd){.fd = launch->signal_fd, .events = POLLIN};
    polls[n + 1] = (struct pollfd){launch->typed[1] >= 0 ? STDIN_FILENO : -1, POLLIN, 0};
    polls[n + 2] = (struct pollfd){launch->env.exits_fd, POLLIN, 0};
    bool untold = launch_same_report(launch->same, name_of(launch), false, stderr);
    int ready = poll(polls, (nfds_t)n + 3, launch->ending || untold || launch->nheld ? 50 : -1);
    for (int r = 0; ready > 0 && r < launch->options->nranks; r++) {
        const struct pollfd *three = &polls[(size_t)r * NCHANNELS];
        if (three[OUT].revents) launch_output_read(&launch->children[r].out);
        if (three[ERR].revents) launch_output_read(&launch->children[r].err);
        if (three[PMI].revents) read_pmi(launch, r);
    }
    if (ready > 0 && polls[n + 1].revents) launch_forward_typed(launch);
    if (ready > 0 && polls[n + 2].revents) take_notes(launch);
    read_signals(launch);
    end_hung(launch);
    if (launch->ending && !launch->killed && since_msec(&launch->ending_since) > KILL_AFTER_MSEC) {
        launch->killed = true;
        signal_all(launch, SIGKILL);
    }
    /* A grandchild may keep a pipe open for ever: two seconds after the end nothing is read any
     * more.
     */
    return !(launch->ending && !launch->nalive &&
             since_msec(&launch->ending_since) > 2 * KILL_AFTER_MSEC);
}

/* Signals that end the job, and SIGCHLD, which our parent may have ignored. A signal that
 * is ignored (nohup, a shell's background) stays so. Returns the mask of before. */
static sigset_t take_signals(struct launch *launch)
{
    static const int ends[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction now;
    sigset_t wanted;
    sigset_t before;
    signal(SIGCHLD, SIG_DFL);
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++) {
        if (sigaction(ends[i], NULL, &now) || now.sa_handler != SIG_IGN)
            sigaddset(&wanted, ends[i]);
    }
    sigprocmask(SIG_BLOCK, &wanted, &before);
    launch->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    return before;
}

static bool prepare(struct launch *launch)
{
    const struct launch_options *options = launch->options;
    launch->children = calloc((size_t)options->nranks, sizeof(*launch->children));
    if (!launch->children || launch->signal_fd < 0) {
        fprintf(stderr, "tutti %s: %m\n", name_of(launch));
        return false;
    }
    for (int r = 0; r < options->nranks; r++) {
        launch->children[r].out.fd = -1;
        launch->children[r].err.fd = -1;
        launch->children[r].script_fd = -1;
    }
    /* who asks for NCCL's log gets each rank's */
    if (!getenv("NCCL_DEBUG")) launch->same = launch_same_create();
    if ((options->json || options->nhosts) && !(launch->report = launch_report_create(options))) {
        fprintf(stderr, "tutti %s: %m\n", name_of(launch));
        return false;
    }
    launch->inits = launch_inits_create(options->nranks, options->nhosts > 0);
    if (!launch_env_init(&launch->env, options) || !launch_open_typed(launch)) return false;
    if (!launch_guard_start(&launch->guard, options->nranks, launch->env.secret_file)) return false;
    if (options->nhosts) return true;
    launch->pmi = launch_pmi_create(options->nranks);
    if (!launch->pmi) fprintf(stderr, "tutti %s: %m\n", name_of(launch));
    return launch->pmi != NULL;
}

static void finish(struct launch *launch, sigset_t before)
{
    launch_same_report(launch->same, name_of(launch), true, stderr);
    launch_same_destroy(launch->same);
    launch_env_fini(&launch->env);
    launch_guard_end(&launch->guard);
    launch_pmi_destroy(launch->pmi);
    launch_inits_destroy(launch->inits);
    for (int r = 0; launch->children && r < launch->options->nranks; r++) {
        if (launch->children[r].script_fd >= 0) close(launch->children[r].script_fd);
    }
    free(launch->children);
    if (launch->signal_fd >= 0) close(launch->signal_fd);
    launch_close_typed(launch);
    setrlimit(RLIMIT_NOFILE, &launch->files);
    sigprocmask(SIG_SETMASK, &before, NULL);
}

/* Of a job without a rank. Returns `status`. */
static int report_nothing(const struct launch_options *options, int status)
{
    struct launch_report *report = options->json ? launch_report_create(options) : NULL;
    launch_report_write(report, status, stdout);
    launch_report_destroy(report);
    return status;
}

int launch_run(const struct launch_options *options)
{
    const int why = options->nhosts ? 0 : launch_find_program(options->program[0]);
    if (why) return report_nothing(options, launch_no_program(options, why));
    struct launch launch = {
        .options = options, .first_status = -1, .signal_fd = -1, .typed = {-1, -1}};
    struct pollfd *polls = calloc((size_t)options->nranks * NCHANNELS + 3, sizeof(*polls));
    sigset_t before = take_signals(&launch);
    getrlimit(RLIMIT_NOFILE, &launch.files);
    const struct rlimit most = {launch.files.rlim_max, launch.files.rlim_max};
    setrlimit(RLIMIT_NOFILE, &most); /* three descriptors per rank and some */
    bool ready = polls && prepare(&launch);
    bool redirects = !options->device || strcmp(options->device, "cuda") != 0;
    if (ready && redirects)
        linkage_check(options->program[0], launch.env.libraries, options->nranks, launch.pmi);
    for (int r = 0; ready && r < options->nranks && !launch.ending; r++) {
        if (!launch_start(&launch, r)) end_all(&launch, 2);
        if (r % LOOK_EVERY == LOOK_EVERY - 1) read_signals(&launch); /* the first may have failed */
    }
    if (launch.typed[0] >= 0) close(launch.typed[0]);
    while (ready && turn(&launch, polls)) {
    }
    finish(&launch, before);
    free(polls);
    const int status = !ready ? 2 : launch.first_status < 0 ? 0 : launch.first_status;
    if (options->json) launch_report_write(launch.report, status, stdout);
    launch_report_destroy(launch.report);
    return status;
}
