/* Two connections that carry the same frames: whichever ends, at any moment, nothing is lost,
 * doubled or out of order. One argument: 0 or 1, TUTTI_NET_ENCRYPT. */
#include "../check.h"

#include "base/system/clock.h"
#include "bootstrap/wire/acceptor.h"
#include "bootstrap/wire/listener.h"
#include "bootstrap/wire/loop.h"
#include "bootstrap/wire/second.h"
#include "bootstrap/wire/service.h"

#include <linux/filter.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { CLIENT, SERVER, PAYLOAD = 9, TYPE = 100 };

static struct end {
    struct tt_conn *conn;
    uint32_t sent, got;
    bool wrong, closed;
} ends[2];
static bool sealed;

static void frame(struct tt_conn *conn, uint16_t type, const unsigned char *bytes, size_t len)
{
    struct end *end = conn->owner;
    uint32_t number;
    memcpy(&number, bytes, sizeof(number));
    end->wrong |= type != TYPE || len != PAYLOAD || number != end->got || conn != end->conn;
    end->got++;
}

static void closed(struct tt_conn *conn, const char *why)
{
    struct end *end = conn->owner;
    (void)why;
    end->closed = true;
    end->conn = NULL;
}

static void opened(struct tt_conn *conn)
{
    (void)conn;
}

static const struct tt_conn_ops ops = {.opened = opened, .frame = frame, .closed = closed};

static bool admits(struct tt_acceptor *acceptor, const struct tt_hello *hello)
{
    (void)acceptor;
    return !hello->second || (ends[SERVER].conn && !ends[SERVER].conn->second);
}

static void accepted(struct tt_acceptor *acceptor, struct tt_conn *conn)
{
    (void)acceptor;
    if (conn->hello.second) {
        tt_second_join(ends[SERVER].conn, conn);
        return;
    }
    conn->owner = &ends[SERVER];
    conn->ops = &ops;
    conn->limit_bytes = 1024;
    ends[SERVER].conn = conn;
}

static struct tt_acceptor acceptor = {
    .kind = TT_KEY_TREE, .rank = 0, .admits = admits, .opened = accepted};
static union tt_addr addrs[2];

static void start(void)
{
    static const unsigned char secret[TT_SECRET_BYTES] = {1, 2, 3};
    struct tt_listener *listener;
    tt_service_lock();
    assert_int_equal(tt_service_acquire(NULL), ncclSuccess);
    for (uint32_t i = 0; i < 2; i++) { /* 127.0.0.1 and 127.0.0.2 */
        int fd;
        memset(&addrs[i], 0, sizeof(addrs[i]));
        addrs[i].v4.sin_family = AF_INET;
        addrs[i].v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK + i);
        assert_int_equal(tt_socket_listen(&addrs[i], &fd), ncclSuccess);
        assert_int_equal(tt_listener_open(fd, false, &listener), ncclSuccess);
    }
    tt_key_derive(secret, TT_KEY_TREE, &acceptor.key);
    tt_acceptor_open(&acceptor);
    tt_service_unlock();
}

static void stop(void)
{
    tt_service_lock();
    tt_acceptor_close(&acceptor);
    for (int i = 0; i < 2; i++)
        tt_conn_close(ends[i].conn);
    tt_service_release();
    tt_service_unlock();
    tt_service_wait_idle();
    memset(ends, 0, sizeof(ends));
}

static void call(int way)
{
    struct tt_conn_dial dial = {
        .addr = &addrs[way],
        .key = &acceptor.key,
        .hello = {.kind = TT_KEY_TREE, .own_rank = 1, .nranks = 2, .sealed = sealed},
        .ops = &ops,
        .owner = &ends[CLIENT],
        .limit_bytes = 1024,
        .deadline_nsec = tt_now_nsec() + 10000000000ull,
    };
    tt_service_lock();
    dial.hello.second = ends[CLIENT].conn != NULL;
    ncclResult_t rc = ends[CLIENT].conn ? tt_second_dial(ends[CLIENT].conn, &dial)
                                        : tt_conn_dial(&dial, &ends[CLIENT].conn);
    tt_service_unlock();
    assert_int_equal(rc, ncclSuccess);
}

/* Look until it is so, for 10 s at most. */
static void await(bool (*is_so)(void))
{
    bool so = false;
    for (int look = 0; look < 10000 && !so; look++) {
        tt_service_lock();
        so = is_so();
        tt_service_unlock();
        if (!so) tt_sleep_usec(1000);
    }
    assert_true(so);
}

static bool is_open(void)
{
    return ends[CLIENT].conn->state == TT_CONN_OPEN && ends[SERVER].conn;
}

static bool are_two(void)
{
    for (int i = 0; i < 2; i++) {
        const struct tt_conn *second = ends[i].conn->second;
        if (!second || second->state != TT_CONN_OPEN || second->got_count == 0) return false;
    }
    return true;
}

static bool are_one(void)
{
    return !ends[CLIENT].conn->second && !ends[SERVER].conn->second;
}

static bool is_all_there(void)
{
    return ends[CLIENT].got == ends[SERVER].sent && ends[SERVER].got == ends[CLIENT].sent;
}

static void send_some(int count)
{
    unsigned char payload[PAYLOAD] = {0};
    tt_service_lock();
    for (int i = 0; i < count; i++) {
        struct end *end = &ends[i % 3 == 0 ? SERVER : CLIENT];
        memcpy(payload, &end->sent, sizeof(end->sent));
        end->sent++;
        tt_conn_send(end->conn, TYPE, payload, sizeof(payload));
    }
    tt_service_unlock();
}

static void end_one(int side, bool second)
{
    tt_service_lock();
    const struct tt_conn *conn = ends[side].conn;
    shutdown(second ? conn->second->fd : conn->fd, SHUT_RDWR);
    tt_service_unlock();
}

static void check(void)
{
    await(is_all_there);
    for (int i = 0; i < 2; i++) {
        assert_false(ends[i].wrong);
        assert_false(ends[i].closed);
    }
}

static void either_may_end(void **state)
{
    (void)state;
    start();
    call(0);
    await(is_open);
    send_some(10);
    for (int round = 0; round < 8; round++) { /* the way that ended is made again */
        tt_service_lock();
        bool over_spare = tt_addr_same_ip(&ends[CLIENT].conn->from, &addrs[1]);
        tt_service_unlock();
        call(over_spare ? 0 : 1);
        send_some(7);
        await(are_two);
        send_some(50);
        end_one(round & 1 ? CLIENT : SERVER, round & 2);
        send_some(50);
        await(are_one);
        send_some(5);
        check();
    }
    stop();
}

static bool are_closed(void)
{
    return ends[SERVER].closed && ends[CLIENT].closed;
}

static void the_last_end_is_reported(void **state)
{
    (void)state;
    start();
    call(0);
    await(is_open);
    call(1);
    await(are_two);
    send_some(9);
    check();
    end_one(CLIENT, false);
    await(are_one);
    end_one(CLIENT, false);
    await(are_closed);
    stop();
}

static bool is_early(void)
{
    return ends[SERVER].conn->second && ends[SERVER].conn->second->early;
}

static bool has_second(void)
{
    const struct tt_conn *second = ends[CLIENT].conn->second;
    return second && second->state == TT_CONN_OPEN;
}

/* What was sent before the second connection stood is on its way over the first one. */
static void order_is_kept(void **state)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog program = {1, &nothing};
    const int none = 0;
    (void)state;
    start();
    call(0);
    await(is_open);
    send_some(9);
    check();
    tt_service_lock();
    int fd = ends[SERVER].conn->fd;
    tt_service_unlock();
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)), 0);
    send_some(5); /* of the client: lost, and sent again later */
    call(1);
    tt_sleep_usec(1000);
    await(is_open);
    await(has_second);
    send_some(6);
    await(is_early);
    tt_service_lock();
    assert_true(ends[SERVER].got < ends[CLIENT].sent);
    tt_service_unlock();
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none)), 0);
    check();
    await(are_two);
    end_one(CLIENT, false);
    send_some(20);
    check();
    stop();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(either_may_end),
        cmocka_unit_test(the_last_end_is_reported),
        cmocka_unit_test(order_is_kept),
    };
    sealed = argc > 1 && argv[1][0] == '1';
    return cmocka_run_group_tests(tests, NULL, NULL);
}
