/* Network edges between two ranks of one process: messages from the user's memory, and into it. */
#include "net_pair.h"

#include <unistd.h>

/* ---- a network that gathers takes any memory ---- */

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
    assert_non_null(strstr(reported, "send and receive do not match"));
    assert_memory_equal(landed, zeros, BYTES);
    rank_close(0);
    rank_close(1);
    free(sent);
    free(landed);
    free(zeros);
}

/* A look at memory that another thread may be writing: how far it has come. */
__attribute__((noinline, no_sanitize("thread"))) static bool is_untouched(const volatile char *at)
{
    return *at;
}

/* The same in the middle of a message, at both ends. With encryption (and lanes, which threads move
 * as well) who touches it then has a SIGSEGV. */
static void flowing_transfers_let_go(void **state)
{
    enum { BYTES = 64 << 20 };
    (void)state;
    if (!gathers) skip();
    rank_open(0);
    rank_open(1);
    for (int round = 0; round < 8; round++) {
        char *sent = calloc(1, BYTES), *landed = malloc(BYTES);
        const char *payload = NULL;
        size_t bytes = 0;
        struct tt_edge *out = edge_at(0, round, TT_CONN_P2P, true);
        struct tt_edge *in = edge_at(1, round, TT_CONN_P2P, false);
        landed[0] = 1;
        tt_edge_land(in, 77, landed, BYTES);
        post_memory(out, 77, sent, BYTES);
        for (int looks = 0; looks < 3 * round || is_untouched(landed);
             looks += !is_untouched(landed)) {
            tt_edge_drained(out);
            tt_edge_peek(in, 77, &payload, &bytes);
            sched_yield();
        }
        tt_transport_release_memory(ranks[0].transport);
        free(sent); /* 64 MiB are unmapped by this */
        tt_transport_release_memory(ranks[1].transport);
        free(landed);
        usleep(500);
    }
    ranks[0].member.abort = ranks[1].member.abort = ncclRemoteError;
    rank_close(0);
    rank_close(1);
}

/* The network lets go of memory when the operation failed. */
static void released_edges_touch_no_memory(void **state)
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
    /* the header of 77 may be there, which is not what was asked for */
    ncclResult_t rc = tt_edge_peek(in, 78, &payload, &bytes);
    assert_true(rc == ncclInProgress || rc == ncclInvalidUsage);
    if (rc == ncclInProgress) rc = ncclRemoteError;
    tt_transport_release_memory(ranks[0].transport);
    tt_transport_release_memory(ranks[1].transport);
    free(sent); /* 64 MiB are unmapped by this */
    free(landed);
    for (int k = 0; k < 1000; k++) {
        assert_false(tt_edge_drained(out));
        assert_int_equal(tt_edge_peek(in, 78, &payload, &bytes), rc);
    }
    ranks[0].member.abort = ranks[1].member.abort = ncclRemoteError;
    rank_close(0);
    rank_close(1);
}

/* ---- one that only has the ABI: memory that the user registered ---- */

struct pair { /* a connection from rank 0 to rank 1, and what both users have */
    struct tt_edge *out, *in;
};

static struct pair users_open(bool sender, bool receiver)
{
    const bool registered[] = {sender, receiver};
    for (int r = 0; r < 2; r++) {
        users[r] = pattern(USER_BYTES, r);
        rank_open(r);
        if (registered[r])
            tt_transport_register(ranks[r].transport, users[r], users[r], USER_BYTES);
    }
    return (struct pair){edge_of(0, TT_CONN_P2P, true), edge_of(1, TT_CONN_P2P, false)};
}

static void users_close(void)
{
    rank_close(0);
    rank_close(1);
    for (int r = 0; r < 2; r++) {
        free(users[r]);
        users[r] = NULL;
    }
    assert_int_equal(atomic_load(&nregistered), 0);
}

/* One transfer of so many bytes in slots, as the interpreter makes it; returns how many of the
 * slots were put into the receiver's memory by the network. */
static int transfer(const struct pair *pair, size_t bytes, int seed)
{
    int landed = 0;
    size_t sent = 0, got = 0;
    for (size_t i = 0; i < bytes; i++)
        users[0][i] = (char)(i * 7 + (size_t)seed + i / 251);
    memset(users[1], 0, bytes);
    while (got < bytes || !tt_edge_drained(pair->out)) {
        size_t part = tt_min_size(SLICE, bytes - sent);
        char *payload = part ? tt_edge_acquire(pair->out, part) : NULL;
        if (payload && !tt_edge_post_ref(pair->out, 77, users[0] + sent, part)) {
            memcpy(payload, users[0] + sent, part);
            tt_edge_post(pair->out, 77, part);
        }
        if (payload) sent += part;
        const char *came = NULL;
        size_t len = 0;
        if (got == bytes) continue;
        tt_edge_land(pair->in, 77, users[1] + got, bytes - got);
        ncclResult_t rc = tt_edge_peek(pair->in, 77, &came, &len);
        if (rc == ncclInProgress) sched_yield();
        if (rc == ncclInProgress) continue;
        assert_int_equal(rc, ncclSuccess);
        assert_int_equal(len, tt_min_size(SLICE, bytes - got));
        landed += came == users[1] + got;
        if (came != users[1] + got) memcpy(users[1] + got, came, len);
        tt_edge_release(pair->in);
        got += len;
    }
    assert_memory_equal(users[0], users[1], bytes);
    return landed;
}

/* The second connection is made while the first transfers run. */
static int transfer_often(const struct pair *pair, bool direct)
{
    int landed = 0;
    for (int k = 0; k < 100 || (direct && atomic_load(&nuser) == 0); k++)
        transfer(pair, 5 * SLICE - 100, k);
    atomic_store(&nuser, 0);
    for (int k = 0; k < 20; k++)
        landed += transfer(pair, (size_t)(k + 1) * SLICE - (size_t)k, k);
    return landed;
}

static void registered_memory_is_not_copied(void **state)
{
    static const struct {
        const char *name;
        bool sender, receiver, refuses;
        int user, landed; /* of 210 slots: messages of the network in users' memory */
    } cases[] = {
        {"both", true, true, false, 420, 210},           {"the sender", true, false, false, 210, 0},
        {"the receiver", false, true, false, 0, 0},      {"nobody", false, false, false, 0, 0},
        {"the network refuses", true, true, true, 0, 0},
    };
    (void)state;
    if (gathers) skip();
    for (size_t i = 0; i < TT_LEN(cases); i++) {
        print_message("case: %s\n", cases[i].name);
        refuses = cases[i].refuses;
        atomic_store(&nuser, 0);
        struct pair pair = users_open(cases[i].sender, cases[i].receiver);
        int landed = transfer_often(&pair, cases[i].user > 0);
        assert_int_equal(atomic_load(&nuser), cases[i].user);
        assert_int_equal(landed, cases[i].landed);
        refuses = false;
        users_close();
    }
}

/* The user takes the memory back: no registration of it is left, and it is copied from now on. */
static void forgotten_memory_is_copied(void **state)
{
    (void)state;
    if (gathers) skip();
    atomic_store(&nuser, 0);
    struct pair pair = users_open(true, true);
    tt_transport_register(ranks[0].transport, users[0], users[0], USER_BYTES);
    transfer_often(&pair, true);
    int with = atomic_load(&nregistered);
    tt_transport_forget(ranks[0].transport, users[0]); /* it was registered twice */
    assert_int_equal(atomic_load(&nregistered), with);
    tt_transport_forget(ranks[0].transport, users[0]);
    assert_int_equal(atomic_load(&nregistered), with - 1);
    tt_transport_forget(ranks[1].transport, users[1]);
    assert_int_equal(atomic_load(&nregistered), with - 2);
    atomic_store(&nuser, 0);
    assert_int_equal(transfer(&pair, 4 * SLICE, 1), 0);
    assert_int_equal(atomic_load(&nuser), 0);
    tt_transport_register(ranks[0].transport, users[0], users[0], USER_BYTES);
    transfer(&pair, 4 * SLICE, 2);
    assert_int_equal(atomic_load(&nuser), 4);
    users_close();
}

/* Of the second connection something fails at one end: both ends go on without it. */
static void half_a_connection_is_none(void **state)
{
    static const enum fault faults[] = {FAULT_CONNECT, FAULT_ACCEPT, FAULT_REGISTER};
    (void)state;
    if (gathers) skip();
    for (size_t i = 0; i < TT_LEN(faults); i++) {
        print_message("fault %d\n", (int)faults[i]);
        struct pair pair = users_open(true, true);
        for (bool came = false, left = false; !came; came = try_receive(pair.in, 1))
            left = left || try_send(pair.out, 1); /* the first one is there */
        atomic_store(&nuser, 0);
        atomic_store(&nfaults, 0);
        atomic_store(&fault, (int)faults[i]);
        for (int k = 0; k < 100 || atomic_load(&nfaults) == 0 || atomic_load(&nlistening); k++)
            transfer(&pair, 4 * SLICE, k);
        atomic_store(&fault, FAULT_NONE);
        assert_int_equal(atomic_load(&nfaults), 1);
        assert_int_equal(atomic_load(&nuser), 0);
        users_close();
    }
}

/* The operation failed while the network may write into the user's memory: it cannot any more. */
static void a_released_network_writes_nothing(void **state)
{
    const char *payload = NULL;
    size_t bytes = 0;
    (void)state;
    if (gathers) skip();
    atomic_store(&nuser, 0);
    struct pair pair = users_open(true, true);
    transfer_often(&pair, true);
    atomic_store(&nclosed, 0);
    atomic_store(&nuser, 0);
    atomic_store(&withholds, true);
    memset(users[0], 1, USER_BYTES);
    memset(users[1], 2, USER_BYTES);
    for (int k = 0; k < 4; k++)
        post_memory(pair.out, 77, users[0] + k * SLICE, SLICE);
    tt_edge_land(pair.in, 77, users[1], 4 * SLICE);
    while (atomic_load(&nuser) < 4) { /* receives are posted there */
        tt_edge_drained(pair.out);
        assert_int_equal(tt_edge_peek(pair.in, 77, &payload, &bytes), ncclInProgress);
    }
    tt_transport_release_memory(ranks[1].transport);
    atomic_store(&withholds, false);
    assert_int_equal(atomic_load(&nclosed), 1);
    memset(users[1], 2, USER_BYTES);
    for (int k = 0; k < 1000; k++) {
        tt_edge_drained(pair.out);
        assert_int_not_equal(tt_edge_peek(pair.in, 77, &payload, &bytes), ncclSuccess);
        assert_int_equal(users[1][k * 4 % USER_BYTES], 2);
    }
    tt_transport_release_memory(ranks[0].transport);
    ranks[0].member.abort = ranks[1].member.abort = ncclRemoteError;
    users_close();
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(payloads_go_from_memory_to_memory),
        cmocka_unit_test(nothing_lands_for_another_operation),
        cmocka_unit_test(released_edges_touch_no_memory),
        cmocka_unit_test(flowing_transfers_let_go),
        cmocka_unit_test(registered_memory_is_not_copied),
        cmocka_unit_test(forgotten_memory_is_copied),
        cmocka_unit_test(half_a_connection_is_none),
        cmocka_unit_test(a_released_network_writes_nothing),
    };
    return run_all(argc, argv, tests, TT_LEN(tests));
}
