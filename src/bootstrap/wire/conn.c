/* State machine of one connection. Before the proof only the fixed-size messages of handshake.h are
 * read; after it every frame is length (4), type (2), zero (2), counter (8), payload, MAC (16). */
#include "bootstrap/wire/conn.h"

#include "base/error.h"
#include "base/log.h"
#include "base/secret/encryption.h"
#include "base/system/clock.h"
#include "bootstrap/wire/acceptor.h"
#include "bootstrap/wire/address.h"
#include "bootstrap/wire/second.h"
#include "bootstrap/wire/service.h"
#include "bootstrap/wire/wire.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROOF_NSEC 2000000000ull /* from accept to answer, and from there to the proof */

/* One bad peer ends nothing: a rank that waits for another peer can say that this one came. */
static void note_unproven(const struct tt_conn *conn)
{
    struct tt_acceptor *acceptor = conn->acceptor;
    acceptor->unproven.count++;
    acceptor->unproven.from = conn->from;
    acceptor->unproven.rank = conn->hello.own_rank;
}

static void conn_break(struct tt_conn *conn, const char *why)
{
    if (conn->starved) why = tt_conn_starved;
    if (conn->server && conn->state == TT_CONN_PROOF && tt_encryption_key())
        why = "it did not prove the encryption key (ncclSetEncryption)";
    if (conn->state == TT_CONN_DEAD) return;
    if (conn->server && conn->state == TT_CONN_PROOF) note_unproven(conn);
    const struct tt_conn_ops *ops = conn->ops;
    bool known = conn->state == TT_CONN_OPEN || !conn->server;
    if (!known) tt_service_refused(why);
    if (known && ops && !conn->close_when_sent) ops->closed(conn, why);
    tt_conn_close(conn);
}

const char tt_conn_starved[] = "out of memory";
const char tt_conn_robbed[] = "this process closed a descriptor of the library";
const char tt_conn_unproven[] = "the other side does not know the secret, or its encryption key is "
                                "another, or one of the two has none (ncclSetEncryption)";

static void conn_watch(struct tt_conn *conn, bool write)
{
    uint32_t read = conn->state == TT_CONN_PARKED ? EPOLLRDHUP : EPOLLIN | EPOLLRDHUP;
    if (conn->early) read = 0;
    struct epoll_event event = {.events = read | (write ? EPOLLOUT : 0)};
    event.data.u64 = conn->token;
    conn->wants_write = write;
    epoll_ctl(tt_service()->epoll_fd, EPOLL_CTL_MOD, conn->fd, &event);
}

static struct tt_conn *conn_new(int fd)
{
    struct tt_service *service = tt_service();
    struct tt_conn *conn = calloc(1, sizeof(*conn));
    if (!conn) return NULL;
    conn->fd = fd;
    conn->send_fd = -1;
    conn->out_end = &conn->out;
    conn->token = service->next_token++;
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.u64 = conn->token};
    if (epoll_ctl(service->epoll_fd, EPOLL_CTL_ADD, fd, &event)) {
        free(conn);
        return NULL;
    }
    conn->next = service->conns;
    conn->link = &service->conns;
    if (conn->next) conn->next->link = &conn->next;
    service->conns = conn;
    return conn;
}

void tt_conn_free(struct tt_conn *conn)
{
    while (conn->out) {
        struct tt_packet *packet = conn->out;
        conn->out = packet->next;
        free(packet);
    }
    free(conn->body);
    sodium_memzero(conn, sizeof(*conn));
    free(conn);
}

void tt_conn_close(struct tt_conn *conn)
{
    if (!conn || conn->state == TT_CONN_DEAD) return;
    struct tt_service *service = tt_service();
    struct tt_conn *second = tt_second_leave(conn);
    conn->state = TT_CONN_DEAD;
    if (conn->fd >= 0) close(conn->fd);
    conn->fd = -1;
    *conn->link = conn->next;
    if (conn->next) conn->next->link = conn->link;
    conn->next = service->closed;
    service->closed = conn;
    tt_conn_close(second);
}

void tt_conn_finish(struct tt_conn *conn)
{
    if (!conn || conn->state == TT_CONN_DEAD) return;
    tt_conn_finish(tt_second_leave(conn));
    conn->owner = NULL;
    conn->close_when_sent = true;
    if (!conn->out) {
        tt_conn_close(conn);
        return;
    }
    conn->deadline_nsec = tt_now_nsec() + PROOF_NSEC;
    tt_service_wake();
}

/* ---- sending ---- */

/* One packet, with the descriptor if one rides along. Returns what send() would. */
static ssize_t packet_send(struct tt_conn *conn, const struct tt_packet *packet)
{
    struct iovec iov = {.iov_len = packet->len - packet->done};
    memcpy(&iov.iov_base, &(const unsigned char *){packet->bytes + packet->done}, sizeof(void *));
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {0};
    if (conn->send_fd >= 0) {
        message.msg_control = control;
        message.msg_controllen = sizeof(control);
        struct cmsghdr *head = CMSG_FIRSTHDR(&message);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &conn->send_fd, sizeof(int));
    }
    return sendmsg(conn->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* A failed send is not acted upon here (the caller may be any thread): epoll reports it. */
static void conn_flush(struct tt_conn *conn)
{
    while (conn->out) {
        struct tt_packet *packet = conn->out;
        ssize_t sent = packet_send(conn, packet);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0) { /* a descriptor that is none of ours any more: epoll never reports it */
            if (errno == EBADF || errno == ENOTSOCK) tt_service()->robbed = true;
            break;
        }
        conn->send_fd = -1;
        packet->done += (size_t)sent;
        if (packet->done < packet->len) continue;
        conn->out = packet->next;
        if (!conn->out) conn->out_end = &conn->out;
        free(packet);
    }
    bool write = conn->out != NULL;
    if (write != conn->wants_write) conn_watch(conn, write);
    if (!write && conn->close_when_sent) tt_conn_close(conn);
}

static struct tt_packet *conn_queue(struct tt_conn *conn, size_t len)
{
    struct tt_packet *packet = malloc(sizeof(*packet) + len);
    if (!packet) { /* the stream has a gap, so it ends: epoll reports it */
        tt_fail(ncclSystemError, "bootstrap: out of memory for a message of %zu bytes", len);
        conn->starved = true;
        shutdown(conn->fd, SHUT_RDWR);
        return NULL;
    }
    packet->next = NULL;
    packet->len = len;
    packet->done = 0;
    *conn->out_end = packet;
    conn->out_end = &packet->next;
    return packet;
}

static void conn_send_raw(struct tt_conn *conn, const unsigned char *bytes, size_t len)
{
    struct tt_packet *packet = conn_queue(conn, len);
    if (!packet) return;
    memcpy(packet->bytes, bytes, len);
    conn_flush(conn);
}

static void frame_send(struct tt_conn *conn, uint16_t type, const void *bytes, size_t len)
{
    struct tt_packet *packet = conn_queue(conn, TT_FRAME_HEADER_BYTES + len + TT_FRAME_MAC_BYTES);
    if (!packet) return;
    struct tt_wire wire;
    tt_wire_init(&wire, packet->bytes, packet->len);
    tt_wire_put32(&wire, (uint32_t)len);
    tt_wire_put32(&wire, type);
    tt_wire_put64(&wire, conn->sent_count++);
    if (conn->session.sealed) {
        const struct tt_seal_text text = {packet->bytes, TT_FRAME_HEADER_BYTES, bytes, len};
        tt_seal_shut(conn->session.send_key, conn->sent_count - 1, &text, wire.at);
    } else {
        tt_wire_put(&wire, bytes, len);
        crypto_generichash(wire.at, TT_FRAME_MAC_BYTES, packet->bytes, TT_FRAME_HEADER_BYTES + len,
                           conn->session.send_key, sizeof(conn->session.send_key));
    }
    conn_flush(conn);
}

void tt_conn_send(struct tt_conn *conn, uint16_t type, const void *bytes, size_t len)
{
    if (!conn || conn->state != TT_CONN_OPEN) return;
    conn->frames_sent++;
    frame_send(conn, type, bytes, len);
    if (conn->second && conn->second->state == TT_CONN_OPEN)
        frame_send(conn->second, type, bytes, len);
}

/* ---- opening ---- */

ncclResult_t tt_conn_serve(int fd, bool local, const union tt_addr *from)
{
    struct tt_conn *conn = conn_new(fd);
    if (!conn) {
        close(fd);
        return ncclSystemError;
    }
    if (!local) tt_socket_guard(fd);
    conn->server = true;
    conn->local = local;
    conn->state = TT_CONN_HELLO;
    if (from) conn->from = *from;
    conn->accepted_nsec = tt_now_nsec();
    conn->deadline_nsec = conn->accepted_nsec + PROOF_NSEC;
    return ncclSuccess;
}

ncclResult_t tt_conn_dial(const struct tt_conn_dial *dial, struct tt_conn **conn_out)
{
    const int family = dial->addr->sa.sa_family;
    int fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EMFILE && tt_socket_more_descriptors())
        fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0 && errno == EMFILE) return tt_socket_exhausted("bootstrap: socket");
    if (fd < 0) return tt_fail(ncclSystemError, "bootstrap: socket: %m");
    tt_socket_guard(fd);
    if (connect(fd, &dial->addr->sa, tt_addr_len(dial->addr)) && errno != EINPROGRESS &&
        errno != EINTR) {
        close(fd);
        return ncclInProgress; /* refused at once: the caller tries again */
    }
    struct tt_conn *conn = conn_new(fd);
    if (!conn) {
        close(fd);
        return tt_fail(ncclSystemError, "bootstrap: cannot add a connection: %m");
    }
    conn->state = TT_CONN_CONNECTING;
    conn->peer = dial->hello.wanted_rank;
    conn->hello = dial->hello;
    conn->key = *dial->key;
    conn->ops = dial->ops;
    conn->owner = dial->owner;
    conn->limit_bytes = dial->limit_bytes;
    conn->deadline_nsec = dial->deadline_nsec;
    conn->from = *dial->addr;
    conn_watch(conn, true);
    tt_service_wake();
    *conn_out = conn;
    return ncclSuccess;
}

static void conn_connected(struct tt_conn *conn)
{
    int error = 0;
    socklen_t len = sizeof(error);
    getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &error, &len);
    if (error) {
        conn_break(conn, strerror(error));
        return;
    }
    tt_handshake_hello(&conn->shake, &conn->hello, &conn->key);
    conn->reached = true;
    conn->state = TT_CONN_ANSWER;
    conn->wants_write = true;
    conn_send_raw(conn, conn->shake.hello, sizeof(conn->shake.hello));
}

static void conn_answer(struct tt_conn *conn, struct tt_acceptor *acceptor)
{
    conn->acceptor = acceptor;
    conn->peer = conn->hello.own_rank;
    tt_handshake_answer(&conn->shake, &acceptor->key, conn->hello.wanted_rank);
    conn->state = TT_CONN_PROOF;
    conn->shake_got = 0;
    conn->deadline_nsec = tt_now_nsec() + PROOF_NSEC; /* it may have waited for its acceptor */
    conn_watch(conn, false);
    conn_send_raw(conn, conn->shake.answer, sizeof(conn->shake.answer));
}

static struct tt_acceptor *acceptor_for(const struct tt_conn *conn)
{
    const struct tt_hello *hello = &conn->hello;
    for (struct tt_acceptor *acceptor = tt_service()->acceptors; acceptor;
         acceptor = acceptor->next) {
        bool ours = acceptor->kind == TT_KEY_ROOT ? hello->wanted_rank < 0
                                                  : hello->wanted_rank == acceptor->rank;
        if (!ours || acceptor->kind != hello->kind ||
            conn->local != (acceptor->kind == TT_KEY_LOCAL))
            continue;
        if (memcmp(acceptor->key.name, hello->key_name, TT_KEY_NAME_BYTES) != 0) continue;
        if (acceptor->admits(acceptor, hello)) return acceptor;
    }
    return NULL;
}

void tt_conn_unpark(struct tt_conn *conn)
{
    struct tt_acceptor *acceptor = acceptor_for(conn);
    if (conn->state == TT_CONN_PARKED && acceptor) conn_answer(conn, acceptor);
}

static void conn_hello(struct tt_conn *conn)
{
    if (!tt_handshake_read(&conn->shake, &conn->hello)) {
        conn_break(conn, "not our protocol");
        return;
    }
    conn->state = TT_CONN_PARKED;
    conn_watch(conn, false); /* what an unauthenticated peer adds stays in the kernel */
    tt_conn_unpark(conn);
}

static void conn_proved(struct tt_conn *conn)
{
    struct tt_acceptor *acceptor = conn->acceptor;
    if (!tt_handshake_check(&conn->shake, &acceptor->key)) {
        conn_break(conn, "wrong proof");
        return;
    }
    if (acceptor->kind != TT_KEY_ROOT && !acceptor->admits(acceptor, &conn->hello)) {
        conn_break(conn, "place is taken");
        return;
    }
    if (!tt_handshake_session(&conn->shake, &acceptor->key, true, &conn->session)) {
        conn_break(conn, "no public key");
        return;
    }
    sodium_memzero(&conn->shake, sizeof(conn->shake));
    conn->acceptor = NULL;
    conn->state = TT_CONN_OPEN;
    conn->deadline_nsec = 0;
    acceptor->opened(acceptor, conn);
}

static void conn_answered(struct tt_conn *conn)
{
    if (!tt_handshake_prove(&conn->shake, &conn->key, conn->hello.wanted_rank)) {
        conn_break(conn, tt_conn_unproven);
        return;
    }
    if (!tt_handshake_session(&conn->shake, &conn->key, false, &conn->session)) {
        conn_break(conn, "the other side sent no public key");
        return;
    }
    conn->state = TT_CONN_OPEN;
    conn->deadline_nsec = 0;
    conn_send_raw(conn, conn->shake.proof, sizeof(conn->shake.proof));
    sodium_memzero(&conn->shake, sizeof(conn->shake));
    sodium_memzero(&conn->key, sizeof(conn->key));
    conn->ops->opened(conn);
}

/* ---- receiving ---- */

/* The descriptor is of no more use: go on over the second connection. False: there is none. */
static bool conn_replace(struct tt_conn *conn, int error)
{
    const char *why = error ? strerror(error) : "connection closed";
    char from[128], to[128];
    if (!tt_second_may_replace(conn)) return false;
    struct tt_conn *second = tt_second_leave(conn);
    bool cut = error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH;
    tt_service()->netif_cut = cut && tt_bootstrap_at_netif(conn->fd);
    tt_info(TT_LOG_BOOTSTRAP,
            "Bootstrap: the connection to rank %d at %s ended (%s); the one at %s goes on",
            conn->peer, tt_addr_text(&conn->from, from, sizeof(from)), why,
            tt_addr_text(&second->from, to, sizeof(to)));
    while (conn->out) {
        struct tt_packet *packet = conn->out;
        conn->out = packet->next;
        free(packet);
    }
    free(conn->body);
    close(conn->fd);
    conn->fd = second->fd;
    conn->token = second->token;
    conn->wants_write = second->wants_write;
    conn->from = second->from;
    conn->session = second->session;
    conn->sent_count = second->sent_count;
    conn->got_count = second->got_count;
    conn->offset = second->offset;
    memcpy(conn->header, second->header, sizeof(conn->header));
    conn->header_got = second->header_got;
    conn->body = second->body;
    conn->body_len = second->body_len;
    conn->body_got = second->body_got;
    conn->out = second->out;
    conn->out_end = conn->out ? second->out_end : &conn->out;
    second->fd = -1;
    second->body = NULL;
    second->out = NULL;
    second->out_end = &second->out;
    tt_conn_close(second);
    return true;
}

/* Read up to `want` in all; true when complete. Breaks the connection on end or error. */
static bool conn_read(struct tt_conn *conn, unsigned char *bytes, size_t want, size_t *got)
{
    while (*got < want) {
        ssize_t n = recv(conn->fd, bytes + *got, want - *got, MSG_DONTWAIT);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return false;
        if (n <= 0) {
            int error = n == 0 ? 0 : errno;
            if (!conn_replace(conn, error))
                conn_break(conn, error ? strerror(error) : "connection closed");
            return false;
        }
        *got += (size_t)n;
    }
    return true;
}

static bool frame_begin(struct tt_conn *conn)
{
    if (conn->body) return true;
    if (!conn_read(conn, conn->header, sizeof(conn->header), &conn->header_got)) return false;
    struct tt_wire wire;
    tt_wire_read(&wire, conn->header, sizeof(conn->header));
    size_t len = tt_wire_get32(&wire);
    if (len > conn->limit_bytes) {
        conn_break(conn, "message longer than allowed");
        return false;
    }
    conn->body_len = len + TT_FRAME_MAC_BYTES;
    conn->body_got = 0;
    conn->body = malloc(conn->body_len);
    if (conn->body) return true;
    conn->starved = true; /* stays: packets may have been lost before */
    conn_break(conn, tt_conn_starved);
    return false;
}

/* Open the frame in its place. */
static bool frame_genuine(struct tt_conn *conn, uint64_t counter)
{
    unsigned char mac[TT_FRAME_MAC_BYTES];
    if (conn->session.sealed) {
        const struct tt_seal_text text = {conn->header, sizeof(conn->header), conn->body,
                                          conn->body_len};
        return counter == conn->got_count &&
               tt_seal_open(conn->session.recv_key, counter, &text, conn->body);
    }
    crypto_generichash_state state;
    size_t len = conn->body_len - sizeof(mac);
    crypto_generichash_init(&state, conn->session.recv_key, sizeof(conn->session.recv_key),
                            sizeof(mac));
    crypto_generichash_update(&state, conn->header, sizeof(conn->header));
    crypto_generichash_update(&state, conn->body, len);
    crypto_generichash_final(&state, mac, sizeof(mac));
    return counter == conn->got_count && !sodium_memcmp(mac, conn->body + len, sizeof(mac));
}

/* A whole frame is in `body`, and genuine. */
static bool frame_read(struct tt_conn *conn, uint32_t *type_out)
{
    struct tt_wire wire;
    if (!conn->early && !frame_begin(conn)) return false;
    if (!conn->early && !conn_read(conn, conn->body, conn->body_len, &conn->body_got)) return false;
    tt_wire_read(&wire, conn->header, sizeof(conn->header));
    tt_wire_get32(&wire);
    *type_out = tt_wire_get32(&wire);
    if (conn->early) return true;
    if (!frame_genuine(conn, tt_wire_get64(&wire)) || *type_out > UINT16_MAX) {
        conn_break(conn, "bad MAC");
        return false;
    }
    conn->got_count++;
    return true;
}

static bool frame_take(struct tt_conn *conn)
{
    uint32_t type;
    if (!frame_read(conn, &type)) return false;
    const struct tt_second_frame frame = {(uint16_t)type, conn->body,
                                          conn->body_len - TT_FRAME_MAC_BYTES};
    bool was_early = conn->early;
    enum tt_second_order order = tt_second_sort(conn, &frame);
    conn->early = order == TT_FRAME_EARLY;
    if (conn->early != was_early) conn_watch(conn, conn->wants_write);
    if (conn->early) return false;
    struct tt_conn *owner = conn->first ? conn->first : conn;
    unsigned char *body = conn->body;
    conn->body = NULL;
    conn->header_got = 0;
    if (order == TT_FRAME_DUE) owner->ops->frame(owner, frame.type, body, frame.len);
    free(body);
    return conn->state == TT_CONN_OPEN && !conn->close_when_sent;
}

static void conn_readable(struct tt_conn *conn)
{
    struct tt_handshake *shake = &conn->shake;
    if (conn->state == TT_CONN_HELLO &&
        conn_read(conn, shake->hello, sizeof(shake->hello), &conn->shake_got)) {
        conn_hello(conn);
    }
    if (conn->state == TT_CONN_PARKED)
        return; /* silent until its acceptor opens, or 2 s are over */
    if (conn->state == TT_CONN_ANSWER &&
        conn_read(conn, shake->answer, sizeof(shake->answer), &conn->shake_got)) {
        conn_answered(conn);
    }
    if (conn->state == TT_CONN_PROOF &&
        conn_read(conn, shake->proof, sizeof(shake->proof), &conn->shake_got)) {
        conn_proved(conn);
    }
    if (conn->state != TT_CONN_OPEN) return;
    if (conn->close_when_sent) { /* the peer reads nothing any more */
        unsigned char bytes[256];
        size_t got = 0;
        if (conn_read(conn, bytes, sizeof(bytes), &got)) return;
        return;
    }
    while (frame_take(conn)) {
        while (conn->second && conn->second->early && frame_take(conn->second)) {
        }
    }
}

void tt_conn_event(struct tt_conn *conn, uint32_t events)
{
    if (conn->state == TT_CONN_CONNECTING) {
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) conn_connected(conn);
        return;
    }
    if (conn->state == TT_CONN_PARKED && (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))) {
        tt_conn_close(conn);
        return;
    }
    if (conn->state != TT_CONN_DEAD && (events & EPOLLOUT)) conn_flush(conn);
    if (conn->state != TT_CONN_DEAD && (events & ~(uint32_t)EPOLLOUT)) conn_readable(conn);
}

void tt_conn_expire(struct tt_conn *conn)
{
    conn->deadline_nsec = 0;
    if (conn->state == TT_CONN_OPEN) {
        tt_conn_close(conn); /* finishing, and the other side does not read */
        return;
    }
    if (conn->server) conn_readable(conn); /* it may lie there: this thread may have come late */
    if (conn->state != TT_CONN_OPEN && conn->state != TT_CONN_DEAD)
        conn_break(conn, conn->server ? "no proof within 2 s" : "no answer");
}

void tt_conn_rob(struct tt_conn *conn)
{
    conn_break(conn, tt_conn_robbed);
}
