/* Starts one rank: as a process here, with its pipes and variables, or through a remote shell that
 * reads a script. */
#include "start.h"

#include "inits.h"
#include "pmi.h"
#include "report.h"
#include "same.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

struct launch_slot launch_slot_of(const struct launch_options *options, int rank)
{
    struct launch_slot slot = {rank, options->nranks, rank, options->nranks, -1};
    int here[LAUNCH_MAX_HOSTS] = {0}; /* ranks of each entry */
    int first = 0;
    for (int h = 0; h < options->nhosts && first < options->nranks; h++) {
        int left = options->nranks - first;
        bool all = h == options->nhosts - 1 || options->hosts[h].slots > left;
        here[h] = all ? left : options->hosts[h].slots;
        if (rank >= first && rank < first + here[h]) {
            slot.host = h;
            slot.local_rank = rank - first;
        }
        first += here[h];
    }
    if (slot.host < 0) return slot;
    slot.local_size = 0;
    for (int h = 0; h < options->nhosts; h++) {
        if (strcmp(options->hosts[h].name, options->hosts[slot.host].name) != 0) continue;
        slot.local_size += here[h];
        if (h < slot.host) slot.local_rank += here[h];
    }
    return slot;
}

const char *launch_remote_shell(void)
{
    const char *shell = getenv("TUTTI_RSH");
    return shell && *shell ? shell : "ssh";
}

int launch_no_program(const struct launch_options *options, int why)
{
    const char *name = options->program[0];
    const bool here = why == ENOENT && !strchr(name, '/') && access(name, F_OK) == 0;
    fprintf(stderr, "tutti %s: %s: %s%s%s%s\n", options->name ? options->name : "run", name,
            strerror(why), here ? " in PATH; did you mean ./" : "", here ? name : "",
            here ? "?" : "");
    return why == ENOENT ? 127 : 126;
}

/* An errno, or 0. */
static int no_executable(const char *path)
{
    struct stat status;
    if (access(path, X_OK)) return errno;
    return !stat(path, &status) && S_ISDIR(status.st_mode) ? EISDIR : 0;
}

int launch_find_program(const char *name)
{
    const char *folders = getenv("PATH");
    int why = ENOENT;
    if (strchr(name, '/')) return no_executable(name);
    if (!folders) return 0;
    for (bool more = true; more;) {
        char path[4096];
        const size_t len = strcspn(folders, ":"); /* 0: the working directory */
        snprintf(path, sizeof(path), "%.*s%s%s", (int)len, folders, len ? "/" : "", name);
        const int here = no_executable(path);
        if (!here) return 0;
        if (here == EISDIR || (here == EACCES && !access(path, F_OK))) why = here;
        more = folders[len] == ':';
        folders += len + more;
    }
    return why;
}

/* In the child: the program, or a remote shell that reads a script. Does not return. */
static void become(const struct launch *launch, const struct launch_slot *slot)
{
    if (slot->host < 0) {
        char buffer[LAUNCH_VARS_BYTES];
        char *texts[LAUNCH_MAX_VARS];
        int count = launch_env_vars(&launch->env, slot, buffer, sizeof(buffer), texts);
        for (int i = 0; i < count; i++) {
            putenv(texts[i]);
        }
        execvp(launch->options->program[0], launch->options->program);
        _exit(launch_no_program(launch->options, errno));
    }
    char words[1024];
    char *argv[32];
    int argc = 0;
    snprintf(words, sizeof(words), "%s", launch_remote_shell());
    char *save = NULL;
    for (char *word = strtok_r(words, " ", &save); word && argc < 28;
         word = strtok_r(NULL, " ", &save)) {
        argv[argc++] = word;
    }
    char sh[] = "sh";
    char host[sizeof(launch->options->hosts[0].name)];
    memcpy(host, launch->options->hosts[slot->host].name, sizeof(host));
    argv[argc++] = host;
    argv[argc++] = sh;
    argv[argc] = NULL;
    execvp(argv[0], argv);
    fprintf(stderr, "tutti run: %s (TUTTI_RSH): %m\n", argv[0]);
    _exit(127);
}

/* Write the script for a remote shell into a pipe that stays open as long as the rank shall live.
 * Returns the shell's standard input; -1: there is none (said on stderr). */
static int open_script(struct launch *launch, const struct launch_slot *slot)
{
    int ends[2] = {-1, -1};
    char *script = launch_env_script(&launch->env, slot, launch->options->program);
    size_t len = script ? strlen(script) : 0;
    if (len && !pipe2(ends, O_CLOEXEC | O_NONBLOCK)) {
        fcntl(ends[1], F_SETPIPE_SZ, (int)len);
        if (write(ends[1], script, len) != (ssize_t)len) {
            close(ends[0]);
            close(ends[1]);
            ends[0] = -1;
        }
    }
    free(script);
    if (ends[0] < 0) {
        fprintf(stderr, "tutti run: the script for rank %d (%zu bytes): %m\n", slot->rank, len);
        return -1;
    }
    fcntl(ends[0], F_SETFL, 0);
    launch->children[slot->rank].script_fd = ends[1];
    return ends[0];
}

/* Only rank 0 reads standard input. What is typed at a terminal comes through a socket, because
 * rank 0 is in a process group of its own and may not read from the terminal itself. */
static void set_input(const struct launch *launch, int rank, int script_fd)
{
    int fd = script_fd;
    if (fd < 0) fd = rank == 0 ? launch->typed[0] : open("/dev/null", O_RDONLY);
    if (fd >= 0) dup2(fd, STDIN_FILENO);
}

bool launch_open_typed(struct launch *launch)
{
    launch->typed[0] = launch->typed[1] = -1;
    if (!isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) != getpgrp()) return true;
    return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, launch->typed) == 0;
}

void launch_close_typed(struct launch *launch)
{
    if (launch->typed[1] >= 0) close(launch->typed[1]);
    launch->typed[1] = -1;
}

/* A socket and not a pipe: rank 0 may have ended, and that must be no signal to us. */
void launch_forward_typed(struct launch *launch)
{
    char text[4096];
    ssize_t n = read(STDIN_FILENO, text, sizeof(text));
    if (n < 0 && errno == EINTR) return;
    if (n <= 0 || send(launch->typed[1], text, (size_t)n, MSG_NOSIGNAL) != n)
        launch_close_typed(launch);
}

/* What a rank is connected to: its ends, -1 for those that it does not have. */
struct wires {
    int out, err, script, pmi;
};

/* In the child. Does not return. */
static void start_child(const struct launch *launch, const struct launch_slot *slot,
                        const struct wires *wires, pid_t parent)
{
    char text[64];
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setrlimit(RLIMIT_NOFILE, &launch->files);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(127);
    if (!launch->options->direct_rank0 || slot->rank > 0) dup2(wires->out, STDOUT_FILENO);
    dup2(wires->err, STDERR_FILENO);
    set_input(launch, slot->rank, wires->script);
    if (wires->pmi >= 0) {
        fcntl(wires->pmi, F_SETFD, 0);
        snprintf(text, sizeof(text), "%d", wires->pmi);
        setenv("PMI_FD", text, 1);
        snprintf(text, sizeof(text), "%d", slot->rank);
        setenv("PMI_RANK", text, 1);
        snprintf(text, sizeof(text), "%d", slot->nranks);
        setenv("PMI_SIZE", text, 1);
    }
    become(launch, slot);
}

bool launch_start(struct launch *launch, int rank)
{
    struct launch_child *child = &launch->children[rank];
    struct launch_slot slot = launch_slot_of(launch->options, rank);
    int out[2] = {-1, -1};
    int err[2] = {-1, -1};
    if (pipe2(out, O_CLOEXEC) || pipe2(err, O_CLOEXEC)) {
        fprintf(stderr, "tutti run: pipe: %m (ulimit -n)\n");
        return false;
    }
    const bool prefix = launch->options->prefix;
    const bool direct = launch->options->direct_rank0 && rank == 0;
    FILE *to = launch->options->json ? stderr : stdout;
    child->out = (struct launch_output){
        .fd = out[0], .rank = rank, .to = to, .prefix = prefix, .report = launch->report};
    child->err = (struct launch_output){.fd = err[0],
                                        .rank = rank,
                                        .to = stderr,
                                        .prefix = prefix && !direct,
                                        .at_once = direct,
                                        .is_log = true,
                                        .same = launch->same,
                                        .report = launch->report};
    struct wires wires = {.out = out[1], .err = err[1], .script = -1, .pmi = -1};
    bool ready = true;
    if (slot.host >= 0) {
        child->err.awaited = LAUNCH_STARTED;
        child->err.inits = launch->inits;
        child->err.reported = &launch->reported[slot.host];
        wires.script = open_script(launch, &slot);
        ready = wires.script >= 0;
    } else if (launch->pmi) {
        wires.pmi = launch_pmi_connect(launch->pmi, rank);
        ready = wires.pmi >= 0;
        if (!ready) fprintf(stderr, "tutti run: socketpair: %m (ulimit -n)\n");
    }
    pid_t parent = getpid();
    pid_t pid = ready ? fork() : -1;
    if (pid == 0) start_child(launch, &slot, &wires, parent);
    if (ready && pid < 0) fprintf(stderr, "tutti run: fork: %m\n");
    close(out[1]);
    close(err[1]);
    if (wires.script >= 0) close(wires.script);
    if (wires.pmi >= 0) close(wires.pmi);
    if (pid < 0) return false;
    setpgid(pid, pid); /* both sides do it, so that no signal can come before */
    child->pid = pid;
    launch->guard.groups[rank] = pid;
    launch->nalive++;
    launch_report_start(launch->report, rank, slot.host, pid);
    return true;
}
