/* Sockets of the doctor. Nothing is kept in files: a process that can be asked has an abstract
 * socket named after its user and pid, and the kernel says whose it is. */
#include "doctor/ask.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "tutti-watch-"
#define BUSY "no answer in time: its process is stopped, or too busy"
enum { CHUNK_BYTES = 65536, MOST_BYTES = 256 << 20 };

static double now_sec(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

int doctor_connect_pid(int pid, double timeout_sec, const char **why)
{
    const long usec = (long)(timeout_sec * 1e6);
    const struct timeval limit = {.tv_sec = usec / 1000000, .tv_usec = usec % 1000000 | 1};
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    struct ucred who;
    socklen_t who_bytes = sizeof(who);
    int len =
        snprintf(addr.sun_path + 1, sizeof(addr.sun_path) - 1, PREFIX "%u-%d", geteuid(), pid);
    socklen_t bytes = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    *why = "it has no communicator, is another user's, or runs without Tutti";
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* connect waits no longer */
    int error = connect(fd, (struct sockaddr *)&addr, bytes) ? errno : 0;
    bool ours = !error && !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &who_bytes) &&
                (who.uid == geteuid() || who.uid == 0);
    if (ours) return fd;
    if (error == EAGAIN) *why = BUSY;
    close(fd);
    errno = error;
    return -1;
}

static int connect_one(const struct addrinfo *at, double timeout_sec)
{
    int error = 0;
    socklen_t bytes = sizeof(error);
    int fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return -1;
    struct pollfd wait = {.fd = fd, .events = POLLOUT};
    if (connect(fd, at->ai_addr, at->ai_addrlen) && errno != EINPROGRESS) goto failed;
    if (poll(&wait, 1, (int)(timeout_sec * 1000)) != 1) goto failed;
    if (!getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &bytes) && !error) return fd;
failed:
    close(fd);
    return -1;
}

int doctor_connect_address(const char *address, double timeout_sec, const char **why)
{
    char host[256], port[16] = "28028";
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    const char *colon = strrchr(address, ':');
    bool many = colon && strchr(address, ':') != colon && *address != '['; /* IPv6 without a port */
    size_t len = colon && !many ? (size_t)(colon - address) : strlen(address);
    bool brackets = len > 1 && address[0] == '[' && address[len - 1] == ']';
    snprintf(host, sizeof(host), "%.*s", (int)(brackets ? len - 2 : len), address + brackets);
    if (colon && !many) snprintf(port, sizeof(port), "%s", colon + 1);
    int error = getaddrinfo(host, port, &hints, &list), fd = -1;
    *why = error ? gai_strerror(error) : "nobody listens there";
    for (const struct addrinfo *at = error ? NULL : list; at && fd < 0; at = at->ai_next)
        fd = connect_one(at, timeout_sec);
    if (!error) freeaddrinfo(list);
    return fd;
}

/* Bytes that come within the time, 0 when the other side has closed; -1 with *why. */
static ssize_t read_some(int fd, char *text, size_t room, double until_sec, const char **why)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    for (;;) {
        double left_sec = until_sec - now_sec();
        *why = BUSY;
        if (left_sec <= 0 || poll(&wait, 1, (int)(left_sec * 1000) + 1) < 1) return -1;
        ssize_t bytes = recv(fd, text, room, 0);
        *why = "it closed the connection without an answer";
        if (bytes >= 0 || (errno != EAGAIN && errno != EINTR)) return bytes;
    }
}

/* What came until the other side closed; NULL when it did not within the time. */
static char *read_all(int fd, double until_sec, const char **why)
{
    char *text = NULL;
    ssize_t bytes = 1;
    for (size_t got = 0; got < MOST_BYTES && bytes > 0; got += (size_t)bytes) {
        char *grown = realloc(text, got + CHUNK_BYTES + 1);
        if (!grown) break;
        text = grown;
        bytes = read_some(fd, text + got, CHUNK_BYTES, until_sec, why);
        if (bytes < 0 || (bytes == 0 && got == 0)) break;
        text[got + (size_t)bytes] = 0;
        if (bytes == 0) return text;
    }
    free(text);
    return NULL;
}

char *doctor_ask(int fd, const char *lines, double timeout_sec, const char **why)
{
    char *text = NULL;
    *why = "it closed the connection";
    if (send(fd, lines, strlen(lines), MSG_NOSIGNAL) == (ssize_t)strlen(lines) &&
        !shutdown(fd, SHUT_WR)) /* nothing more is asked: it closes when all is answered */
        text = read_all(fd, now_sec() + timeout_sec, why);
    close(fd);
    return text;
}

/* The letter of its state; 0: there is no such process. */
static char state_of(int pid)
{
    char path[32], text[256];
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    FILE *file = fopen(path, "re");
    size_t bytes = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
    if (file) fclose(file);
    text[bytes] = 0;
    const char *end = strrchr(text, ')'); /* of the name, which may hold anything */
    if (!end || end[1] != ' ') return 0;
    return end[2];
}

bool doctor_is_stopped(int pid)
{
    return state_of(pid) == 'T';
}

const char *doctor_why_silent(int pid, const char *otherwise)
{
    char path[32];
    struct stat about;
    const char state = state_of(pid);
    snprintf(path, sizeof(path), "/proc/%d", pid);
    if (state == 'T') return "it is stopped by a signal; `kill -CONT` lets it go on";
    if (state == 't') return "it is stopped by a debugger";
    if (state == 0 || state == 'Z') return "there is no such process, or it has ended";
    if (stat(path, &about) == 0 && geteuid() && about.st_uid != geteuid())
        return "it is another user's";
    return otherwise;
}

bool doctor_program_of(int pid, char text[DOCTOR_PROGRAM_BYTES])
{
    char path[32];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
    FILE *file = fopen(path, "re");
    const size_t bytes = file ? fread(text, 1, DOCTOR_PROGRAM_BYTES - 1, file) : 0;
    const bool cut = file && bytes == DOCTOR_PROGRAM_BYTES - 1 && fgetc(file) != EOF;
    if (file) fclose(file);
    text[bytes] = 0;
    for (size_t i = 0; i + 1 < bytes; i++) { /* words end with 0 */
        if (!text[i]) text[i] = ' ';
        if (text[i] < ' ' || text[i] > '~') text[i] = '?';
    }
    if (cut) memcpy(text + bytes - 3, "...", 3);
    return bytes > 0;
}

static int ascending(const void *a, const void *b)
{
    const int *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

int doctor_list(int *pids, int max)
{
    char line[512], prefix[64];
    int count = 0;
    FILE *table = fopen("/proc/net/unix", "re");
    if (!table) return 0;
    snprintf(prefix, sizeof(prefix), "@" PREFIX "%u-", geteuid());
    while (count < max && fgets(line, sizeof(line), table)) {
        const char *name = strstr(line, prefix);
        int pid = name ? (int)strtol(name + strlen(prefix), NULL, 10) : 0;
        bool known = pid <= 0;
        for (int i = 0; i < count && !known; i++)
            known = pids[i] == pid; /* a connection has a line of its own */
        if (!known) pids[count++] = pid;
    }
    fclose(table);
    qsort(pids, (size_t)count, sizeof(*pids), ascending);
    return count;
}
