/* Connections of the socket network that are not what they should be: strangers, other keys, late
 * listeners, damaged handles. */
#include "../check.h"
#include "pair.h"

#include "base/error.h"
#include "base/network/socket.h"
#include "net/socket.h"
#include "net/socket_setup.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static union tt_addr address_in(const char handle[NCCL_NET_HANDLE_MAXSIZE])
{
    union tt_addr addr;
    memcpy(&addr, handle, sizeof(addr)); /* it comes first */
    return addr;
}

static int open_socket(const struct pair *pair)
{
    union tt_addr addr = address_in(pair->handle);
    int fd = socket(addr.sa.sa_family, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &addr.sa, tt_addr_len(&addr)), 0);
    return fd;
}

static void works(struct pair *pair)
{
    char got[6] = "";
    int size = 0;
    void *out = pair_send(pair, "hello", 6);
    void *in = pair_recv(pair, got, sizeof(got));
    assert_int_equal(pair_wait(out, &size), ncclSuccess);
    assert_int_equal(pair_wait(in, &size), ncclSuccess);
    assert_string_equal(got, "hello");
}

static void strangers_do_no_harm(void **state)
{
    struct pair pair;
    char noise[4096];
    int fds[100];
    (void)state;
    memset(noise, 0x5a, sizeof(noise));
    pair_open(&pair);
    for (int i = 0; i < 100; i++) {
        fds[i] = open_socket(&pair);
        if (i % 3 == 1) assert_true(send(fds[i], noise, sizeof(noise), MSG_NOSIGNAL) > 0);
        if (i % 3 == 2) assert_true(send(fds[i], noise, 5, MSG_NOSIGNAL) == 5);
    }
    close(fds[0]);
    pair_join(&pair);
    works(&pair);
    for (int i = 1; i < 100; i++)
        close(fds[i]);
    pair_close(&pair);
}

static void another_key_is_refused(void **state)
{
    struct pair pair;
    ncclResult_t rc = ncclSuccess;
    (void)state;
    pair_open(&pair);
    pair.from.trust.key[31] ^= 1;
    tt_net_socket_set_trust(pair.from.ctx, &pair.from.trust);
    while (!rc && !pair.send_comm) {
        rc = tt_net_socket.connect(pair.from.ctx, 0, pair.handle, &pair.send_comm, NULL);
        assert_int_equal(tt_net_socket.accept(pair.listen_comm, &pair.recv_comm, NULL),
                         ncclSuccess);
        assert_null(pair.recv_comm);
    }
    assert_int_equal(rc, ncclRemoteError);
    assert_null(pair.send_comm);
    assert_non_null(strstr(tt_last_error(), "not of this communicator"));
    /* the listener still waits for the right one */
    pair.from.trust.key[31] ^= 1;
    tt_net_socket_set_trust(pair.from.ctx, &pair.from.trust);
    pair_join(&pair);
    works(&pair);
    pair_close(&pair);
}

static void a_listener_that_is_gone_is_named(void **state)
{
    struct pair pair;
    ncclResult_t rc = ncclSuccess;
    (void)state;
    pair_open(&pair);
    tt_net_socket.closeListen(pair.listen_comm);
    pair.listen_comm = NULL;
    while (!rc) {
        rc = tt_net_socket.connect(pair.from.ctx, 0, pair.handle, &pair.send_comm, NULL);
        assert_null(pair.send_comm);
        sched_yield();
    }
    assert_int_equal(rc, ncclRemoteError);
    assert_non_null(strstr(tt_last_error(), "rank 1"));
    pair_close(&pair);
}

static void damaged_handles_are_refused(void **state)
{
    struct pair pair;
    (void)state;
    pair_open(&pair);
    for (int fill = 0; fill < 256; fill += 255) {
        char handle[NCCL_NET_HANDLE_MAXSIZE];
        memset(handle, fill, sizeof(handle));
        assert_int_equal(tt_net_socket.connect(pair.from.ctx, 0, handle, &pair.send_comm, NULL),
                         ncclInvalidArgument);
        assert_null(pair.send_comm);
    }
    pair_close(&pair);
}

enum { DEVICES = 3 };

/* Addresses of loopback: 127.0.0.1 and on. */
static void name_devices(struct tt_netif netifs[DEVICES])
{
    memset(netifs, 0, DEVICES * sizeof(*netifs));
    for (int dev = 0; dev < DEVICES; dev++) {
        snprintf(netifs[dev].name, sizeof(netifs[dev].name), "lo");
        netifs[dev].addr.v4.sin_family = AF_INET;
        netifs[dev].addr.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)dev);
    }
}

/* Each device's connections come in through its own interface: here two addresses of loopback. */
static void devices_listen_apart(void **state)
{
    struct pair pair;
    struct tt_netif netifs[DEVICES];
    void *listeners[DEVICES] = {NULL};
    (void)state;
    pair_open(&pair);
    name_devices(netifs);
    for (int dev = 1; dev < DEVICES; dev++) { /* the pair has the first one's port */
        char handle[NCCL_NET_HANDLE_MAXSIZE];
        assert_int_equal(tt_socket_net_listen(pair.to.ctx, dev, netifs, handle, &listeners[dev]),
                         ncclSuccess);
        union tt_addr got = address_in(handle);
        assert_int_equal(got.v4.sin_addr.s_addr, netifs[dev].addr.v4.sin_addr.s_addr);
    }
    pair_join(&pair);
    works(&pair);
    for (int dev = 1; dev < DEVICES; dev++)
        tt_net_socket.closeListen(listeners[dev]);
    pair_close(&pair);
}

/* Who does not find the listener at its address goes to the first device's; an address that is in
 * no handle is refused, although the kernel lets connections to it in. */
static void a_dead_address_is_gone_around(void **state)
{
    struct pair pair;
    struct tt_netif netifs[DEVICES];
    struct socket_handle handle;
    (void)state;
    pair_open(&pair);
    name_devices(netifs);
    tt_net_socket.closeListen(pair.listen_comm);
    assert_int_equal(tt_socket_net_listen(pair.to.ctx, 1, netifs, pair.handle, &pair.listen_comm),
                     ncclSuccess);
    memcpy(&handle, pair.handle, sizeof(handle));
    assert_int_equal(handle.spare.v4.sin_addr.s_addr, htonl(INADDR_LOOPBACK));
    handle.addr.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK + DEVICES);
    memcpy(pair.handle, &handle, sizeof(handle));
    pair_join(&pair);
    const struct socket_link *link = pair.send_comm;
    assert_non_null(strstr(link->peer, "127.0.0.1<"));
    works(&pair);
    pair_close(&pair);
}

/* What is given up half-way is freed at the end (the leak sanitizer looks). */
static void half_made_connections_are_freed(void **state)
{
    struct pair pair;
    (void)state;
    pair_open(&pair);
    assert_int_equal(tt_net_socket.connect(pair.from.ctx, 0, pair.handle, &pair.send_comm, NULL),
                     ncclSuccess);
    assert_int_equal(tt_net_socket.accept(pair.listen_comm, &pair.recv_comm, NULL), ncclSuccess);
    pair_close(&pair);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_do_no_harm),
        cmocka_unit_test(another_key_is_refused),
        cmocka_unit_test(a_listener_that_is_gone_is_named),
        cmocka_unit_test(damaged_handles_are_refused),
        cmocka_unit_test(devices_listen_apart),
        cmocka_unit_test(a_dead_address_is_gone_around),
        cmocka_unit_test(half_made_connections_are_freed),
    };
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    setenv("NCCL_SOCKET_NTHREADS", "1", 1);
    setenv("NCCL_NSOCKS_PERTHREAD", "2", 1);
    setenv("NCCL_SOCKET_RETRY_CNT", "3", 1);
    setenv("NCCL_SOCKET_RETRY_SLEEP_MSEC", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
