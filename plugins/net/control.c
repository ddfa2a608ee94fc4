/* The TCP connection beside each connection: over it both ends exchange their addresses in
 * libfabric, later what was received, and at last that they end. The kernel ends it with the
 * process, whatever the provider notices. No call waits. */
#include "control.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BACKLOG = 64, ALIVE_SEC = 10, ALIVE_EVERY_SEC = 5, ALIVE_TRIES = 4 };

static int family_of(const struct ofi_address *address)
{
    return address->addr.sin6_family;
}

/* A host that vanishes is noticed after half a minute. */
static void prepare(int fd)
{
    const int on = 1, after = ALIVE_SEC, every = ALIVE_EVERY_SEC, tries = ALIVE_TRIES;
    const int most_msec = (ALIVE_SEC + ALIVE_EVERY_SEC * ALIVE_TRIES) * 1000;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &after, sizeof(after));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &every, sizeof(every));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &tries, sizeof(tries));
    (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_msec, sizeof(most_msec));
}

static int close_with_errno(int fd)
{
    int reason = errno;
    close(fd);
    errno = reason;
    return -1;
}

int ofi_control_listen(struct ofi_address *address)
{
    int fd = socket(family_of(address), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr *addr = (void *)&address->addr;
    if (fd < 0) return -1;
    address->addr.sin6_port = 0; /* where a sockaddr_in has it */
    if (bind(fd, addr, address->bytes) || listen(fd, BACKLOG) ||
        getsockname(fd, addr, &address->bytes))
        return close_with_errno(fd);
    return fd;
}

int ofi_control_connect(const struct ofi_address *address)
{
    int fd = socket(family_of(address), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    prepare(fd);
    if (connect(fd, (const void *)&address->addr, address->bytes) && errno != EINPROGRESS)
        return close_with_errno(fd);
    return fd;
}

int ofi_control_accept(int listener)
{
    int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) prepare(fd);
    return fd;
}

void ofi_control_words(int fd, char words[OFI_PEER_BYTES])
{
    struct ofi_address address = {.bytes = sizeof(address.addr)};
    memset(&address.addr, 0, sizeof(address.addr));
    (void)getpeername(fd, (void *)&address.addr, &address.bytes);
    ofi_address_words(&address, words);
}

enum ofi_step ofi_control_move(int fd, bool sending, void *message, size_t bytes, size_t *moved)
{
    while (*moved < bytes) {
        char *at = (char *)message + *moved;
        ssize_t n = sending ? send(fd, at, bytes - *moved, MSG_DONTWAIT | MSG_NOSIGNAL)
                            : recv(fd, at, bytes - *moved, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        /* ENOTCONN: still connecting */
        if (n < 0 && (errno == EAGAIN || (sending && errno == ENOTCONN))) return OFI_STEP_AGAIN;
        if (n == 0) errno = 0; /* the other end has closed it */
        if (n <= 0) return OFI_STEP_LOST;
        *moved += (size_t)n;
    }
    return OFI_STEP_DONE;
}

static bool flush(struct ofi_control *control)
{
    size_t moved = sizeof(control->out) - control->out_bytes;
    if (control->out_bytes)
        (void)ofi_control_move(control->fd, true, control->out, sizeof(control->out), &moved);
    control->out_bytes = sizeof(control->out) - moved;
    return control->out_bytes == 0;
}

bool ofi_control_write(struct ofi_control *control, const struct ofi_record *record)
{
    if (control->out_bytes && !flush(control)) return false;
    memcpy(control->out, record, sizeof(*record));
    control->out_bytes = sizeof(control->out);
    (void)flush(control); /* the rest goes with the next one */
    return true;
}

enum ofi_step ofi_control_read(struct ofi_control *control, struct ofi_record *record)
{
    enum ofi_step step =
        ofi_control_move(control->fd, false, control->in, sizeof(control->in), &control->in_bytes);
    if (step != OFI_STEP_DONE) return step;
    memcpy(record, control->in, sizeof(*record));
    control->in_bytes = 0;
    return step;
}

void ofi_control_close(struct ofi_control *control)
{
    if (control->fd >= 0) close(control->fd);
    control->fd = -1;
}
