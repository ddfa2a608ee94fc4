/* What a process on the way sees of a connection, and what happens when it changes that: a relay
 * stands between the ends. With TUTTI_NET_ENCRYPT nothing is readable and no change goes unnoticed.
 * One argument: 0 or 1, the variable's value. */
#include "../check.h"
#include "pair.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/network/socket.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char secret_text[] = "the words that nobody on the way should read";
static bool sealed;

enum { SEEN_BYTES = 1 << 20 };

struct relay {
    int listener, near, far; /* near: to the connector */
    union tt_addr behind;
    unsigned char *seen; /* what the connector sent */
    size_t nseen;
    size_t spoil_at; /* this byte of it is changed; SIZE_MAX: none */
};

static void relay_open(struct relay *relay, struct pair *pair)
{
    union tt_addr addr;
    memset(relay, 0, sizeof(*relay));
    memcpy(&relay->behind, pair->handle, sizeof(relay->behind)); /* it comes first */
    addr = relay->behind;
    if (addr.sa.sa_family == AF_INET6) addr.v6.sin6_port = 0;
    if (addr.sa.sa_family == AF_INET) addr.v4.sin_port = 0;
    assert_int_equal(tt_socket_listen(&addr, &relay->listener), ncclSuccess);
    memcpy(pair->handle, &addr, sizeof(addr));
    relay->near = relay->far = -1;
    relay->seen = malloc(SEEN_BYTES);
    relay->spoil_at = SIZE_MAX;
}

static void relay_close(struct relay *relay)
{
    if (relay->near >= 0) close(relay->near);
    if (relay->far >= 0) close(relay->far);
    close(relay->listener);
    free(relay->seen);
}

/* Hand on what has come, one way; true when something had. */
static bool pass_on(int from, int to, struct relay *relay)
{
    unsigned char bytes[4096];
    ssize_t n = recv(from, bytes, sizeof(bytes), MSG_DONTWAIT);
    if (n <= 0) return false;
    if (relay) {
        assert_true(relay->nseen + (size_t)n <= SEEN_BYTES);
        memcpy(relay->seen + relay->nseen, bytes, (size_t)n);
        if (relay->spoil_at - relay->nseen < (size_t)n) bytes[relay->spoil_at - relay->nseen] ^= 4;
        relay->nseen += (size_t)n;
    }
    for (ssize_t done = 0; done < n;) {
        ssize_t sent = send(to, bytes + done, (size_t)(n - done), MSG_NOSIGNAL);
        if (sent <= 0) return false; /* that end has had enough */
        done += sent;
    }
    return true;
}

static void relay_step(struct relay *relay)
{
    if (relay->near < 0) {
        relay->near = accept(relay->listener, NULL, NULL);
        if (relay->near < 0) return;
        relay->far = socket(relay->behind.sa.sa_family, SOCK_STREAM, 0);
        assert_int_equal(connect(relay->far, &relay->behind.sa, tt_addr_len(&relay->behind)), 0);
    }
    while (pass_on(relay->near, relay->far, relay)) {
    }
    while (pass_on(relay->far, relay->near, NULL)) {
    }
}

static void join_through(struct pair *pair, struct relay *relay)
{
    while (!pair->send_comm || !pair->recv_comm) {
        if (!pair->send_comm)
            assert_int_equal(
                tt_net_socket.connect(pair->from.ctx, 0, pair->handle, &pair->send_comm, NULL),
                ncclSuccess);
        relay_step(relay);
        if (!pair->recv_comm)
            assert_int_equal(tt_net_socket.accept(pair->listen_comm, &pair->recv_comm, NULL),
                             ncclSuccess);
    }
}

/* One message through the relay; how the receiver fares. */
static ncclResult_t carry(struct pair *pair, struct relay *relay, const char *text, char *got)
{
    int sent = 0, came = 0, size = 0;
    ncclResult_t rc = ncclSuccess;
    void *out = pair_send(pair, text, strlen(text) + 1);
    void *in = pair_recv(pair, got, 1000);
    while (!rc && !came) {
        if (!sent) assert_int_equal(tt_net_socket.test(out, &sent, NULL), ncclSuccess);
        relay_step(relay);
        rc = tt_net_socket.test(in, &came, &size);
    }
    return rc;
}

static bool is_seen(const struct relay *relay, const void *bytes, size_t len)
{
    return memmem(relay->seen, relay->nseen, bytes, len) != NULL;
}

static void who_listens_reads_nothing(void **state)
{
    struct pair pair;
    struct relay relay;
    char got[1000] = "";
    (void)state;
    pair_open(&pair);
    relay_open(&relay, &pair);
    join_through(&pair, &relay);
    for (int k = 0; k < 3; k++) {
        assert_int_equal(carry(&pair, &relay, secret_text, got), ncclSuccess);
        assert_string_equal(got, secret_text);
    }
    assert_true(is_seen(&relay, secret_text, 12) == !sealed);
    pair_close(&pair);
    relay_close(&relay);
}

/* Bytes of a small message in turn: of its length (which shrinks by 4), of its text, of its tag. */
_Static_assert((sizeof(secret_text) + 8) & 4, "with this bit gone the record is shorter");
static void who_changes_a_byte_is_noticed(void **state)
{
    (void)state;
    if (!sealed) skip();
    for (size_t k = 0; k < 4 + 8 + sizeof(secret_text) + 16; k += k ? 5 : 4) {
        struct pair pair;
        struct relay relay;
        char got[1000] = "";
        print_message("byte %zu\n", k);
        pair_open(&pair);
        relay_open(&relay, &pair);
        join_through(&pair, &relay);
        assert_int_equal(carry(&pair, &relay, "before", got), ncclSuccess);
        relay.spoil_at = relay.nseen + k;
        assert_int_equal(carry(&pair, &relay, secret_text, got), ncclRemoteError);
        assert_non_null(strstr(tt_last_error(), "bad MAC"));
        assert_non_null(strstr(tt_last_error(), "rank 0"));
        pair_close(&pair);
        relay_close(&relay);
    }
}

/* One process has the variable and the other not: no connection, rather than a readable one. */
static void both_ends_must_want_it(void **state)
{
    struct pair pair;
    struct relay relay;
    ncclResult_t rc = ncclSuccess;
    (void)state;
    pair_open(&pair);
    relay_open(&relay, &pair);
    relay.spoil_at = 14; /* the flag in the greeting, for 1 becomes 5 and 0 becomes 4 */
    for (int k = 0; k < 3 && !rc; k++) {
        rc = tt_net_socket.connect(pair.from.ctx, 0, pair.handle, &pair.send_comm, NULL);
        relay_step(&relay);
        assert_int_equal(tt_net_socket.accept(pair.listen_comm, &pair.recv_comm, NULL),
                         ncclSuccess);
        assert_null(pair.recv_comm);
        assert_null(pair.send_comm);
    }
    pair_close(&pair);
    relay_close(&relay);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_listens_reads_nothing),
        cmocka_unit_test(who_changes_a_byte_is_noticed),
        cmocka_unit_test(both_ends_must_want_it),
    };
    sealed = argc > 1 && argv[1][0] == '1';
    setenv("TUTTI_NET_ENCRYPT", sealed ? "1" : "0", 1);
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
