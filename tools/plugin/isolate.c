/* One case in one process: how it ended, with a limit of time. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LOOK_MSEC = 5 };

struct check_case_state *check_state_map(void)
{
    void *state = mmap(NULL, sizeof(struct check_case_state), PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (state != MAP_FAILED) return state;
    fprintf(stderr, "tutti plugin: mmap: %s\n", strerror(errno));
    return NULL;
}

/* True when the child has ended. */
static bool wait_for(pid_t child, long seconds, int *status)
{
    const struct timespec pause = {.tv_nsec = LOOK_MSEC * 1000000L};
    for (long looks = seconds * 1000 / LOOK_MSEC; looks > 0; looks--) {
        pid_t ended = waitpid(child, status, WNOHANG);
        if (ended == child) return true;
        if (ended < 0 && errno != EINTR) return false;
        nanosleep(&pause, NULL);
    }
    return false;
}

enum check_end check_isolated(int (*body)(struct check_case_state *state, void *arg), void *arg,
                              long seconds, struct check_case_state *state, int *ended_out)
{
    int status = 0;
    memset(state, 0, sizeof(*state));
    fflush(NULL);
    signal(SIGCHLD, SIG_DFL); /* if our parent ignored it, no child could be waited for */
    pid_t child = fork();
    if (child < 0) {
        snprintf(state->note, sizeof(state->note), "fork: %s", strerror(errno));
        return CHECK_NO;
    }
    if (child == 0) {
        dup2(STDERR_FILENO, STDOUT_FILENO);
        int no = body(state, arg);
        state->returned = true;
        fflush(NULL);
        _exit(no != 0);
    }
    if (!wait_for(child, seconds, &status)) {
        kill(child, SIGKILL);
        waitpid(child, &status, 0);
        return CHECK_HUNG;
    }
    *ended_out = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
    if (WIFSIGNALED(status)) return CHECK_CRASHED;
    if (!state->returned) return CHECK_EXITED;
    return status == 0 ? CHECK_OK : CHECK_NO;
}
