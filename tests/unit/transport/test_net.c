/* Network edges between two ranks of one process: the built-in network over loopback, real proxies,
 * a mailbox in place of the bootstrap. */
#include "../check.h"

#include "base/clock.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/member.h"
#include "bootstrap/bootstrap.h"
#include "net/socket.h"
#include "plugin/net.h"
#include "plugin/net_abi.h"
#include "proxy/proxy.h"
#include "transport/transport.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLICE 4096

/* ---- a bootstrap of two mailboxes ---- */

struct tt_bootstrap {
    int rank;
    pthread_mutex_t lock;
    int nletters;
    struct {
        int from;
        uint32_t tag;
        size_t bytes;
        char text[256];
    } letters[16];
};

static struct tt_bootstrap boxes[2] = {{.rank = 0, .lock = PTHREAD_MUTEX_INITIALIZER},
                                       {.rank = 1, .lock = PTHREAD_MUTEX_INITIALIZER}};

ncclResult_t tt_bootstrap_send(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               const void *message, size_t bytes)
{
    struct tt_bootstrap *box = &boxes[peer];
    pthread_mutex_lock(&box->lock);
    assert_true(box->nletters < 16 && bytes <= sizeof(box->letters[0].text));
    box->letters[box->nletters].from = bootstrap->rank;
    box->letters[box->nletters].tag = tag;
    box->letters[box->nletters].bytes = bytes;
    memcpy(box->letters[box->nletters++].text, message, bytes);
    pthread_mutex_unlock(&box->lock);
    return ncclSuccess;
}

void tt_bootstrap_fail(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence)
{
    (void)bootstrap, (void)rc, (void)sentence;
}

static char told[640]; /* to all ranks, last */

void tt_bootstrap_fail_all(struct tt_bootstrap *bootstrap, ncclResult_t rc, const char *sentence)
{
    (void)bootstrap, (void)rc;
    snprintf(told, sizeof(told), "%s", sentence);
}

ncclResult_t tt_bootstrap_error(const struct tt_bootstrap *bootstrap, const char **sentence_out)
{
    (void)bootstrap, (void)sentence_out;
    return ncclSuccess;
}

/* Another number each time: every poll looks. */
uint64_t tt_bootstrap_mail(const struct tt_bootstrap *bootstrap)
{
    static _Atomic uint64_t looks;
    (void)bootstrap;
    return atomic_fetch_add(&looks, 1);
}

ncclResult_t tt_bootstrap_poll(struct tt_bootstrap *bootstrap, int peer, uint32_t tag,
                               void *message, size_t max_bytes, size_t *bytes_out)
{
    ncclResult_t rc = ncclInProgress;
    pthread_mutex_lock(&bootstrap->lock);
    for (int i = 0; i < bootstrap->nletters; i++) {
        if (bootstrap->letters[i].from != peer || bootstrap->letters[i].tag != tag) continue;
        assert_true(bootstrap->letters[i].bytes <= max_bytes);
        *bytes_out = bootstrap->letters[i].bytes;
        memcpy(message, bootstrap->letters[i].text, *bytes_out);
        bootstrap->letters[i] = bootstrap->letters[--bootstrap->nletters];
        rc = ncclSuccess;
        break;
    }
    pthread_mutex_unlock(&bootstrap->lock);
    return rc;
}

/* ---- two ranks ---- */

struct rank {
    struct tt_member member;
    struct tt_peer_reach peers[2];
    struct tt_net net;
    void *inbox;
    struct tt_transport *transport;
    struct tt_proxy *proxy;
};

static struct rank ranks[2];
static struct tt_net_ops as_it_is;
static _Atomic int nposted; /* receives that the network took */
static struct tt_net_plugin socket_plugin;
static bool gathers = true; /* the built-in as it is; false: as a plugin that only has the ABI */

static ncclResult_t no_event(void **handle, int type, void *parent, int64_t id, void *extra)
{
    (void)handle, (void)type, (void)parent, (void)id, (void)extra;
    return ncclSuccess;
}

static ncclResult_t count_irecv(struct tt_net_plugin *self, void *recv_comm,
                                const struct tt_net_part *part, void **request)
{
    ncclResult_t rc = as_it_is.irecv(self, recv_comm, part, request);
    if (*request) atomic_fetch_add(&nposted, 1);
    return rc;
}

static void rank_open(int r)
{
    struct rank *rank = &ranks[r];
    ncclNetCommConfig_v12_t net_config = {.trafficClass = -1};
    struct tt_net_trust trust = {.rank = r};
    if (!socket_plugin.object) {
        tt_net_adopt_socket(&socket_plugin);
        if (!gathers)
            assert_int_equal(tt_net_adopt(&socket_plugin, 12, &tt_net_socket), ncclSuccess);
        as_it_is = socket_plugin.ops;
        socket_plugin.ops.irecv = count_irecv;
    }
    memset(rank, 0, sizeof(*rank));
    boxes[r].nletters = 0;
    rank->member.rank = r;
    rank->member.nranks = 2;
    rank->member.name = "";
    rank->peers[0].reach = rank->peers[1].reach = TT_REACH_NET;
    rank->net = (struct tt_net){.plugin = &socket_plugin, .ndevs = 1, .name = "Socket"};
    assert_int_equal(tt_net_socket.init(&rank->net.ctx, 1, &net_config, NULL, no_event),
                     ncclSuccess);
    tt_net_socket_set_trust(rank->net.ctx, &trust);
    rank->inbox = tt_calloc(1, tt_transport_inbox_bytes(2, 1, SLICE));
    struct tt_transport_config config = {.member = &rank->member,
                                         .peers = rank->peers,
                                         .bootstrap = &boxes[r],
                                         .net = &rank->net,
                                         .nchannels = 1,
                                         .slice_bytes = SLICE,
                                         .allow_direct = true,
                                         .allow_shm = true};
    assert_int_equal(tt_transport_create(&config, rank->inbox, &rank->transport), ncclSuccess);
    assert_int_equal(tt_proxy_create(&rank->member, rank->transport, NULL, &rank->proxy),
                     ncclSuccess);
}

static void rank_close(int r)
{
    struct rank *rank = &ranks[r];
    tt_proxy_destroy(rank->proxy);
    tt_transport_destroy(rank->transport);
    if (rank->net.ctx) tt_net_socket.finalize(rank->net.ctx);
    free(rank->inbox);
    rank->proxy = NULL;
    rank->transport = NULL;
    rank->net.ctx = NULL;
    rank->inbox = NULL;
}

static struct tt_edge *edge_of(int r, int conn, bool sending)
{
    struct tt_edge_key key = {.peer = 1 - r, .channel = 0, .conn = conn, .sending = sending};
    struct tt_edge *edge = NULL;
    assert_int_equal(tt_transport_edge(ranks[r].transport, &key, &edge), ncclSuccess);
    return edge;
}

/* ---- moving ---- */

static size_t bytes_of(int k)
{
    return (size_t)k * 1009 % (SLICE + 1);
}

static bool try_send(struct tt_edge *edge, int k)
{
    char *payload = tt_edge_acquire(edge, bytes_of(k));
    if (!payload) return false;
    if (bytes_of(k) <= TT_SLOT_INLINE_BYTES) {
        char small[TT_SLOT_INLINE_BYTES];
        memset(small, k, sizeof(small));
        tt_edge_post_small(edge, 77, small, bytes_of(k));
    } else {
        memset(payload, k, bytes_of(k));
        tt_edge_post(edge, 77, bytes_of(k));
    }
    return true;
}

static bool try_receive(struct tt_edge *edge, int k)
{
    const char *payload = NULL;
    size_t bytes = 0;
    ncclResult_t rc = tt_edge_peek(edge, 77, &payload, &bytes);
    if (rc == ncclInProgress) return false;
    assert_int_equal(rc, ncclSuccess);
    assert_int_equal(bytes, bytes_of(k));
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal((unsigned char)payload[i], k % 256);
    tt_edge_release(edge);
    return true;
}

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
    rank_close(0);
    rank_close(1);
}

/* Nobody waits yet, and nothing was sent: as many receives are posted as messages will come, as far
 * as there are slots, and not one more. */
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
        for (bool moved = true; moved || atomic_load(&nposted) < got + cases[i].ahead;) {
            tt_transport_progress(ranks[1].transport, &moved);
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

/* ---- memory of the user ---- */

static char *pattern(size_t bytes, int seed)
{
    char *memory = malloc(bytes);
    assert_non_null(memory);
    for (size_t i = 0; i < bytes; i++)
        memory[i] = (char)(i * 31 + i / 257 + (size_t)seed);
    return memory;
}

static void post_memory(struct tt_edge *out, uint64_t match, const char *memory, size_t bytes)
{
    while (!tt_edge_acquire(out, bytes))
        sched_yield();
    assert_true(tt_edge_post_ref(out, match, memory, bytes));
}

static const char *await_message(struct tt_edge *out, struct tt_edge *in, uint64_t match,
                                 size_t *bytes)
{
    const char *payload = NULL;
    ncclResult_t rc;
    while ((rc = tt_edge_peek(in, match, &payload, bytes)) == ncclInProgress) {
        tt_edge_drained(out);
        sched_yield();
    }
    assert_int_equal(rc, ncclSuccess);
    return payload;
}

/* Of every kind of message in turn: it comes where the receiver named memory, else in the slot. */
static void payloads_go_from_memory_to_memory(void **state)
{
    enum { ROUNDS = 60, MOST = 300000 };
    (void)state;
    if (!gathers) skip();
    char *landed = malloc(MOST);
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, TT_CONN_P2P, true);
    struct tt_edge *in = edge_of(1, TT_CONN_P2P, false);
    for (int k = 0; k < ROUNDS; k++) {
        bool lands = k % 3 != 1;
        size_t got = 0, bytes = lands ? (size_t)k * 7919 % MOST + 1 : SLICE - (size_t)k;
        char *sent = pattern(bytes, k);
        print_message("round %d: %zu bytes\n", k, bytes);
        if (lands) tt_edge_land(in, 77, landed, MOST);
        post_memory(out, 77, sent, bytes);
        const char *payload = await_message(out, in, 77, &got);
        assert_int_equal(got, bytes);
        assert_true((payload == landed) == lands);
        assert_memory_equal(payload, sent, bytes);
        tt_edge_release(in);
        while (!tt_edge_drained(out))
            sched_yield();
        free(sent);
    }
    rank_close(0);
    rank_close(1);
    free(landed);
}

/* Two Sends and Receives that do not match: nothing of the message touches the named memory. */
static void nothing_lands_for_another_operation(void **state)
{
    enum { BYTES = 100000 };
    (void)state;
    if (!gathers) skip();
    char *sent = pattern(BYTES, 1), *landed = calloc(1, BYTES), *zeros = calloc(1, BYTES);
    const char *payload = NULL;
    size_t bytes = 0;
    ncclResult_t rc;
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, TT_CONN_P2P, true);
    struct tt_edge *in = edge_of(1, TT_CONN_P2P, false);
    tt_edge_land(in, 78, landed, BYTES);
    post_memory(out, 77, sent, BYTES);
    while ((rc = tt_edge_peek(in, 78, &payload, &bytes)) == ncclInProgress)
        sched_yield();
    assert_int_equal(rc, ncclInvalidUsage);
    assert_non_null(strstr(told, "send and receive do not match"));
    assert_memory_equal(landed, zeros, BYTES);
    rank_close(0);
    rank_close(1);
    free(sent);
    free(landed);
    free(zeros);
}

/* The network lets go of memory when the operation failed. */
static void settled_edges_touch_no_memory(void **state)
{
    enum { BYTES = 64 << 20 };
    (void)state;
    if (!gathers) skip();
    char *sent = calloc(1, BYTES), *landed = calloc(1, 4096);
    const char *payload = NULL;
    size_t bytes = 0;
    rank_open(0);
    rank_open(1);
    struct tt_edge *out = edge_of(0, TT_CONN_P2P, true);
    struct tt_edge *in = edge_of(1, TT_CONN_P2P, false);
    post_memory(out, 77, sent, BYTES);
    tt_edge_land(in, 78, landed, 4096);
    assert_int_equal(tt_edge_peek(in, 78, &payload, &bytes), ncclInProgress);
    tt_transport_settle(ranks[0].transport);
    tt_transport_settle(ranks[1].transport);
    free(sent); /* 64 MiB are unmapped by this */
    free(landed);
    for (int k = 0; k < 1000; k++) {
        assert_false(tt_edge_drained(out));
        assert_int_equal(tt_edge_peek(in, 78, &payload, &bytes), ncclRemoteError);
    }
    ranks[0].member.abort = ranks[1].member.abort = ncclRemoteError;
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

/* Nobody waits: the proxy connects and sends; its end waits until all has left. */
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

static void another_operation_is_told(void **state)
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
static void nobody_comes(void **state)
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

static size_t mapped_bytes(void)
{
    char text[64] = "";
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof(text), file));
    fclose(file);
    return strtoul(text, NULL, 10) * (size_t)sysconf(_SC_PAGESIZE);
}

/* What the edges of a ring and of two trees take, with all slots in use and all connections there,
 * but for what the kernel keeps of a connection. */
static void a_rank_of_4096_takes_little(void **state)
{
    enum { RANKS = 4096, CHANNELS = 2, RANK = 2000 };
    static const int peers[] = {RANK - 1, RANK + 1, 0, RANK + 7, RANK + 9}; /* ring, tree */
    struct rank *rank = &ranks[0];
    struct tt_edge *edge = NULL;
    size_t nedges = 0;
    (void)state;
    rank_open(0);
    struct tt_member member = {.rank = RANK, .nranks = RANKS, .name = ""};
    struct tt_peer_reach *reach = calloc(RANKS, sizeof(*reach));
    for (int r = 0; r < RANKS; r++)
        reach[r].reach = TT_REACH_NET;
    struct tt_transport_config config = {.member = &member,
                                         .peers = reach,
                                         .bootstrap = &boxes[0],
                                         .net = &rank->net,
                                         .nchannels = CHANNELS,
                                         .slice_bytes = (size_t)512 << 10};
    struct tt_transport *transport = NULL;
    size_t before = mapped_bytes();
    assert_int_equal(tt_transport_create(&config, rank->inbox, &transport), ncclSuccess);
    for (size_t i = 0; i < CHANNELS * TT_LEN(peers) * 2; i++) {
        size_t p = i / 2 % TT_LEN(peers);
        bool sending = i % 2;
        struct tt_edge_key key = {peers[p], (int)(i / 2 / TT_LEN(peers)), TT_CONN_COLL, sending};
        if (p < 2 && sending != (p == 1)) continue; /* a ring goes one way */
        assert_int_equal(tt_transport_edge(transport, &key, &edge), ncclSuccess);
        nedges++;
    }
    size_t link_bytes = sizeof(struct socket_link) + sizeof(struct socket_lane);
    size_t bytes = mapped_bytes() - before + nedges * link_bytes;
    print_message("%zu edges of a rank of %d: %zu bytes, of which %zu are connections\n", nedges,
                  RANKS, bytes, nedges * link_bytes);
    if (gathers) assert_true(bytes < (size_t)64 << 20);
    tt_transport_destroy(transport);
    free(reach);
    rank_close(0);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_arrive_in_order),
        cmocka_unit_test(threads_play_ping_pong),
        cmocka_unit_test(what_was_posted_leaves),
        cmocka_unit_test(another_operation_is_told),
        cmocka_unit_test(a_dead_peer_ends_the_wait),
        cmocka_unit_test(nobody_comes),
        cmocka_unit_test(expected_messages_are_asked_for),
        cmocka_unit_test(payloads_go_from_memory_to_memory),
        cmocka_unit_test(nothing_lands_for_another_operation),
        cmocka_unit_test(settled_edges_touch_no_memory),
        cmocka_unit_test(a_rank_of_4096_takes_little),
    };
    gathers = argc < 2 || strcmp(argv[1], "abi") != 0;
    setenv("NCCL_SOCKET_IFNAME", "=lo", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
