/* Network edges between two ranks of one process: messages in slots. */
#include "base/system/clock.h"
#include "net_pair.h"
#include "transport/serve.h"
#include "transport/small.h"

#include <pthread.h>
#include <unistd.h>

static void slots_arrive_in_order(void **state)
{
    (void)state;
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, 0, true);
    struct tt_edge *in = edge_of(1, 0, false);
    char name[64];
    tt_edge_name(out, name, sizeof(name));
    assert_string_equal(name, "NET/Socket/0");
    for (int sent = 0, got = 0; got < 500;) {
        bool moved = sent < 500 && try_send(out, sent);
        sent += moved;
        bool came = try_receive(in, got);
        got += came;
        if (!moved && !came) sched_yield();
    }
    if (!gathers) assert_false(tt_edge_post_ref(out, 77, name, sizeof(name)));
    assert_true(tt_edge_wants_still(out)); /* for its MAC, or because a plugin may look again */
    rank_close(0);
    rank_close(1);
}

/* No thread waits yet, and nothing was sent: as many receives are posted as messages will come, as
 * far as there are slots, and not one more. */
static void expected_messages_are_asked_for(void **state)
{
    static const struct {
        int expected, ahead; /* messages; receives that are posted before one of them comes */
    } cases[] = {{1, 1}, {5, 5}, {TT_SLOTS, TT_SLOTS}, {3 * TT_SLOTS + 1, TT_SLOTS}};
    int sent = 0, got = 0;
    (void)state;
    if (gathers) skip();
    rank_open(0);
    rank_open(1);
    assert_true(tt_transport_expects(ranks[1].transport));
    struct tt_edge *out = edge_of(0, 0, true);
    struct tt_edge *in = edge_of(1, 0, false);
    atomic_store(&nposted, 0);
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        print_message("case: %d messages\n", cases[i].expected);
        tt_edge_expect(in, (uint64_t)cases[i].expected - 1);
        tt_edge_expect(in, 1);
        for (bool posted = false; !posted; tt_edge_expect(in, 0)) { /* each moves the network */
            posted = atomic_load(&nposted) >= got + cases[i].ahead;
            sched_yield();
        }
        assert_int_equal(atomic_load(&nposted), got + cases[i].ahead);
        for (int last = sent + cases[i].expected; got < last;) {
            bool moved = sent < last && try_send(out, sent);
            sent += moved;
            got += try_receive(in, got);
        }
        assert_int_equal(atomic_load(&nposted), got);
    }
    rank_close(0);
    rank_close(1);
}

/* What is held stays until it is pushed, or until the next one that is not; nothing is lost. */
static void held_messages_leave_together(void **state)
{
    (void)state;
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, 0, true);
    struct tt_edge *in = edge_of(1, 0, false);
    while (!try_send(out, 0))
        sched_yield();
    while (!try_receive(in, 0))
        sched_yield();
    for (int k = 1, got = 1; got < 120; k++) {
        uint64_t drives = tt_transport_drives(ranks[0].transport);
        int first = k;
        for (; k < first + 3; k++) {
            assert_true(tt_edge_hold(out));
            assert_true(try_send(out, k));
        }
        assert_int_equal(tt_transport_drives(ranks[0].transport), drives);
        if (first / 4 % 2) {
            tt_edge_push(out);
            k--;
        } else {
            assert_true(try_send(out, k));
        }
        while (got <= k) {
            if (try_receive(in, got)) {
                got++;
            } else {
                sched_yield();
            }
        }
    }
    rank_close(0);
    rank_close(1);
}

static void pass(struct tt_edge *out, struct tt_edge *in, int first, int count)
{
    for (int sent = first, got = first; got < first + count;) {
        bool moved = sent < first + count && try_send(out, sent);
        sent += moved;
        bool came = try_receive(in, got);
        got += came;
        if (!moved && !came) sched_yield();
    }
}

/* Who sends second does so over the connection of who sent first, and no end listens for it. */
static void both_directions_share_a_connection(void **state)
{
    (void)state;
    if (!gathers) skip();
    for (int first = 0; first < 2; first++) {
        rank_open(0);
        rank_open(1);
        struct tt_edge *out = edge_of(first, 0, true), *in = edge_of(1 - first, 0, false);
        pass(out, in, 0, 3);
        int before = atomic_load(&nlistened);
        struct tt_edge *back_in = edge_of(first, 0, false), *back_out = edge_of(1 - first, 0, true);
        pass(back_out, back_in, 0, 200);
        assert_int_equal(atomic_load(&nlistened), before);
        pass(out, in, 3, 200);
        rank_close(0);
        rank_close(1);
    }
}

/* Rank 1 sends before it receives anything, although rank 0 would like to send as well. */
static void a_direction_waits_for_no_other(void **state)
{
    (void)state;
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, 0, true), *back_in = edge_of(0, 0, false);
    struct tt_edge *back_out = edge_of(1, 0, true);
    pass(back_out, back_in, 0, 20);
    pass(out, edge_of(1, 0, false), 0, 20);
    rank_close(0);
    rank_close(1);
}

/* Who waits for a message asks at once, then at growing intervals: 16 us of asking as fast as it
 * goes, later 50 us. So few questions in so much time, however busy the machine is. */
static void who_waits_asks_less(void **state)
{
    enum { LOOKS = 200000, EAGER = 2000 };
    static char landing[64];
    (void)state;
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, 0, true);
    struct tt_edge *in = edge_of(1, 0, false);
    while (!try_send(out, 0))
        sched_yield();
    while (!try_receive(in, 0))
        sched_yield();
    uint64_t drives = tt_transport_drives(ranks[1].transport), start_nsec = tt_now_nsec();
    for (int i = 0; i < LOOKS; i++) {
        tt_edge_land(in, 1, landing, sizeof(landing)); /* as an executor says before each look */
        assert_false(try_receive(in, 1));
    }
    drives = tt_transport_drives(ranks[1].transport) - drives;
    uint64_t took_usec = (tt_now_nsec() - start_nsec) / 1000;
    print_message("%d looks: %llu questions in %llu us\n", LOOKS, (unsigned long long)drives,
                  (unsigned long long)took_usec);
    assert_true(drives <= EAGER + took_usec / 5);
    while (!try_send(out, 1))
        sched_yield();
    while (!try_receive(in, 1))
        sched_yield();
    rank_close(0);
    rank_close(1);
}

static void *echo(void *arg)
{
    struct tt_edge *in = edge_of(1, 1, false);
    struct tt_edge *out = edge_of(1, 1, true);
    (void)arg;
    for (int k = 0; k < 200; k++) {
        while (!try_receive(in, k))
            sched_yield();
        while (!try_send(out, k))
            sched_yield();
    }
    return NULL;
}

static void threads_play_ping_pong(void **state)
{
    pthread_t thread;
    (void)state;
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, 1, true);
    struct tt_edge *in = edge_of(0, 1, false);
    assert_int_equal(pthread_create(&thread, NULL, echo, NULL), 0);
    for (int k = 0; k < 200; k++) {
        while (!try_send(out, k))
            sched_yield();
        while (!try_receive(in, k))
            sched_yield();
    }
    pthread_join(thread, NULL);
    rank_close(0);
    rank_close(1);
}

/* No thread waits: the proxy connects and sends; its end waits until all has left. */
static void what_was_posted_leaves(void **state)
{
    (void)state;
    rank_open(0);
    rank_open(1);
    struct tt_edge *in = edge_of(1, 0, false);
    struct tt_edge *out = edge_of(0, 0, true);
    for (int k = 0; k < TT_SLOTS; k++)
        assert_true(try_send(out, k));
    rank_close(0);
    for (int k = 0; k < TT_SLOTS;) {
        if (try_receive(in, k)) {
            k++;
        } else {
            sched_yield();
        }
    }
    rank_close(1);
}

static void another_operation_is_reported(void **state)
{
    const char *payload = NULL;
    size_t bytes = 0;
    ncclResult_t rc;
    (void)state;
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, 0, true);
    struct tt_edge *in = edge_of(1, 0, false);
    assert_true(try_send(out, 5));
    while ((rc = tt_edge_peek(in, 78, &payload, &bytes)) == ncclInProgress)
        sched_yield();
    assert_int_equal(rc, ncclInvalidUsage);
    rank_close(0);
    rank_close(1);
}

static void a_dead_peer_ends_the_wait(void **state)
{
    const char *payload = NULL;
    size_t bytes = 0;
    ncclResult_t rc = ncclInProgress;
    (void)state;
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, 0, true);
    struct tt_edge *in = edge_of(1, 0, false);
    assert_true(try_send(out, 3));
    while (!try_receive(in, 3))
        sched_yield();
    rank_close(0);
    while (rc == ncclInProgress) {
        rc = tt_edge_peek(in, 77, &payload, &bytes);
        sched_yield();
    }
    assert_int_equal(rc, ncclRemoteError);
    assert_non_null(strstr(tt_last_error(), "rank 0"));
    while (!tt_member_aborted(&ranks[1].member))
        sched_yield(); /* the proxy spreads it */
    rank_close(1);
}

/* An edge that is destroyed before its peer ever came. */
/* A plugin may say no more than that something failed when a rank has died: the bootstrap is given
 * a moment to say which, and then nothing else is told. */
static void what_others_reported_stays(void **state)
{
    const char *payload = NULL;
    size_t bytes = 0;
    ncclResult_t rc;
    (void)state;
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, TT_CONN_COLL, true), *in = edge_of(1, TT_CONN_COLL, false);
    while (!try_send(out, 1))
        sched_yield();
    while (!try_receive(in, 1))
        sched_yield();
    const int before = atomic_load(&nreported);
    atomic_store(&known_after, 5);
    atomic_store(&fault, FAULT_TEST);
    while ((rc = tt_edge_peek(in, 77, &payload, &bytes)) == ncclInProgress)
        sched_yield();
    assert_int_equal(rc, ncclSystemError);
    assert_int_equal(atomic_load(&nreported) - before, gathers);
    atomic_store(&fault, FAULT_NONE);
    atomic_store(&known_after, 0);
    rank_close(0);
    rank_close(1);
}

static void no_peer_comes(void **state)
{
    (void)state;
    rank_open(0);
    rank_open(1);
    edge_of(0, 0, false);
    struct tt_edge *out = edge_of(0, 1, true);
    assert_true(try_send(out, 1));
    ranks[0].member.abort = ncclRemoteError;
    rank_close(0);
    rank_close(1);
}

/* ---- many ranks ---- */

enum { BUSY_RANK = 2000 };

static size_t mapped_bytes(void)
{
    char text[64] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

static struct tt_transport *rank_of_4096(size_t slice_bytes)
{
    enum { RANKS = 4096, CHANNELS_THERE = 2 };
    static struct tt_member member = {.rank = BUSY_RANK, .nranks = RANKS, .name = ""};
    static struct tt_peer_reach reach[RANKS];
    for (int r = 0; r < RANKS; r++)
        reach[r].reach = TT_REACH_NET;
    struct tt_transport_config config = {.member = &member,
                                         .peers = reach,
                                         .bootstrap = box_of(0),
                                         .net = &ranks[0].net,
                                         .nchannels = CHANNELS_THERE,
                                         .slice_bytes = slice_bytes};
    if (!gathers) config.slice_bytes = tt_transport_slice_most(RANKS, CHANNELS_THERE, slice_bytes);
    struct tt_transport *transport = NULL;
    assert_int_equal(tt_transport_create(&config, ranks[0].inbox, &transport), ncclSuccess);
    return transport;
}

static void add_edge(struct tt_transport *transport, struct tt_edge_key key)
{
    struct tt_edge *edge = NULL;
    assert_int_equal(tt_transport_edge(transport, &key, &edge), ncclSuccess);
}

/* What the edges of a ring and of two trees take, and of messages with all others, with all slots
 * in use and all connections there, but for what the kernel and a plugin keep of a connection. */
static size_t bytes_of_4096_ranks(size_t slice_bytes, bool messages)
{
    static const int peers[] = {BUSY_RANK - 1, BUSY_RANK + 1, 0, BUSY_RANK + 7, BUSY_RANK + 9};
    size_t nedges = 0;
    rank_open(0);
    size_t before = mapped_bytes();
    struct tt_transport *transport = rank_of_4096(slice_bytes);
    for (size_t i = 0; i < 2 * TT_LEN(peers) * 2; i++) {
        size_t p = i / 2 % TT_LEN(peers);
        bool sending = i % 2;
        if (p < 2 && sending != (p == 1)) continue; /* a ring goes one way */
        add_edge(transport, (struct tt_edge_key){peers[p], (int)(i / 2 / TT_LEN(peers)),
                                                 TT_CONN_COLL, sending});
        nedges++;
    }
    for (int peer = 0; messages && peer < 4096; peer++) {
        if (peer == BUSY_RANK) continue;
        add_edge(transport, (struct tt_edge_key){peer, 0, TT_CONN_P2P, true});
        add_edge(transport, (struct tt_edge_key){peer, 0, TT_CONN_P2P, false});
        nedges += 2;
    }
    size_t link_bytes =
        gathers || !messages ? sizeof(struct socket_link) + sizeof(struct socket_lane) : 0;
    size_t bytes = mapped_bytes() - before + nedges * link_bytes;
    print_message("%zu edges of a rank of 4096, slots of %zu bytes: %zu bytes, of which %zu are "
                  "connections\n",
                  nedges, tt_transport_slice(transport), bytes, nedges * link_bytes);
    tt_transport_destroy(transport);
    rank_close(0);
    return bytes;
}

/* As the library has them, over sockets and over plugins; with NCCL's NCCL_BUFFSIZE of 4 MiB, and
 * where messages go to all others, over plugins as well. */
static void a_rank_of_4096_takes_little(void **state)
{
    const size_t most_bytes = (size_t)64 << 20;
    (void)state;
    assert_true(bytes_of_4096_ranks((size_t)256 << 10, false) < most_bytes * 5 / 8);
    size_t bytes = bytes_of_4096_ranks((size_t)512 << 10, false);
    assert_true(bytes < (gathers ? most_bytes : most_bytes * 5 / 8));
    if (!gathers) assert_true(bytes_of_4096_ranks((size_t)512 << 10, true) < most_bytes);
}

/* ---- slots that edges share ---- */

/* Twelve pairs of edges where slots are there for two at a time: each message arrives. When the
 * other end asks in the opposite order, those in front get slots of their own. */
static void edges_take_slots_in_turn(void **state)
{
    struct tt_edge *out[CHANNELS], *in[CHANNELS];
    int sent[CHANNELS] = {0}, received[CHANNELS] = {0}, left = CHANNELS * 20;
    (void)state;
    if (gathers) return;
    setenv("NCCL_NET_SHARED_BUFFERS", "1", 1);
    rank_open(0);
    rank_open(1);
    for (int c = 0; c < CHANNELS; c++) {
        out[c] = edge_at(0, c, TT_CONN_P2P, true);
        in[c] = edge_at(1, c, TT_CONN_P2P, false);
    }
    while (left) {
        for (int c = 0; c < CHANNELS; c++) {
            int back = CHANNELS - 1 - c;
            if (sent[c] < 20 && try_send(out[c], sent[c] * CHANNELS + c)) sent[c]++;
            if (received[back] == 20 || !try_receive(in[back], received[back] * CHANNELS + back))
                continue;
            received[back]++;
            left--;
        }
        sched_yield();
    }
    assert_int_equal(atomic_load(&nregistered) >= 2 * CHANNELS, 1);
    rank_close(0);
    rank_close(1);
    unsetenv("NCCL_NET_SHARED_BUFFERS");
    assert_int_equal(atomic_load(&nregistered), 0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_arrive_in_order),
        cmocka_unit_test(held_messages_leave_together),
        cmocka_unit_test(both_directions_share_a_connection),
        cmocka_unit_test(a_direction_waits_for_no_other),
        cmocka_unit_test(who_waits_asks_less),
        cmocka_unit_test(threads_play_ping_pong),
        cmocka_unit_test(what_was_posted_leaves),
        cmocka_unit_test(another_operation_is_reported),
        cmocka_unit_test(a_dead_peer_ends_the_wait),
        cmocka_unit_test(what_others_reported_stays),
        cmocka_unit_test(no_peer_comes),
        cmocka_unit_test(expected_messages_are_asked_for),
        cmocka_unit_test(a_rank_of_4096_takes_little),
        cmocka_unit_test(edges_take_slots_in_turn),
    };
    return run_all(argc, argv, tests, TT_LEN(tests));
}
