/* A descriptor for the other processes of the machine: handed over an abstract local socket to
 * a peer that proves to hold its key. Which memory is behind it is the business of mem/. */
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/wire/acceptor.h"
#include "bootstrap/wire/conn.h"
#include "bootstrap/wire/frame.h"
#include "bootstrap/wire/listener.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

#include <errno.h>
#include <sodium.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define FRAME_BYTES (TT_FRAME_HEADER_BYTES + 8 + TT_FRAME_MAC_BYTES)
#define ASK_SEC 2

/* The rank words of the handshake: the side that serves, and the side that asks. */
enum { SERVER_RANK, CLIENT_RANK, NRANKS };

struct tt_fd_server {
    struct tt_acceptor acceptor;
    struct tt_listener *listener; /* owned */
    int fd;                       /* borrowed */
    uint64_t word;
    uint64_t epoch; /* of the service: after fork nothing of it is open in the child */
};

static socklen_t local_address(const char *name, struct sockaddr_un *addr)
{
    memset(addr, 0, sizeof(*addr));
    addr->sun_family = AF_UNIX;
    size_t len = strnlen(name, sizeof(((struct tt_fd_name *)0)->name));
    memcpy(addr->sun_path + 1, name, len); /* leading zero: abstract, no file */
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len);
}

static void key_of(const struct tt_fd_name *name, struct tt_key *key_out)
{
    unsigned char secret[TT_SECRET_BYTES];
    crypto_generichash(secret, sizeof(secret), name->key, sizeof(name->key),
                       (const unsigned char *)"tutti local range", 17);
    tt_key_derive(secret, TT_KEY_LOCAL, key_out);
    sodium_memzero(secret, sizeof(secret));
}

/* ---- serving ---- */

static bool server_admits(struct tt_acceptor *acceptor, const struct tt_hello *hello)
{
    (void)acceptor;
    return hello->own_rank == CLIENT_RANK;
}

static void conn_opened(struct tt_conn *conn)
{
    (void)conn;
}

static void conn_frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes, size_t len)
{
    (void)conn, (void)type, (void)bytes, (void)len;
}

static void conn_closed(struct tt_conn *conn, const char *why)
{
    (void)conn, (void)why;
}

static const struct tt_conn_ops conn_ops = {
    /* nothing is expected of a client */
    .opened = conn_opened,
    .frame = conn_frame,
    .closed = conn_closed,
};

static void server_opened(struct tt_acceptor *acceptor, struct tt_conn *conn)
{
    const struct tt_fd_server *server = tt_container_of(acceptor, struct tt_fd_server, acceptor);
    unsigned char bytes[8];
    struct tt_wire wire;
    tt_wire_init(&wire, bytes, sizeof(bytes));
    tt_wire_put64(&wire, server->word);
    conn->ops = &conn_ops;
    conn->limit_bytes = 0;
    conn->send_fd = server->fd;
    tt_conn_send(conn, TT_FRAME_DESCRIPTOR, bytes, sizeof(bytes));
    tt_conn_finish(conn);
}

static ncclResult_t server_listen(struct tt_fd_server *server, const char *name)
{
    struct sockaddr_un addr;
    socklen_t len = local_address(name, &addr);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EMFILE && tt_socket_more_descriptors())
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && (errno == EACCES || errno == EPERM || errno == EAFNOSUPPORT)) {
        tt_info(TT_LOG_INIT | TT_LOG_P2P,
                "local socket: %m; no memory is shared with other processes");
        return ncclInProgress;
    }
    if (fd < 0 && errno == EMFILE) return tt_socket_exhausted("local socket");
    if (fd < 0) return tt_fail(ncclSystemError, "local socket: %m");
    if (bind(fd, (struct sockaddr *)&addr, len) || listen(fd, 1024)) {
        ncclResult_t rc = tt_fail(ncclSystemError, "local socket @%s: %m", name);
        close(fd);
        return rc;
    }
    ncclResult_t rc = tt_listener_open(fd, true, &server->listener);
    if (rc) close(fd);
    return rc;
}

ncclResult_t tt_fd_serve(const struct tt_fd_name *name, int fd, uint64_t word,
                         struct tt_fd_server **server_out)
{
    struct tt_fd_server *server = tt_calloc(1, sizeof(*server));
    if (!server) return tt_fail(ncclSystemError, "local socket @%s: out of memory", name->name);
    server->fd = fd;
    server->word = word;
    server->acceptor = (struct tt_acceptor){
        .kind = TT_KEY_LOCAL, .admits = server_admits, .opened = server_opened};
    key_of(name, &server->acceptor.key);
    tt_service_lock();
    ncclResult_t rc = tt_service_acquire(NULL);
    if (!rc) {
        rc = server_listen(server, name->name);
        if (rc) tt_service_release();
    }
    if (!rc) tt_acceptor_open(&server->acceptor);
    server->epoch = tt_service()->epoch;
    tt_service_unlock();
    if (rc) {
        free(server);
        return rc;
    }
    *server_out = server;
    return ncclSuccess;
}

void tt_fd_unserve(struct tt_fd_server *server)
{
    if (!server) return;
    tt_service_lock();
    if (server->epoch == tt_service()->epoch) {
        tt_acceptor_close(&server->acceptor);
        tt_listener_close(server->listener);
        tt_service_release();
    }
    tt_service_unlock();
    tt_service_wait_idle();
    sodium_memzero(&server->acceptor.key, sizeof(server->acceptor.key));
    free(server);
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
static int receive_descriptor(int socket_fd, const struct tt_session *session, uint64_t *word_out)
{
    unsigned char frame[FRAME_BYTES], mac[TT_FRAME_MAC_BYTES];
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
    *word_out = tt_wire_get64(&wire);
    return genuine ? fd : -1;
}

static int ask(int fd, const struct tt_fd_name *name, uint64_t *word_out)
{
    struct tt_handshake shake;
    struct tt_session session;
    struct tt_key key;
    struct tt_hello hello = {.kind = TT_KEY_LOCAL,
                             .own_rank = CLIENT_RANK,
                             .wanted_rank = SERVER_RANK,
                             .nranks = NRANKS};
    int got = -1;
    key_of(name, &key);
    tt_handshake_hello(&shake, &hello, &key);
    bool good = move_all(fd, shake.hello, sizeof(shake.hello), true) &&
                move_all(fd, shake.answer, sizeof(shake.answer), false) &&
                tt_handshake_prove(&shake, &key, SERVER_RANK) &&
                move_all(fd, shake.proof, sizeof(shake.proof), true);
    if (good) {
        tt_handshake_session(&shake, &key, false, &session);
        got = receive_descriptor(fd, &session, word_out);
        sodium_memzero(&session, sizeof(session));
    }
    sodium_memzero(&key, sizeof(key));
    return got;
}

int tt_fd_fetch(const struct tt_fd_name *name, uint64_t *word_out, const char **why)
{
    struct sockaddr_un addr;
    socklen_t len = local_address(name->name, &addr);
    struct timeval limit = {.tv_sec = ASK_SEC};
    struct ucred cred;
    socklen_t cred_len = sizeof(cred);
    int got = -1;
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
        got = ask(fd, name, word_out);
        if (got < 0) *why = "it did not hand its descriptor over";
    }
    close(fd);
    return got;
}
