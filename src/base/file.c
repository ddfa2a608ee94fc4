/* Opening never waits: with O_NONBLOCK a FIFO opens at once, and is known by its kind afterwards.
 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *tt_file_open(const char *path, const char **why_out)
{
    struct stat status = {0};
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    const bool known = fd >= 0 && fstat(fd, &status) == 0;
    FILE *file = known && S_ISREG(status.st_mode) ? fdopen(fd, "r") : NULL;
    if (file) return file;
    *why_out = known && !S_ISREG(status.st_mode) ? "not a regular file" : strerror(errno);
    if (fd >= 0) close(fd);
    return NULL;
}

FILE *tt_file_create(const char *path)
{
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    const int fd = open(path, flags, 0666);
    if (fd < 0) return NULL;
    /* from now on a reader may be slow */
    (void)fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
    FILE *file = fdopen(fd, "w");
    if (!file) close(fd);
    return file;
}
