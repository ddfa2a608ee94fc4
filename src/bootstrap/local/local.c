/* Descriptors between processes of one machine: each process opens the memfds of others by way of
 * /proc where the kernel allows it, and serves its own on an abstract socket to whoever proves to
 * have its record.
 * A mapping counts only when the probe word is read through it; anything else means "not
 * reachable", which is no error: the network will do. */
#include "base/clock.h"
#include "base/error.h"
#include "base/log.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/wire/acceptor.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/frame.h"
#include "bootstrap/wire/listener.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"
#include "device/device.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define RANGE_FRAME_BYTES (TT_FRAME_HEADER_BYTES + 8 + TT_FRAME_MAC_BYTES)
#define PROBE_BYTES 4096
#define ASK_SEC 2

struct mapping {
    struct mapping *next;
    uint64_t process_id;
    char *base;
    size_t bytes;
    int users;
};

struct local_state {
    pthread_mutex_t lock; /* taken before the service's */
    int users;
    struct tt_local_name name; /* as served; process_id 0 before the first time */
    void *probe;
    struct tt_listener *listener;
    struct tt_acceptor acceptor;
    struct mapping *mappings;
};

/* The process has one range and one place where it is served. */
static struct local_state local = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void fork_child(void)
{
    pthread_mutex_init(&local.lock, NULL);
    local.users = 0;
    local.probe = NULL;
    local.listener = NULL;
    local.mappings = NULL; /* not inherited: MADV_DONTFORK */
    memset(&local.name, 0, sizeof(local.name));
}

/* ---- serving ---- */

static bool local_admits(struct tt_acceptor *acceptor, const struct tt_hello *hello)
{
    (void)acceptor;
    return hello->own_rank == 1;
}

static void local_frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes, size_t len)
{
    (void)conn;
    (void)type;
    (void)bytes;
    (void)len;
}

static void local_closed(struct tt_conn *conn, const char *why)
{
    (void)conn;
    (void)why;
}

static void local_never(struct tt_conn *conn)
{
    (void)conn;
}

static const struct tt_conn_ops local_ops = {
    .opened = local_never,
    .frame = local_frame,
    .closed = local_closed,
};

static void local_opened(struct tt_acceptor *acceptor, struct tt_conn *conn)
{
    const struct tt_range *range = tuttiHostRange();
    unsigned char bytes[8];
    struct tt_wire wire;
    (void)acceptor;
    tt_wire_init(&wire, bytes, sizeof(bytes));
    tt_wire_put64(&wire, range->bytes);
    conn->ops = &local_ops;
    conn->limit_bytes = 0;
    conn->send_fd = range->memfd;
    tt_conn_send(conn, TT_FRAME_RANGE, bytes, sizeof(bytes));
    tt_conn_finish(conn);
}

static socklen_t local_address(const char *name, struct sockaddr_un *addr)
{
    memset(addr, 0, sizeof(*addr));
    addr->sun_family = AF_UNIX;
    size_t len = strnlen(name, sizeof(((struct tt_local_name *)0)->name));
    memcpy(addr->sun_path + 1, name, len); /* leading zero: abstract, no file */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

/* ncclInProgress: this process may have no local sockets; the network will do. */
static ncclResult_t local_listen(const char *name)
{
    struct sockaddr_un addr;
    socklen_t len = local_address(name, &addr);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && (errno == EACCES || errno == EPERM || errno == EAFNOSUPPORT)) {
        tt_info(TT_LOG_INIT | TT_LOG_P2P,
                "local socket: %m; no memory is shared with other processes");
        return ncclInProgress;
    }
    if (fd < 0) return tt_fail(ncclSystemError, "local socket: %m");
    if (bind(fd, (struct sockaddr *)&addr, len) || listen(fd, 1024)) {
        ncclResult_t rc = tt_fail(ncclSystemError, "local socket @%s: %m", name);
        close(fd);
        return rc;
    }
    ncclResult_t rc = tt_listener_open(fd, true, &local.listener);
    if (rc) close(fd);
    return rc;
}

static void local_key(const struct tt_local_name *name, struct tt_key *key_out)
{
    unsigned char secret[TT_SECRET_BYTES];
    crypto_generichash(secret, sizeof(secret), name->key, sizeof(name->key),
                       (const unsigned char *)"tutti local range", 17);
    tt_key_derive(secret, TT_KEY_LOCAL, key_out);
    sodium_memzero(secret, sizeof(secret));
}

/* Choose name, key and probe word once per process. */
static ncclResult_t local_name(const struct tt_range *range)
{
    if (local.name.process_id) return ncclSuccess;
    void *probe = NULL;
    if (tuttiHostControlAlloc(PROBE_BYTES, &probe)) {
        return tt_fail(ncclSystemError, "local range: no control memory for the probe word");
    }
    struct tt_local_name *name = &local.name;
    uint64_t word[2];
    randombytes_buf(word, sizeof(word));
    randombytes_buf(name->key, sizeof(name->key));
    randombytes_buf(&name->probe, sizeof(name->probe));
    snprintf(name->name, sizeof(name->name), "tutti-%016llx", (unsigned long long)word[0]);
    memcpy(probe, &name->probe, sizeof(name->probe));
    name->probe_offset = (uint64_t)((char *)probe - range->base);
    name->range_bytes = range->bytes;
    struct stat stat;
    if (!fstat(range->memfd, &stat)) {
        name->fs_device = stat.st_dev;
        name->inode = stat.st_ino;
        name->pid = (int32_t)getpid();
        name->fd = range->memfd;
    }
    name->process_id = word[1] | 1;
    local.probe = probe;
    return ncclSuccess;
}

static const struct tt_service_client local_client = {.fork_child = fork_child};

static ncclResult_t local_start(void)
{
    tt_service_lock();
    ncclResult_t rc = tt_service_acquire(&local_client);
    if (!rc) {
        rc = local_listen(local.name.name);
        if (rc) tt_service_release();
    }
    if (!rc) {
        local.acceptor = (struct tt_acceptor){
            .kind = TT_KEY_LOCAL, .admits = local_admits, .opened = local_opened};
        local_key(&local.name, &local.acceptor.key);
        tt_acceptor_open(&local.acceptor);
    }
    tt_service_unlock();
    return rc;
}

ncclResult_t tt_local_serve(struct tt_local_name *name_out)
{
    const struct tt_range *range = tuttiHostRange();
    ncclResult_t rc = ncclSuccess;
    memset(name_out, 0, sizeof(*name_out));
    if (sodium_init() < 0) return tt_fail(ncclSystemError, "libsodium: sodium_init failed");
    pthread_mutex_lock(&local.lock);
    if (!range || range->memfd < 0) {
        if (!local.name.process_id) randombytes_buf(&local.name.process_id, 8);
        name_out->process_id = local.name.process_id;
        local.users++;
    } else {
        rc = local_name(range);
        if (!rc && local.users == 0) rc = local_start();
        if (rc == ncclInProgress) rc = ncclSuccess;
        if (!rc) {
            local.users++;
            *name_out = local.name;
            if (!local.listener) name_out->range_bytes = 0;
        }
    }
    pthread_mutex_unlock(&local.lock);
    return rc;
}

void tt_local_unserve(void)
{
    pthread_mutex_lock(&local.lock);
    if (local.users > 0 && --local.users == 0 && local.listener) {
        tt_service_lock();
        tt_acceptor_close(&local.acceptor);
        tt_listener_close(local.listener);
        local.listener = NULL;
        tt_service_release();
        tt_service_unlock();
    }
    pthread_mutex_unlock(&local.lock);
    tt_service_wait_idle();
}

/* ---- asking ---- */

static bool move_all(int fd, void *bytes, size_t len, bool sending)
{
    unsigned char *at = bytes;
    while (len) {
        ssize_t n = sending ? send(fd, at, len, MSG_NOSIGNAL) : recv(fd, at, len, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        at += n;
        len -= (size_t)n;
    }
    return true;
}

static int take_fd(const struct msghdr *message)
{
    int fd = -1;
    struct cmsghdr *head = CMSG_FIRSTHDR(message);
    if (head && head->cmsg_level == SOL_SOCKET && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof(int))) {
        memcpy(&fd, CMSG_DATA(head), sizeof(int));
    }
    return fd;
}

/* The frame that carries the descriptor; -1 when it is not genuine. */
static int receive_range(int socket_fd, const struct tt_session *session, uint64_t *bytes_out)
{
    unsigned char frame[RANGE_FRAME_BYTES], mac[TT_FRAME_MAC_BYTES];
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))];
    struct iovec iov = {.iov_base = frame, .iov_len = sizeof(frame)};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    ssize_t n;
    do {
        n = recvmsg(socket_fd, &message, MSG_CMSG_CLOEXEC);
    } while (n < 0 && errno == EINTR);
    if (n <= 0) return -1;
    int fd = take_fd(&message);
    size_t got = (size_t)n, signed_bytes = sizeof(frame) - sizeof(mac);
    bool genuine = move_all(socket_fd, frame + got, sizeof(frame) - got, false);
    if (genuine) {
        crypto_generichash(mac, sizeof(mac), frame, signed_bytes, session->recv_key,
                           sizeof(session->recv_key));
        genuine = sodium_memcmp(mac, frame + signed_bytes, sizeof(mac)) == 0;
    }
    if (!genuine && fd >= 0) close(fd);
    struct tt_wire wire;
    tt_wire_read(&wire, frame + TT_FRAME_HEADER_BYTES, 8);
    *bytes_out = tt_wire_get64(&wire);
    return genuine ? fd : -1;
}

static int ask_range(int fd, const struct tt_local_name *peer, uint64_t *bytes_out)
{
    struct tt_handshake shake;
    struct tt_session session;
    struct tt_key key;
    struct tt_hello hello = {.kind = TT_KEY_LOCAL, .own_rank = 1, .wanted_rank = 0, .nranks = 2};
    int range_fd = -1;
    local_key(peer, &key);
    tt_handshake_hello(&shake, &hello, &key);
    bool good = move_all(fd, shake.hello, sizeof(shake.hello), true) &&
                move_all(fd, shake.answer, sizeof(shake.answer), false) &&
                tt_handshake_prove(&shake, &key, 0) &&
                move_all(fd, shake.proof, sizeof(shake.proof), true);
    if (good) {
        tt_handshake_session(&shake, &key, false, &session);
        range_fd = receive_range(fd, &session, bytes_out);
        sodium_memzero(&session, sizeof(session));
    }
    sodium_memzero(&key, sizeof(key));
    return range_fd;
}

/* Descriptor of the peer's range, or -1 with *why. */
static int fetch_range(const struct tt_local_name *peer, const char **why)
{
    struct sockaddr_un addr;
    socklen_t len = local_address(peer->name, &addr);
    struct timeval limit = {.tv_sec = ASK_SEC};
    struct ucred cred;
    socklen_t cred_len = sizeof(cred);
    int range_fd = -1;
    uint64_t bytes = 0;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        *why = strerror(errno);
        return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
    if (connect(fd, (struct sockaddr *)&addr, len)) {
        *why = strerror(errno);
    } else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &cred_len) || cred.uid != geteuid()) {
        *why = "it belongs to another user";
    } else {
        range_fd = ask_range(fd, peer, &bytes);
        if (range_fd < 0) *why = "it did not hand its descriptor over";
    }
    close(fd);
    struct stat stat;
    if (range_fd >= 0 && (bytes != peer->range_bytes || fstat(range_fd, &stat) ||
                          (uint64_t)stat.st_size < peer->range_bytes)) {
        *why = "its range is smaller than it says";
        close(range_fd);
        range_fd = -1;
    }
    return range_fd;
}

/* The short way, without waking the peer: the kernel lets processes of one user open each other's
 * descriptors, unless it is told not to. Another process may have that number here (a namespace of
 * process numbers), so what is opened must be the very file, and the probe word follows. -1: ask.
 */
static int open_range(const struct tt_local_name *peer)
{
    char path[64];
    struct stat stat_buf;
    if (peer->pid <= 0 || peer->fd < 0) return -1;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)peer->pid, (int)peer->fd);
    bool same = !stat(path, &stat_buf) && S_ISREG(stat_buf.st_mode) &&
                stat_buf.st_dev == peer->fs_device && stat_buf.st_ino == peer->inode &&
                (uint64_t)stat_buf.st_size >= peer->range_bytes;
    return same ? open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
}

static char *map_range(const struct tt_local_name *peer, const char **why)
{
    bool sane = peer->probe_offset % 8 == 0 && peer->range_bytes >= sizeof(uint64_t) &&
                peer->probe_offset <= peer->range_bytes - sizeof(uint64_t);
    if (!sane) {
        *why = "its record makes no sense";
        return NULL;
    }
    int fd = open_range(peer);
    if (fd < 0) fd = fetch_range(peer, why);
    if (fd < 0) return NULL;
    char *base =
        mmap(NULL, peer->range_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (base == MAP_FAILED) *why = strerror(errno);
    close(fd);
    if (base == MAP_FAILED) return NULL;
    uint64_t word;
    memcpy(&word, base + peer->probe_offset, sizeof(word));
    if (word != peer->probe) {
        *why = "the probe word differs";
        munmap(base, peer->range_bytes);
        return NULL;
    }
    madvise(base, peer->range_bytes, MADV_DONTDUMP);
    madvise(base, peer->range_bytes, MADV_DONTFORK);
    return base;
}

static struct mapping *find_mapping(uint64_t process_id)
{
    struct mapping *mapping = local.mappings;
    while (mapping && mapping->process_id != process_id)
        mapping = mapping->next;
    return mapping;
}

ncclResult_t tt_local_map(const struct tt_local_name *peer, char **base_out)
{
    const char *why = "it has no range to map";
    char *base = NULL;
    ncclResult_t rc = ncclSuccess;
    pthread_mutex_lock(&local.lock);
    struct mapping *mapping = find_mapping(peer->process_id);
    if (mapping) {
        mapping->users++;
        base = mapping->base;
    } else if (peer->range_bytes) {
        base = map_range(peer, &why);
        mapping = base ? calloc(1, sizeof(*mapping)) : NULL;
        if (mapping) {
            *mapping = (struct mapping){.next = local.mappings,
                                        .process_id = peer->process_id,
                                        .base = base,
                                        .bytes = peer->range_bytes,
                                        .users = 1};
            local.mappings = mapping;
        } else if (base) {
            munmap(base, peer->range_bytes);
            base = NULL;
            rc = tt_fail(ncclSystemError, "local range: out of memory");
        }
    }
    pthread_mutex_unlock(&local.lock);
    if (!base && !rc) {
        tt_info(TT_LOG_INIT | TT_LOG_P2P, "memory of process @%.39s cannot be mapped here: %s",
                peer->name, why);
    }
    *base_out = base;
    return rc;
}

void tt_local_unmap(const struct tt_local_name *peer)
{
    pthread_mutex_lock(&local.lock);
    struct mapping **link = &local.mappings;
    while (*link && (*link)->process_id != peer->process_id)
        link = &(*link)->next;
    struct mapping *mapping = *link;
    if (mapping && --mapping->users == 0) {
        *link = mapping->next;
        munmap(mapping->base, mapping->bytes);
        free(mapping);
    }
    pthread_mutex_unlock(&local.lock);
}
