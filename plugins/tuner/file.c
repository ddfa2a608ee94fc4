/* A small text file as memory. What is no regular file of a sane size is refused with a reason. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char *read_all(int fd, size_t size, size_t *bytes_out)
{
    char *text = malloc(size + 1);
    size_t have = 0;
    while (text && have < size) {
        ssize_t n = read(fd, text + have, size - have);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        have += (size_t)n;
    }
    if (text) text[have] = '\0';
    *bytes_out = have;
    return text;
}

char *tuner_file_read(const char *path, size_t *bytes_out, const char **reason_out)
{
    struct stat st;
    char *text = NULL;
    *bytes_out = 0;
    *reason_out = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) {
        *reason_out = strerror(errno);
        return NULL;
    }
    if (fstat(fd, &st) || !S_ISREG(st.st_mode)) {
        *reason_out = "it is no regular file";
    } else if (st.st_size > TUNER_FILE_MOST) {
        *reason_out = "it is larger than 4 MiB";
    } else {
        text = read_all(fd, (size_t)st.st_size, bytes_out);
        if (!text) *reason_out = "out of memory";
    }
    close(fd);
    return text;
}
