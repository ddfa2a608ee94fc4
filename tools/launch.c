/* Starts all ranks, watches them, ends all within two seconds when one fails or a signal comes.
 * Only processes started here are ever signalled (each is leader of its own process group). */
#include "launch.h"

#include "launch_env.h"
#include "launch_output.h"
#include "linkage.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { KILL_AFTER_MSEC = 1000 };

struct child {
    pid_t pid; /* 0: ended */
    int status;
    struct launch_output out, err;
};

struct launch {
    const struct launch_options *options;
    struct launch_env env;
    struct child *children;
    int nalive;
    int first_status; /* exit status to report; -1: none failed yet */
    bool ending;
    struct timespec ending_since;
    bool killed;
    int signal_fd;
    int typed[2]; /* way of what is typed to rank 0; -1: it reads our standard input itself */
};

static long since_msec(const struct timespec *then)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (now.tv_sec - then->tv_sec) * 1000 + (now.tv_nsec - then->tv_nsec) / 1000000;
}

static struct launch_place place_of(const struct launch_options *options, int rank)
{
    struct launch_place place = {rank, options->nranks, rank, options->nranks, -1};
    int first = 0;
    for (int h = 0; h < options->nhosts; h++) {
        int last = first + options->hosts[h].slots;
        if (rank < last || h == options->nhosts - 1) {
            place.host = h;
            place.local_rank = rank - first;
            place.local_size = (last < options->nranks ? last : options->nranks) - first;
            break;
        }
        first = last;
    }
    return place;
}

/* In the child: the program, or a remote shell that reads a script. Does not return. */
static void become(const struct launch *launch, const struct launch_place *place, int script_fd)
{
    if (place->host < 0) {
        char buffer[12288];
        char *texts[LAUNCH_MAX_VARS];
        int count = launch_env_vars(&launch->env, place, buffer, sizeof(buffer), texts);
        for (int i = 0; i < count; i++) {
            putenv(texts[i]);
        }
        execvp(launch->options->program[0], launch->options->program);
        fprintf(stderr, "tutti run: %s: %m\n", launch->options->program[0]);
        _exit(errno == ENOENT ? 127 : 126);
    }
    const char *shell = getenv("TUTTI_RSH");
    char words[1024];
    char *argv[32];
    int argc = 0;
    snprintf(words, sizeof(words), "%s", shell && *shell ? shell : "ssh");
    char *save = NULL;
    for (char *word = strtok_r(words, " ", &save); word && argc < 28;
         word = strtok_r(NULL, " ", &save)) {
        argv[argc++] = word;
    }
    char sh[] = "sh";
    char host[sizeof(launch->options->hosts[0].name)];
    memcpy(host, launch->options->hosts[place->host].name, sizeof(host));
    argv[argc++] = host;
    argv[argc++] = sh;
    argv[argc] = NULL;
    dup2(script_fd, STDIN_FILENO);
    execvp(argv[0], argv);
    fprintf(stderr, "tutti run: %s (TUTTI_RSH): %m\n", argv[0]);
    _exit(127);
}

/* Script for a remote shell in an unnamed file, at its start; -1 for a local rank. */
static int script_for(const struct launch *launch, const struct launch_place *place)
{
    if (place->host < 0) return -1;
    char name[] = "/tmp/tutti-script-XXXXXX";
    int fd = mkostemp(name, O_CLOEXEC);
    if (fd < 0) return -1;
    unlink(name);
    char *script = launch_env_script(&launch->env, place, launch->options->program);
    if (script) {
        size_t len = strlen(script);
        if (write(fd, script, len) != (ssize_t)len) fprintf(stderr, "tutti run: script: %m\n");
        lseek(fd, 0, SEEK_SET);
    }
    free(script);
    return fd;
}

/* Only rank 0 reads standard input. What is typed at a terminal comes through a socket, because
 * rank 0 is in a process group of its own and may not read from the terminal itself. */
static void set_input(const struct launch *launch, int rank)
{
    int fd = rank == 0 ? launch->typed[0] : open("/dev/null", O_RDONLY);
    if (fd >= 0) dup2(fd, STDIN_FILENO);
}

static bool open_typed(struct launch *launch)
{
    launch->typed[0] = launch->typed[1] = -1;
    if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp()) return true;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, launch->typed) == 0;
}

static void close_typed(struct launch *launch)
{
    if (launch->typed[1] >= 0) close(launch->typed[1]);
    launch->typed[1] = -1;
}

/* A socket and not a pipe: rank 0 may have ended, and that must be no signal to us. */
static void forward_typed(struct launch *launch)
{
    char text[4096];
    ssize_t n = read(STDIN_FILENO, text, sizeof(text));
    if (n < 0 && errno == EINTR) return;
    if (n <= 0 || send(launch->typed[1], text, (size_t)n, MSG_NOSIGNAL) != n) close_typed(launch);
}

static bool start(struct launch *launch, int rank)
{
    struct child *child = &launch->children[rank];
    struct launch_place place = place_of(launch->options, rank);
    int out[2] = {-1, -1};
    int err[2] = {-1, -1};
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
        fprintf(stderr, "tutti run: pipe: %m\n");
        return false;
    }
    int script = script_for(launch, &place);
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        setpgid(0, 0);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent) _exit(127);
        if (!launch->options->direct_rank0 || rank > 0) {
            dup2(out[1], STDOUT_FILENO);
            dup2(err[1], STDERR_FILENO);
        }
        set_input(launch, rank);
        become(launch, &place, script);
    }
    close(out[1]);
    close(err[1]);
    if (script >= 0) close(script);
    bool prefix = launch->options->prefix;
    child->out = (struct launch_output){.fd = out[0], .rank = rank, .to = stdout, .prefix = prefix};
    child->err = (struct launch_output){.fd = err[0], .rank = rank, .to = stderr, .prefix = prefix};
    if (pid < 0) {
        fprintf(stderr, "tutti run: fork: %m\n");
        return false;
    }
    setpgid(pid, pid); /* both sides do it, so that no signal can come before */
    child->pid = pid;
    launch->nalive++;
    return true;
}

static void signal_all(const struct launch *launch, int signal)
{
    for (int r = 0; r < launch->options->nranks; r++) {
        if (launch->children[r].pid > 0) kill(-launch->children[r].pid, signal);
    }
}

static void end_all(struct launch *launch, int status)
{
    if (launch->first_status < 0) launch->first_status = status;
    if (launch->ending) return;
    launch->ending = true;
    clock_gettime(CLOCK_MONOTONIC, &launch->ending_since);
    signal_all(launch, SIGTERM);
}

static void reap(struct launch *launch)
{
    for (int r = 0; r < launch->options->nranks; r++) {
        struct child *child = &launch->children[r];
        if (child->pid <= 0 || waitpid(child->pid, &child->status, WNOHANG) != child->pid) continue;
        kill(-child->pid, SIGKILL); /* what it left behind in its group */
        child->pid = 0;
        launch->nalive--;
        bool signalled = WIFSIGNALED(child->status);
        int status = signalled ? 128 + WTERMSIG(child->status) : WEXITSTATUS(child->status);
        if (!status) continue;
        if (!launch->ending) {
            const char *name = launch->options->name ? launch->options->name : "run";
            fprintf(stderr, "tutti %s: rank %d %s %d; ending the others\n", name, r,
                    signalled ? "was ended by signal" : "exited with",
                    signalled ? WTERMSIG(child->status) : status);
        }
        end_all(launch, status);
    }
}

static void read_signals(struct launch *launch)
{
    struct signalfd_siginfo seen;
    while (read(launch->signal_fd, &seen, sizeof(seen)) == (ssize_t)sizeof(seen)) {
        if (seen.ssi_signo == SIGCHLD) continue;
        if (!launch->ending) {
            /* a terminal has just shown ^C at the beginning of this line */
            fprintf(stderr, "%stutti %s: %s; ending %d rank(s)\n",
                    isatty(STDERR_FILENO) ? "\n" : "",
                    launch->options->name ? launch->options->name : "run",
                    strsignal((int)seen.ssi_signo), launch->nalive);
        }
        end_all(launch, 128 + (int)seen.ssi_signo);
    }
    reap(launch);
}

/* One turn of waiting: output, signals, the end of the grace. Returns false when all is over. */
static bool turn(struct launch *launch, struct pollfd *polls, struct launch_output **outputs)
{
    int n = 0;
    for (int r = 0; r < launch->options->nranks; r++) {
        struct launch_output *two[] = {&launch->children[r].out, &launch->children[r].err};
        for (int k = 0; k < 2; k++) {
            if (two[k]->fd < 0) continue;
            outputs[n] = two[k];
            polls[n++] = (struct pollfd){.fd = two[k]->fd, .events = POLLIN};
        }
    }
    if (!n && !launch->nalive) return false;
    polls[n] = (struct pollfd){.fd = launch->signal_fd, .events = POLLIN};
    bool typing = launch->typed[1] >= 0;
    polls[n + 1] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    int ready = poll(polls, (nfds_t)n + 1 + typing, launch->ending ? 50 : -1);
    for (int i = 0; ready > 0 && i < n; i++) {
        if (polls[i].revents) launch_output_read(outputs[i]);
    }
    if (ready > 0 && typing && polls[n + 1].revents) forward_typed(launch);
    read_signals(launch);
    if (launch->ending && !launch->killed && since_msec(&launch->ending_since) > KILL_AFTER_MSEC) {
        launch->killed = true;
        signal_all(launch, SIGKILL);
    }
    /* A grandchild may keep a pipe open for ever: two seconds after the end nobody is listened to.
     */
    return !(launch->ending && !launch->nalive &&
             since_msec(&launch->ending_since) > 2 * KILL_AFTER_MSEC);
}

static void watch(struct launch *launch)
{
    int n = launch->options->nranks;
    struct pollfd *polls = calloc((size_t)n * 2 + 2, sizeof(*polls));
    struct launch_output **outputs = calloc((size_t)n * 2, sizeof(*outputs));
    if (polls && outputs) {
        while (turn(launch, polls, outputs)) {
        }
    } else {
        fprintf(stderr, "tutti run: out of memory\n");
        end_all(launch, 2);
        signal_all(launch, SIGKILL);
    }
    free(polls);
    free(outputs);
}

int launch_run(const struct launch_options *options)
{
    struct launch launch = {
        .options = options, .first_status = -1, .signal_fd = -1, .typed = {-1, -1}};
    sigset_t wanted;
    sigset_t before;
    sigemptyset(&wanted);
    sigaddset(&wanted, SIGCHLD);
    sigaddset(&wanted, SIGINT);
    sigaddset(&wanted, SIGTERM);
    sigaddset(&wanted, SIGHUP);
    sigprocmask(SIG_BLOCK, &wanted, &before);
    launch.signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    launch.children = calloc((size_t)options->nranks, sizeof(*launch.children));
    bool ready = launch.children && launch.signal_fd >= 0 &&
                 launch_env_init(&launch.env, options) && open_typed(&launch);
    bool redirects = !options->device || strcmp(options->device, "cuda") != 0;
    if (ready && redirects)
        linkage_check(options->program[0], launch.env.libraries, options->nranks);
    for (int r = 0; ready && r < options->nranks; r++) {
        launch.children[r].out.fd = -1;
        launch.children[r].err.fd = -1;
    }
    for (int r = 0; ready && r < options->nranks; r++) {
        if (!start(&launch, r)) {
            end_all(&launch, 2);
            break;
        }
    }
    if (launch.typed[0] >= 0) close(launch.typed[0]);
    if (ready) watch(&launch);
    launch_env_fini(&launch.env);
    free(launch.children);
    if (launch.signal_fd >= 0) close(launch.signal_fd);
    close_typed(&launch);
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (!ready) return 2;
    return launch.first_status < 0 ? 0 : launch.first_status;
}
