/* PR_SET_PDEATHSIG reaches the ranks only, not what a rank has started, and a file has no such
 * signal; hence a process in a session of its own that waits for the end of a pipe. */
#include "guard.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* In the guard. Does not return. Signals that end the launcher stay blocked here. */
static void watch_launcher(const struct launch_guard *guard, int fd, const char *secret_file)
{
    char byte;
    ssize_t n;
    setsid();
    prctl(PR_SET_NAME, "tutti-guard");
    if (fd > 0) close_range(0, (unsigned)fd - 1, 0);
    close_range((unsigned)fd + 1, ~0U, 0);
    do {
        n = read(fd, &byte, 1);
    } while (n < 0 && errno == EINTR);
    if (n == 1) _exit(0);
    for (size_t i = 0; i < guard->ngroups; i++) {
        pid_t group = atomic_load(&guard->groups[i]);
        if (group > 0) kill(-group, SIGKILL);
    }
    unlink(secret_file);
    _exit(0);
}

/* Until it has a session of its own, what ends the launcher's process group ends it as well. */
static void await_session(pid_t guard)
{
    const struct timespec interval = {0, 200000};
    while (getsid(guard) != guard && !waitpid(guard, NULL, WNOHANG))
        nanosleep(&interval, NULL);
}

bool launch_guard_start(struct launch_guard *guard, int nranks, const char *secret_file)
{
    int ends[2] = {-1, -1};
    size_t bytes = (size_t)nranks * sizeof(*guard->groups);
    *guard = (struct launch_guard){.alive_fd = -1};
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) goto failed;
    guard->groups = memory;
    guard->ngroups = (size_t)nranks;
    if (pipe2(ends, O_CLOEXEC)) goto failed;
    guard->alive_fd = ends[1];
    guard->pid = fork();
    if (guard->pid == 0) watch_launcher(guard, ends[0], secret_file);
    close(ends[0]);
    if (guard->pid > 0) {
        await_session(guard->pid);
        return true;
    }
    guard->pid = 0;
failed:
    fprintf(stderr, "tutti run: no process that cleans up after this one: %m\n");
    return false;
}

void launch_guard_end(struct launch_guard *guard)
{
    if (guard->pid > 0) {
        kill(guard->pid, SIGCONT); /* a user may have stopped it, taking it for a rank */
        if (write(guard->alive_fd, "", 1) == 1) waitpid(guard->pid, NULL, 0);
        close(guard->alive_fd);
    }
    if (guard->groups) munmap(guard->groups, guard->ngroups * sizeof(*guard->groups));
    *guard = (struct launch_guard){.alive_fd = -1};
}
