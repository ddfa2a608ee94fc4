/* One datagram to an abstract name, to which the kernel adds who sent it, or one line. */
#include "base/launcher.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

void tt_launcher_name(char name[TT_LAUNCHER_BYTES])
{
    const char *value = getenv("TUTTI_JOB_EXITS");
    const bool fits = value && strlen(value) < TT_LAUNCHER_BYTES;
    snprintf(name, TT_LAUNCHER_BYTES, "%s", fits ? value : "");
}

/* Of a pipe without a reader nothing is opened. */
static void write_line(const char *path, const struct tt_launcher_note *note)
{
    char line[128];
    const int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    const int len = snprintf(
        line, sizeof(line), "%" PRId32 " %" PRId32 " %" PRId32 " %" PRId32 " %" PRIx64 " %d\n",
        note->kind, note->status, note->rank, note->nranks, note->comm_id, (int)getpid());
    (void)!write(fd, line, (size_t)len);
    close(fd);
}

bool tt_launcher_read(const char *line, struct tt_launcher_note *note_out, pid_t *pid_out)
{
    int pid = 0;
    /* NOLINTNEXTLINE(cert-err34-c): numbers of our own */
    const int n = sscanf(line, "%" SCNd32 " %" SCNd32 " %" SCNd32 " %" SCNd32 " %" SCNx64 " %d",
                         &note_out->kind, &note_out->status, &note_out->rank, &note_out->nranks,
                         &note_out->comm_id, &pid);
    *pid_out = pid;
    return n == 6;
}

void tt_launcher_report(const char *name, const struct tt_launcher_note *note)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    const size_t len = strlen(name);
    if (*name == '/') {
        write_line(name, note);
        return;
    }
    if (!len || len >= sizeof(to.sun_path)) return;
    memcpy(to.sun_path + 1, name, len); /* an abstract name */
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return;
    (void)sendto(fd, note, sizeof(*note), MSG_NOSIGNAL, (const struct sockaddr *)&to,
                 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len));
    close(fd);
}
