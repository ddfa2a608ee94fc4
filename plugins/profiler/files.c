/* What all files of the plugin need: names, folders, and that no fault of theirs reaches the job.
 */
#include "trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t trace_wall_nsec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void trace_host(char *name, size_t bytes)
{
    char host[64] = "";
    gethostname(host, sizeof(host) - 1);
    trace_clean(name, bytes, host);
}

void trace_name(const char *pattern, char *name, size_t bytes)
{
    char host[64];
    size_t used = 0;
    trace_host(host, sizeof(host));
    host[strcspn(host, ".")] = '\0';
    for (; *pattern && used + sizeof(host) + 1 < bytes; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'h') {
            used += (size_t)snprintf(name + used, bytes - used, "%s", host);
            pattern++;
        } else if (pattern[0] == '%' && pattern[1] == 'p') {
            used += (size_t)snprintf(name + used, bytes - used, "%d", (int)getpid());
            pattern++;
        } else {
            name[used++] = *pattern;
        }
    }
    name[used] = '\0';
}

void trace_make_folder(char *path)
{
    char *slash = strrchr(path, '/');
    if (!slash || slash == path) return;
    *slash = '\0';
    mkdir(path, 0777); /* fails where it is there; a real fault shows when the file opens */
    *slash = '/';
}

int trace_create_file(const char *path)
{
    struct stat status;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0644);
    if (fd < 0) return -1;
    const bool regular = !fstat(fd, &status) && S_ISREG(status.st_mode);
    if (regular && flock(fd, LOCK_EX | LOCK_NB) && errno == EWOULDBLOCK) {
        close(fd);
        errno = EWOULDBLOCK;
        return -1;
    }
    if (regular) (void)!ftruncate(fd, 0);
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    return fd;
}

void trace_complain(const char *what, const char *path, int error)
{
    ncclDebugLogger_t log = trace_process.log;
    if (!log) return;
    log(NCCL_LOG_WARN, NCCL_PROFILE, __FILE__, __LINE__, "%s%s: %s", what, path,
        error == EWOULDBLOCK ? "another process writes it: its name needs %p" : strerror(error));
}

void trace_guard_begin(struct trace_guard *guard)
{
    sigemptyset(&guard->ours);
    sigaddset(&guard->ours, SIGXFSZ);
    sigaddset(&guard->ours, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &guard->ours, &guard->before);
    sigpending(&guard->pending);
}

void trace_guard_end(struct trace_guard *guard, bool failed)
{
    static const struct timespec at_once = {0};
    if (sigismember(&guard->pending, SIGXFSZ)) sigdelset(&guard->ours, SIGXFSZ);
    if (sigismember(&guard->pending, SIGPIPE)) sigdelset(&guard->ours, SIGPIPE);
    if (failed) sigtimedwait(&guard->ours, NULL, &at_once);
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}
