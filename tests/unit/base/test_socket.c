/* Addresses as text, sockets that never block, and the choice of interfaces. */
#include "../check.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/network/socket.h"
#include "base/param.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void addresses_parse_and_print(void **state)
{
    static const struct {
        const char *text;
        const char *printed; /* NULL: refused */
    } cases[] = {
        {"127.0.0.1:4567", "127.0.0.1<4567>"},
        {"[::1]:80", "::1<80>"},
        {"[fe80::1%lo]:9", "fe80::1%lo<9>"},
        {"0.0.0.0:0", "0.0.0.0<0>"},
        {"", NULL},
        {"127.0.0.1", NULL},
        {"127.0.0.1:", NULL},
        {"127.0.0.1:65536", NULL},
        {"127.0.0.1:-1", NULL},
        {"127.0.0.1:80x", NULL},
        {":80", NULL},
        {"::1:80", NULL},
        {"[::1:80", NULL},
        {"[::1]80", NULL},
        {"no such host.invalid:1", NULL},
        {"[fe80::1%no-such-if]:1", NULL},
    };
    char text[96];
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        union tt_addr addr;
        const ncclResult_t rc = tt_addr_parse(cases[i].text, &addr);
        print_message("case: '%s'\n", cases[i].text);
        assert_int_equal(rc, cases[i].printed ? ncclSuccess : ncclInvalidArgument);
        if (cases[i].printed)
            assert_string_equal(tt_addr_text(&addr, text, sizeof(text)), cases[i].printed);
    }
    assert_int_equal(tt_addr_parse(NULL, &(union tt_addr){0}), ncclInvalidArgument);
}

/* A connected pair over loopback. */
static void connect_pair(int fds[2])
{
    union tt_addr addr = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    int listener = -1;
    assert_int_equal(tt_socket_listen(&addr, &listener), ncclSuccess);
    assert_int_not_equal(addr.v4.sin_port, 0);
    assert_int_equal(tt_socket_connect(&addr, &fds[0]), ncclSuccess);
    struct pollfd ready = {.fd = listener, .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 10000), 1);
    fds[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    assert_true(fds[1] >= 0);
    ready = (struct pollfd){.fd = fds[0], .events = POLLOUT};
    assert_int_equal(poll(&ready, 1, 10000), 1);
    close(listener);
}

static void bytes_move_without_blocking(void **state)
{
    enum { BYTES = 8 << 20 };
    int fds[2];
    (void)state;
    char *out = malloc(BYTES);
    char *in = calloc(1, BYTES);
    assert_non_null(out);
    assert_non_null(in);
    for (size_t i = 0; i < BYTES; i++) {
        out[i] = (char)(i * 31 + (i >> 8));
    }
    connect_pair(fds);
    size_t sent = 0;
    size_t got = 0;
    size_t done = 99;
    assert_int_equal(tt_socket_recv(fds[1], in, BYTES, &done), ncclSuccess);
    assert_int_equal(done, 0);
    while (got < BYTES) {
        assert_int_equal(tt_socket_send(fds[0], out + sent, BYTES - sent, &done), ncclSuccess);
        sent += done;
        struct pollfd ready = {.fd = fds[1], .events = POLLIN};
        assert_int_equal(poll(&ready, 1, 10000), 1);
        assert_int_equal(tt_socket_recv(fds[1], in + got, BYTES - got, &done), ncclSuccess);
        got += done;
    }
    assert_memory_equal(in, out, BYTES);
    close(fds[0]);
    close(fds[1]);
    free(out);
    free(in);
}

static void closed_peer_is_an_error(void **state)
{
    int fds[2];
    size_t done = 0;
    char byte = 'x';
    (void)state;
    connect_pair(fds);
    close(fds[1]);
    struct pollfd ready = {.fd = fds[0], .events = POLLIN};
    assert_int_equal(poll(&ready, 1, 10000), 1);
    assert_int_equal(tt_socket_recv(fds[0], &byte, 1, &done), ncclRemoteError);
    assert_non_null(strstr(tt_last_error(), "127.0.0.1<"));
    ncclResult_t rc = ncclSuccess;
    for (int i = 0; i < 1000 && rc == ncclSuccess; i++) {
        rc = tt_socket_send(fds[0], &byte, 1, &done); /* the first may pass, the reset comes then */
        poll(&ready, 1, 10);
    }
    assert_int_equal(rc, ncclRemoteError);
    assert_int_equal(tt_socket_send(-1, &byte, 1, &done), ncclSystemError);
    close(fds[0]);
}

static void addresses_of_this_host_alone(void **state)
{
    static const struct {
        const char *text, *other;
        bool loopback, same;
    } cases[] = {
        {"127.0.0.1:1", "127.0.0.1:2", true, true},   {"127.0.1.1:1", "127.0.0.1:1", true, false},
        {"128.0.0.1:1", "128.0.0.2:1", false, false}, {"[::1]:1", "[::1]:9", true, true},
        {"[fd00::1]:1", "10.0.0.1:1", false, false},
    };
    (void)state;
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        union tt_addr addr, other;
        print_message("case: %s %s\n", cases[i].text, cases[i].other);
        assert_int_equal(tt_addr_parse(cases[i].text, &addr), ncclSuccess);
        assert_int_equal(tt_addr_parse(cases[i].other, &other), ncclSuccess);
        assert_int_equal(tt_addr_is_loopback(&addr), cases[i].loopback);
        assert_int_equal(tt_addr_same_ip(&addr, &other), cases[i].same);
    }
}

static void listening_twice_is_refused(void **state)
{
    union tt_addr addr = {.v4 = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)}};
    int first = -1;
    int second = -1;
    (void)state;
    assert_int_equal(tt_socket_listen(&addr, &first), ncclSuccess);
    assert_int_equal(tt_socket_listen(&addr, &second), ncclSystemError);
    assert_int_equal(second, -1);
    assert_non_null(strstr(tt_last_error(), "tutti run --own-ids")); /* says how it comes about */
    close(first);
}

static ncclResult_t list(const char *filter, const char *family, struct tt_netif *netifs,
                         int *count)
{
    if (filter) {
        setenv("NCCL_SOCKET_IFNAME", filter, 1);
    } else {
        unsetenv("NCCL_SOCKET_IFNAME");
    }
    if (family) {
        setenv("NCCL_SOCKET_FAMILY", family, 1);
    } else {
        unsetenv("NCCL_SOCKET_FAMILY");
    }
    tt_param_forget();
    return tt_netif_list(netifs, 16, count);
}

static void interfaces_obey_filters(void **state)
{
    struct tt_netif netifs[16];
    int count = 0;
    (void)state;
    if (list("=lo", NULL, netifs, &count) != ncclSuccess) skip(); /* no loopback in this sandbox */
    assert_int_equal(count, 1);
    assert_string_equal(netifs[0].name, "lo");
    assert_string_equal(netifs[0].pci_path, "");
    assert_int_equal(ntohs(netifs[0].addr.v4.sin_port), 0);
    assert_int_equal(list("lo:3,zz", "AF_INET", netifs, &count), ncclSuccess);
    assert_string_equal(netifs[0].name, "lo");
    assert_int_equal(list("=l", NULL, netifs, &count), ncclInvalidUsage);
    assert_non_null(strstr(tt_last_error(), "'=l'"));
    assert_non_null(strstr(tt_last_error(), " lo"));
    assert_int_equal(list("=lo", "AF_INET6", netifs, &count), ncclInvalidUsage);
    if (list("^lo", NULL, netifs, &count) == ncclSuccess) {
        for (int i = 0; i < count; i++) {
            assert_int_not_equal(strncmp(netifs[i].name, "lo", 2), 0);
        }
    }
    assert_int_equal(list(NULL, NULL, netifs, &count), ncclSuccess);
    assert_true(count >= 1);
    assert_int_equal(list("", NULL, netifs, &count), ncclSuccess);
    assert_int_equal(tt_netif_list(netifs, 0, &count), ncclInvalidArgument);
}

/* Without a filter, the interface in the subnet of NCCL_COMM_ID comes before others. */
static void comm_id_finds_its_interface(void **state)
{
    struct tt_netif netifs[16];
    int count = 0;
    (void)state;
    setenv("NCCL_COMM_ID", "127.9.9.9:1", 1);
    assert_int_equal(list(NULL, NULL, netifs, &count), ncclSuccess);
    unsetenv("NCCL_COMM_ID");
    if (strncmp(netifs[0].name, "ib", 2) == 0) skip(); /* they come first in any case */
    assert_int_equal(count, 1);
    assert_string_equal(netifs[0].name, "lo");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_parse_and_print),
        cmocka_unit_test(addresses_of_this_host_alone),
        cmocka_unit_test(bytes_move_without_blocking),
        cmocka_unit_test(closed_peer_is_an_error),
        cmocka_unit_test(listening_twice_is_refused),
        cmocka_unit_test(interfaces_obey_filters),
        cmocka_unit_test(comm_id_finds_its_interface),
    };
    setenv("HOME", "/nonexistent", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
