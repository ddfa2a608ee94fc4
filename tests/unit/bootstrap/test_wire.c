/* What a process on the way to a root sees, and what happens when it changes that: rank 1 was given
 * an id whose address is a relay's. One argument: 0 or 1, TUTTI_NET_ENCRYPT. */
#include "../check.h"
#include "team.h"

#include "base/error.h"
#include "base/network/socket.h"
#include "bootstrap/join/id.h"
#include "bootstrap/join/root.h"

#include <linux/filter.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool sealed;

enum { SEEN_BYTES = 1 << 16, GREETING = TT_HELLO_BYTES + TT_PROOF_BYTES };

struct relay {
    int listener;
    union tt_addr behind;
    unsigned char seen[SEEN_BYTES]; /* what the ranks sent */
    size_t nseen;
    size_t spoil_at; /* this byte of it is changed; SIZE_MAX: none */
    _Atomic bool stop;
};

/* Hand on what has come; false at the end. */
static bool pass_on(int from, int to, struct relay *relay)
{
    unsigned char bytes[2048];
    ssize_t n = recv(from, bytes, sizeof(bytes), 0);
    if (n <= 0) return false;
    if (relay && relay->nseen + (size_t)n <= SEEN_BYTES) {
        memcpy(relay->seen + relay->nseen, bytes, (size_t)n);
        if (relay->spoil_at - relay->nseen < (size_t)n) bytes[relay->spoil_at - relay->nseen] ^= 4;
        relay->nseen += (size_t)n;
    }
    return send(to, bytes, (size_t)n, MSG_NOSIGNAL) == n;
}

static void serve(struct relay *relay, int near)
{
    int far = socket(relay->behind.sa.sa_family, SOCK_STREAM, 0);
    bool open = !connect(far, &relay->behind.sa, tt_addr_len(&relay->behind));
    while (open && !atomic_load(&relay->stop)) {
        struct pollfd ends[] = {{near, POLLIN, 0}, {far, POLLIN, 0}};
        poll(ends, 2, 10);
        if (ends[0].revents) open = pass_on(near, far, relay);
        if (open && ends[1].revents) open = pass_on(far, near, NULL);
    }
    close(far);
    close(near);
}

static void *relay_main(void *arg)
{
    struct relay *relay = arg;
    while (!atomic_load(&relay->stop)) {
        struct pollfd end = {relay->listener, POLLIN, 0};
        if (poll(&end, 1, 10) > 0) serve(relay, accept(relay->listener, NULL, NULL));
    }
    return NULL;
}

static void forget_port(union tt_addr *addr)
{
    if (addr->sa.sa_family == AF_INET6) addr->v6.sin6_port = 0;
    if (addr->sa.sa_family == AF_INET) addr->v4.sin_port = 0;
}

/* The same id by way of a relay. */
static void lead_astray(const ncclUniqueId *id, ncclUniqueId *id_out, struct relay *relay)
{
    struct tt_id_parts parts;
    memset(relay, 0, sizeof(*relay));
    relay->spoil_at = SIZE_MAX;
    assert_int_equal(tt_id_read(id, &parts), ncclSuccess);
    relay->behind = parts.addr;
    parts.spare.sa.sa_family = AF_UNSPEC;
    forget_port(&parts.addr);
    assert_int_equal(tt_socket_listen(&parts.addr, &relay->listener), ncclSuccess);
    tt_id_pack(id_out, &parts, 0);
}

static void join_only(struct team_rank *self)
{
    struct tt_member member = {0};
    struct tt_bootstrap *b = NULL;
    const void *records;
    self->ids = (const ncclUniqueId *)self->arg + self->rank;
    if (!team_join(self, &member, &b, &records)) tt_bootstrap_leave(b);
}

static void run_through(struct relay *relay, struct team *team, size_t spoil_at)
{
    ncclUniqueId ids[2];
    pthread_t thread;
    assert_int_equal(tt_id_create(&ids[0]), ncclSuccess);
    lead_astray(&ids[0], &ids[1], relay);
    relay->spoil_at = spoil_at;
    assert_int_equal(pthread_create(&thread, NULL, relay_main, relay), 0);
    *team = (struct team){.nranks = 2, .ids = ids, .nids = 1, .timeout_sec = 1, .arg = ids};
    team_run(team, TEAM_THREADS, join_only);
    atomic_store(&relay->stop, true);
    pthread_join(thread, NULL);
    close(relay->listener);
}

static void who_listens_reads_nothing(void **state)
{
    static struct relay relay;
    struct team team;
    char host[TT_HOST_BYTES] = "";
    (void)state;
    gethostname(host, sizeof(host) - 1);
    run_through(&relay, &team, SIZE_MAX);
    assert_int_equal(team.reports[0].rc, ncclSuccess);
    assert_int_equal(team.reports[1].rc, ncclSuccess);
    bool seen = memmem(relay.seen, relay.nseen, host, sizeof(host)) != NULL;
    assert_true(relay.nseen > GREETING);
    assert_true(seen == !sealed);
    team_fini(&team);
}

/* In the greeting, the length, the text and the tag: no rank takes the change. */
static void who_changes_a_byte_is_noticed(void **state)
{
    static const size_t offsets[] = {20, GREETING, GREETING + 20,
                                     GREETING + 16 + TT_JOIN_BYTES + 3};
    (void)state;
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        static struct relay relay;
        struct team team;
        print_message("byte %zu\n", offsets[i]);
        run_through(&relay, &team, offsets[i]);
        bool met = team.reports[0].rc == ncclSuccess && team.reports[1].rc == ncclSuccess;
        bool again = relay.nseen > GREETING + 32 + TT_JOIN_BYTES + TT_HELLO_BYTES;
        assert_true(!met || again); /* a greeting that was spoiled may be tried again */
        team_fini(&team);
    }
}

/* The first address of the id leads to a listener that no packet reaches, the second to the root.
 */
static void who_does_not_answer_is_called_elsewhere(void **state)
{
    struct sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
    const struct sock_fprog deaf = {1, &nothing};
    ncclUniqueId ids[2];
    struct tt_id_parts parts;
    int fd = -1;
    (void)state;
    assert_int_equal(tt_id_create(&ids[0]), ncclSuccess);
    assert_int_equal(tt_id_read(&ids[0], &parts), ncclSuccess);
    parts.spare = parts.addr;
    forget_port(&parts.addr);
    assert_int_equal(tt_socket_listen(&parts.addr, &fd), ncclSuccess);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &deaf, sizeof(deaf)), 0);
    tt_id_pack(&ids[1], &parts, 0);
    struct team team = {.nranks = 2, .ids = ids, .nids = 1, .timeout_sec = 60, .arg = ids};
    team_run(&team, TEAM_THREADS, join_only);
    assert_int_equal(team.reports[0].rc, ncclSuccess);
    assert_int_equal(team.reports[1].rc, ncclSuccess);
    team_fini(&team);
    close(fd);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(who_listens_reads_nothing),
        cmocka_unit_test(who_changes_a_byte_is_noticed),
        cmocka_unit_test(who_does_not_answer_is_called_elsewhere),
    };
    sealed = argc > 1 && argv[1][0] == '1';
    setenv("TUTTI_NET_ENCRYPT", sealed ? "1" : "0", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
