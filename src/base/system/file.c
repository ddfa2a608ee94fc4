/* Opening never waits: with O_NONBLOCK a FIFO opens at once, and is known by its kind afterwards.
 */
#include "base/system/file.h"

#include "base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
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

char *tt_file_read(const char *path, size_t most_bytes, size_t *bytes_out, const char **why_out)
{
    FILE *file = tt_file_open(path, why_out);
    if (!file) return NULL;
    struct stat status = {0};
    char *text = NULL;
    *why_out = "it cannot be read whole";
    if (fstat(fileno(file), &status)) goto out;
    const size_t bytes = (size_t)status.st_size;
    if (bytes > most_bytes) {
        *why_out = "it is too large";
        goto out;
    }
    text = tt_calloc(1, bytes + 1);
    if (!text) {
        *why_out = "out of memory";
    } else if (fread(text, 1, bytes, file) != bytes) {
        free(text);
        text = NULL;
    } else {
        *bytes_out = bytes;
    }
out:
    (void)fclose(file);
    return text;
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
